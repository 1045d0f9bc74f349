//! The ways that the databases take through queries that run all the time. SQLite plans without statistics, PostgreSQL with those of an earlier hour: left to
//! themselves they would walk through everything that waits just when much waits.

use crate::support::TestDatabase;
use protocol_bridge::{
    base::{clock::Clock, entropy::Entropy},
    store::queries,
};
use sqlx::{Connection as _, Executor as _, Row as _};

/// Query, and what its plan has to say.
const TAKES: &[(&str, &str)] = &[
    ("task::due", "USING INDEX task_due ((next_attempt_us,id)>"),
    ("task::claim", "USING INDEX sqlite_autoindex_task_1 (id=?)"),
    ("task::end", "USING INDEX sqlite_autoindex_task_1 (id=?)"),
    ("task::expired", "USING INDEX task_lease"),
    ("task::active pending", "USING COVERING INDEX task_due"),
    ("task::finished", "USING COVERING INDEX task_status"),
    ("dead_letter::open_by_reason", "USING COVERING INDEX dead_letter_open_reason"),
    ("legacy_call::SINCE", "USING INDEX legacy_call_day"),
    ("outbox::unpublished", "USING INDEX outbox_unpublished (available_us<?)"),
    ("task::active_of_agenda", "USING INDEX task_active_agenda"),
    ("attempt::close", "USING INDEX sqlite_autoindex_attempt_2"),
    ("outbox::claim_due", "USING INDEX outbox_unpublished"),
    ("outbox::next_due", "INDEX outbox_unpublished"),
    ("outbox::delete_unpublished", "USING INDEX outbox_task"),
    ("idempotency::expire", "INDEX idempotency_key_task"),
    ("event::any_unplaced", "INDEX sqlite_autoindex_event_2 (position=?)"),
    ("event::after", "INDEX sqlite_autoindex_event_2 (position>?)"),
    ("event::of_agenda_after", "INDEX event_agenda (agenda_id=? AND position>?)"),
    ("delivery::due_lanes", "INDEX delivery_due (lane>?)"),
    ("delivery::claim", "INDEX delivery_due (lane=?"),
    ("retention::tasks", "INDEX task_finished"),
    ("retention::dead_letters", "INDEX dead_letter_failed"),
    ("retention::dead_letters_of_tasks", "INDEX dead_letter_task"),
    ("retention::outbox", "INDEX outbox_published"),
    ("retention::inbox", "INDEX inbox_received"),
    ("retention::events", "INDEX event_created"),
    ("retention::steps", "INDEX step_cache_used"),
    ("retention::idempotency_keys", "INDEX idempotency_key_expires"),
];

