//! Every query is listed, and prepares on both databases: what the compiler checks where SQL is known to it. Every transaction's name is declared.

use crate::support::{TestDatabase, on_both_databases};
use protocol_bridge::{
    base::{clock::Clock, entropy::Entropy, metrics},
    store::{Dialect, queries},
};
use sqlx::Executor as _;
use std::{fs, path::Path};

on_both_databases! {
    async fn every_query_prepares(database: TestDatabase) {
        database.open(Clock::system(), Entropy::seeded(1)).await.close().await;
        let mut refused = Vec::new();
        match database.dialect {
            Dialect::Sqlite => {
                let mut connection = database.sqlite_connection().await;
                for (name, sql) in queries() {
                    if let Err(error) = connection.prepare(sqlx::SqlStr::from_static(sql.sqlite)).await {
                        refused.push(format!("{name}: {error}\n  {}", sql.sqlite));
                    }
                }
            }
            Dialect::Postgres => {
                let mut connection = database.postgres_connection().await;
                for (name, sql) in queries() {
                    if let Err(error) = connection.prepare(sqlx::SqlStr::from_static(sql.postgres)).await {
                        refused.push(format!("{name}: {error}\n  {}", sql.postgres));
                    }
                }
            }
        }
        assert!(refused.is_empty(), "{}", refused.join("\n"));
    }
}

/// Found in the source text: a transaction whose name the metric does not know would be counted as "other" only.
#[test]
fn every_transaction_is_known_to_the_metric() {
    let mut unknown = Vec::new();
    let mut known = 0;
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut |file, text| {
        for call in [".transaction(", ".urgent(", ".read("] {
            for (at, _) in text.match_indices(call) {
                let Some((name, rest)) = text[at + call.len()..].trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"'))
                else {
                    continue;
                };
                // Others have a method of such a name too; a transaction's name is followed by its work.
                if !rest.starts_with(',') {
                    continue;
                }
                if metrics::TRANSACTIONS.contains(&name) { known += 1 } else { unknown.push(format!("{file}: {name}")) }
            }
        }
    });
    assert!(unknown.is_empty(), "add to metrics::TRANSACTIONS: {unknown:#?}");
    assert!(known > 10, "only {known} found");
}

/// Found in the source text: a query that is in no list would be prepared by no test.
#[test]
fn every_query_is_listed() {
    let mut declared = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store"), &mut |file, text| {
        for line in text.lines() {
            let line = line.trim_start().trim_start_matches("pub ");
            if let Some((name, _)) = line.strip_prefix("const ").and_then(|rest| rest.split_once(": Sql =")) {
                // As in ("task::find", FIND).
                assert!(text.contains(&format!(", {name})")), "{file}: {name} is not in ALL");
                declared.push(format!("{file}: {name}"));
            }
        }
    });
    let listed = queries().count();
    assert!(listed > 50, "only {listed} queries are listed");
    assert_eq!(
        declared.len(),
        listed,
        "`store::queries` lists {listed} of these; does `queries.rs` name every file, and every file's ALL each of its queries? {declared:#?}"
    );
    let mut names: Vec<_> = queries().map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), listed, "two queries have the same name");
}

fn sources(folder: &Path, look: &mut dyn FnMut(&str, &str)) {
    for entry in fs::read_dir(folder).expect("the sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, look);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            look(&path.strip_prefix(env!("CARGO_MANIFEST_DIR")).expect("inside").display().to_string(), &text);
        }
    }
}
