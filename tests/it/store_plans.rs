//! The ways that SQLite takes through queries that run all the time. It plans without statistics: left to itself it would walk through everything that waits
//! just when much waits.

use crate::support::TestDatabase;
use protocol_bridge::{
    base::{clock::Clock, entropy::Entropy},
    store::queries,
};
use sqlx::{Executor as _, Row as _};

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
