//! Every query of the crate by name, so that one test can prepare them all on both databases.

use super::{
    Sql, attempt, audit, callback, caller, checkpoint, database_time, dead_letter, delivery, document, event, idempotency, inbox,
    legacy_call, look, migrate, outbox, owed_answer, protocol, protocol_number, retention, sessions, setting, step_cache, subscription,
    task, task_follower, wakeups,
};

/// The files that hold queries; a test finds the one that is not named here.
const FILES: &[&[(&str, Sql)]] = &[
    attempt::ALL,
    audit::ALL,
    callback::ALL,
    caller::ALL,
    checkpoint::ALL,
    database_time::ALL,
    dead_letter::ALL,
    delivery::ALL,
    document::ALL,
    event::ALL,
    idempotency::ALL,
    inbox::ALL,
    legacy_call::ALL,
    look::ALL,
    migrate::ALL,
    outbox::ALL,
    owed_answer::ALL,
    protocol::ALL,
    protocol_number::ALL,
    retention::ALL,
    sessions::ALL,
    setting::ALL,
    step_cache::ALL,
    subscription::ALL,
    task_follower::ALL,
    wakeups::ALL,
];

/// Name and text of every query.
pub fn queries() -> impl Iterator<Item = (&'static str, Sql)> {
    FILES.iter().chain(task::ALL).flat_map(|queries| queries.iter().copied())
}
