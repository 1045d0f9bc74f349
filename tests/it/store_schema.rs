//! Both databases have the same tables, columns, keys and indexes.

use crate::support::TestDatabase;
use protocol_bridge::{
    base::{clock::Clock, entropy::Entropy},
    store::Dialect,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// One line per fact, in words of our own.
type Facts = BTreeSet<String>;

const SQLITE: [&str; 4] = [
    "SELECT 'column ' || t.name || '.' || c.name || ' ' || CASE c.type WHEN 'BLOB' THEN 'id' WHEN 'BIGINT' THEN 'number' WHEN 'TEXT' THEN 'text' \
       ELSE c.type END || CASE WHEN c.\"notnull\" = 1 THEN ' required' ELSE '' END || CASE WHEN c.dflt_value IS NULL THEN '' ELSE ' default' END \
     FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND t.name <> '_sqlx_migrations'",
    // Columns in their order; constraints' own indexes have made-up names.
    "SELECT 'index on ' || name || ' (' || columns || ')' || CASE WHEN uniq = 1 THEN ' unique' ELSE '' END || CASE WHEN partial = 1 THEN ' partial' ELSE '' END || \
       CASE origin WHEN 'c' THEN ' named ' || i_name WHEN 'pk' THEN ' primary' ELSE '' END FROM ( \
       SELECT t.name, i.name AS i_name, i.\"unique\" AS uniq, i.partial, i.origin, \
         (SELECT group_concat(x.name, ', ') FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno) x) AS columns \
       FROM sqlite_schema t JOIN pragma_index_list(t.name) i WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND t.name <> '_sqlx_migrations')",
    "SELECT 'foreign key ' || t.name || '.' || f.\"from\" || ' to ' || f.\"table\" || '.' || f.\"to\" || ' on delete ' || lower(f.on_delete) \
     FROM sqlite_schema t JOIN pragma_foreign_key_list(t.name) f WHERE t.type = 'table'",
    "SELECT 'checks of ' || name || ': ' || ((length(sql) - length(replace(sql, 'CHECK (', ''))) / 7) FROM sqlite_schema \
     WHERE type = 'table' AND sql LIKE '%CHECK (%' AND name NOT LIKE 'sqlite%' AND name <> '_sqlx_migrations'",
];

const POSTGRES: [&str; 4] = [
    "SELECT 'column ' || c.table_name || '.' || c.column_name || ' ' || CASE c.data_type WHEN 'uuid' THEN 'id' WHEN 'bigint' THEN 'number' \
       WHEN 'text' THEN 'text' ELSE c.data_type END || CASE WHEN c.is_nullable = 'NO' THEN ' required' ELSE '' END || \
       CASE WHEN c.column_default IS NULL THEN '' ELSE ' default' END \
     FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name) \
     WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' AND c.table_name <> '_sqlx_migrations'",
    "SELECT 'index on ' || t.relname || ' (' || (SELECT string_agg(a.attname, ', ' ORDER BY k.n) FROM unnest(i.indkey) WITH ORDINALITY AS k(attnum, n) \
         JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum) || ')' || CASE WHEN i.indisunique THEN ' unique' ELSE '' END || \
       CASE WHEN i.indpred IS NOT NULL THEN ' partial' ELSE '' END || \
       CASE WHEN i.indisprimary THEN ' primary' WHEN c.oid IS NOT NULL THEN '' ELSE ' named ' || x.relname END \
     FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid \
     LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype IN ('p', 'u') \
     WHERE t.relnamespace = 'public'::regnamespace AND t.relname <> '_sqlx_migrations'",
    "SELECT 'foreign key ' || t.relname || '.' || a.attname || ' to ' || r.relname || '.' || b.attname || ' on delete ' || \
       CASE c.confdeltype WHEN 'c' THEN 'cascade' WHEN 'a' THEN 'no action' ELSE c.confdeltype::text END \
     FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid JOIN pg_class r ON r.oid = c.confrelid \
     JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1] JOIN pg_attribute b ON b.attrelid = c.confrelid AND b.attnum = c.confkey[1] \
     WHERE c.contype = 'f'",
    "SELECT 'checks of ' || t.relname || ': ' || count(*) FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid \
     WHERE c.contype = 'c' AND t.relnamespace = 'public'::regnamespace GROUP BY t.relname",
];

async fn facts(database: &TestDatabase) -> Facts {
    database.open(Clock::system(), Entropy::seeded(1)).await.close().await;
    let mut facts = Facts::new();
    for sql in if database.dialect == Dialect::Sqlite { SQLITE } else { POSTGRES } {
        let before = facts.len();
        facts.extend(database.fetch(sql).await.into_iter().map(|row| match &row[0] {
            Value::String(fact) => fact.clone(),
            other => panic!("{other} is not a fact"),
        }));
        assert!(facts.len() > before, "nothing found by {sql}");
    }
    facts
}

#[tokio::test(flavor = "multi_thread")]
async fn both_schemas_are_the_same() {
    let (sqlite, postgres) = (facts(&TestDatabase::sqlite().await).await, facts(&TestDatabase::postgres().await).await);
    let only = |one: &Facts, other: &Facts| one.difference(other).cloned().collect::<Vec<_>>();
    let (in_sqlite, in_postgres) = (only(&sqlite, &postgres), only(&postgres, &sqlite));
    assert!(in_sqlite.is_empty() && in_postgres.is_empty(), "only SQLite: {in_sqlite:#?}\nonly PostgreSQL: {in_postgres:#?}");
}

/// The texts themselves, so that conditions of CHECKs and of partial indexes agree too. A later migration whose dialects must part is left out here by name.
#[test]
fn both_first_migrations_say_the_same() {
    let statements = |text: &str| -> Vec<String> {
        let without_comments: String = text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect::<Vec<_>>().join(" ");
        without_comments
            .replace("BLOB", "UUID")
            .replace("WITHOUT ROWID", "")
            .split(';')
            .map(|statement| statement.split_whitespace().collect::<Vec<_>>().join(" "))
            .filter(|statement| !statement.is_empty() && !statement.starts_with("CREATE VIEW"))
            .collect()
    };
    let sqlite = statements(include_str!("../../migrations/sqlite/0001_initial.sql"));
    let postgres = statements(include_str!("../../migrations/postgres/0001_initial.sql"));
    assert!(sqlite.len() > 40);
    assert_eq!(sqlite, postgres);
}