#[tokio::test(flavor = "multi_thread")]
async fn queries_that_run_all_the_time_take_their_indexes() {
    let database = TestDatabase::sqlite().await;
    database.open(Clock::system(), Entropy::seeded(1)).await.close().await;
    let mut connection = database.sqlite_connection().await;
    let mut astray = Vec::new();
    for (name, takes) in TAKES {
        let (_, sql) = queries().find(|(query, _)| query == name).unwrap_or_else(|| panic!("there is no query {name}"));
        let rows =
            connection.fetch_all(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", sql.sqlite))).await.expect("it can be planned");
        let plan: Vec<String> = rows.iter().map(|row| row.get::<String, _>("detail")).collect();
        let plan = plan.join("\n    ");
        if !plan.contains(takes) || (plan.contains("TEMP B-TREE") && *name != "task::expired") {
            astray.push(format!("{name} does not say {takes:?}:\n    {plan}"));
        }
    }
    assert!(astray.is_empty(), "{}", astray.join("\n"));
}

/// Query, and the only indexes that PostgreSQL may use for it.
const TAKES_ON_POSTGRES: &[(&str, &[&str])] = &[
    ("task::due", &["task_due"]),
    ("task::claim", &["task_pkey"]),
    ("task::end", &["task_pkey"]),
    ("task::renew", &["task_pkey"]),
    ("task::held", &["task_pkey"]),
    ("task::expired", &["task_lease", "task_status"]),
    ("attempt::close", &["attempt_task_id_claim_no_key"]),
    ("outbox::claim_due", &["outbox_unpublished", "outbox_pkey"]),
    ("outbox::next_due", &["outbox_unpublished"]),
    ("outbox::mark_published", &["outbox_pkey"]),
    ("outbox::mark_tasks", &["outbox_task"]),
    ("outbox::delete_unpublished", &["outbox_task"]),
    ("idempotency::expire", &["idempotency_key_task"]),
];

/// Twenty thousand tasks that came after PostgreSQL last counted.
const A_BURST: &[&str] = &[
    "ALTER TABLE task SET (autovacuum_enabled = false)",
    "ALTER TABLE outbox SET (autovacuum_enabled = false)",
    "ALTER TABLE attempt SET (autovacuum_enabled = false)",
    "INSERT INTO task (id, kind, payload, status, claim_no, attempt_no, max_attempts, run_at_us, next_attempt_us, steps_done, steps_known, caller, revision, \
       created_us, finished_us) \
     SELECT gen_random_uuid(), 'demo', '{}', 'COMPLETED', 1, 1, 5, n, n, 0, 0, 'test', 1, n, n FROM generate_series(1, 20000) AS n",
    "INSERT INTO outbox (message_id, task_id, envelope_type, payload, available_us, send_attempts, published_us, created_us) \
     SELECT gen_random_uuid(), id, 'ProcessTask', '{}', created_us, 0, created_us, created_us FROM task",
    "INSERT INTO attempt (id, task_id, claim_no, attempt_no, worker_id, started_us, ended_us, outcome) \
     SELECT gen_random_uuid(), id, 1, 1, id, created_us, created_us, 'completed' FROM task",
    "ANALYZE task, outbox, attempt",
    "INSERT INTO task (id, kind, payload, status, claim_no, attempt_no, max_attempts, run_at_us, next_attempt_us, steps_done, steps_known, caller, revision, \
       created_us) \
     SELECT gen_random_uuid(), 'demo', '{}', 'PENDING', 0, 0, 5, n, n, 0, 0, 'test', 0, n FROM generate_series(1, 20000) AS n",
    "INSERT INTO outbox (message_id, task_id, envelope_type, payload, available_us, send_attempts, created_us) \
     SELECT gen_random_uuid(), id, 'ProcessTask', '{}', created_us, 0, created_us FROM task WHERE status = 'PENDING'",
    "SET plan_cache_mode = force_generic_plan",
    // As our sessions have it.
    "SET random_page_cost = 1.1",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_that_postgres_has_not_counted_yet_is_not_walked_through_for_each_batch() {
    let database = TestDatabase::postgres().await;
    database.open(Clock::system(), Entropy::seeded(1)).await.close().await;
    let mut connection = sqlx::PgConnection::connect(&database.url).await.expect("a connection");
    for statement in A_BURST {
        connection.execute(*statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    let mut astray = Vec::new();
    for (name, may_take) in TAKES_ON_POSTGRES {
        let (_, sql) = queries().find(|(query, _)| query == name).unwrap_or_else(|| panic!("there is no query {name}"));
        let parameters = (1..100).take_while(|number| sql.postgres.contains(&format!("${number}"))).count();
        let explain =
            format!("PREPARE one AS {}; EXPLAIN EXECUTE one({}); DEALLOCATE one", sql.postgres, vec!["NULL"; parameters].join(", "));
        let rows = connection.fetch_all(sqlx::AssertSqlSafe(explain)).await.expect("it can be planned");
        let plan: Vec<String> = rows.iter().map(|row| row.get::<String, _>(0)).collect();
        let strays = |line: &&String| {
            let index = line
                .split_once("Index Scan using ")
                .or_else(|| line.split_once("Index Only Scan using "))
                .or_else(|| line.split_once("Bitmap Index Scan on "));
            let other = index.is_some_and(|(_, rest)| !may_take.contains(&rest.split(' ').next().unwrap_or_default()));
            other || line.contains("Seq Scan on")
        };
        if plan.iter().any(|line| strays(&line)) {
            astray.push(format!("{name}:\n    {}", plan.join("\n    ")));
        }
    }
    assert!(astray.is_empty(), "{}", astray.join("\n"));
}
