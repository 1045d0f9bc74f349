//! Whether what is in the database adds up: every accepted task has one end, and everything that goes with an end is there once.
//!
//! One query for each thing that must not be, the same text on both databases; whatever a query finds is a difference. For use when the system is at rest, after
//! whatever was done to it.

use super::TestDatabase;
use serde_json::Value;
use std::collections::BTreeSet;

/// What callers were told.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// Tasks that were named in the answer to a submission.
    pub accepted: BTreeSet<String>,
    /// Submissions that ended with an error: each may have been accepted all the same, as one task at most.
    pub unknown: usize,
    /// Tasks that somebody was told are cancelled.
    pub cancelled: BTreeSet<String>,
    /// Scope and key of a submission, and the task that it led to.
    pub keys: BTreeSet<(String, String, String)>,
}

/// What must not be, and the query that finds it.
const MUST_NOT_BE: &[(&str, &str)] = &[
    ("a task that has not ended", "SELECT id, status FROM task WHERE status IN ('PENDING', 'IN_PROGRESS')"),
    (
        "a task that completed other than once",
        "SELECT id, status FROM task t WHERE (SELECT COUNT(*) FROM attempt a WHERE a.task_id = t.id AND a.outcome = 'completed') \
         <> CASE WHEN status = 'COMPLETED' THEN 1 ELSE 0 END",
    ),
    (
        "an attempt after the one that completed",
        "SELECT a.task_id, a.claim_no FROM attempt a JOIN task t ON t.id = a.task_id WHERE a.outcome = 'completed' AND a.claim_no <> t.claim_no",
    ),
    (
        "a claim without an attempt, or the other way round",
        "SELECT id, claim_no FROM task t WHERE claim_no <> (SELECT COUNT(*) FROM attempt a WHERE a.task_id = t.id) \
         OR claim_no <> (SELECT COALESCE(MAX(claim_no), 0) FROM attempt a WHERE a.task_id = t.id)",
    ),
    (
        "an open attempt of a task that does not run, or the other way round",
        "SELECT id, status FROM task t WHERE (SELECT COUNT(*) FROM attempt a WHERE a.task_id = t.id AND a.ended_us IS NULL) \
         <> CASE WHEN status = 'IN_PROGRESS' THEN 1 ELSE 0 END",
    ),
    (
        "an attempt that began before the last one ended",
        "SELECT b.task_id, b.claim_no FROM attempt a JOIN attempt b ON b.task_id = a.task_id AND b.claim_no = a.claim_no + 1 \
         WHERE a.ended_us IS NULL OR b.started_us < a.ended_us",
    ),
    ("more attempts than allowed", "SELECT id, attempt_no FROM task WHERE attempt_no > max_attempts"),
    (
        "a FAILED task without its one dead letter that was not replayed, or the other way round",
        "SELECT id, status FROM task t WHERE (SELECT COUNT(*) FROM dead_letter d WHERE d.task_id = t.id AND d.replayed_us IS NULL) \
         <> CASE WHEN status = 'FAILED' THEN 1 ELSE 0 END",
    ),
    ("a dead letter of no task", "SELECT id FROM dead_letter d WHERE NOT EXISTS (SELECT 1 FROM task t WHERE t.id = d.task_id)"),
    (
        "a completion told other than once",
        "SELECT id, status FROM task t WHERE kind = 'protocol' AND (SELECT COUNT(*) FROM event e WHERE e.task_id = t.id \
         AND e.type = 'ObesrabuoProtocolGenerationCompleted') <> CASE WHEN status = 'COMPLETED' THEN 1 ELSE 0 END",
    ),
    (
        "a cancel told other than once",
        "SELECT id, status FROM task t WHERE kind = 'protocol' AND (SELECT COUNT(*) FROM event e WHERE e.task_id = t.id \
         AND e.type = 'ObesrabuoProtocolGenerationCancelled') <> CASE WHEN status = 'CANCELLED' THEN 1 ELSE 0 END",
    ),
    (
        "a failure told other than once",
        "SELECT id, status FROM task t WHERE kind = 'protocol' AND (SELECT COUNT(*) FROM event e WHERE e.task_id = t.id \
         AND e.type = 'ObesrabuoProtocolGenerationFailed') <> (SELECT COUNT(*) FROM dead_letter d WHERE d.task_id = t.id)",
    ),
    (
        "an event of no protocol task",
        "SELECT id FROM event e WHERE NOT EXISTS (SELECT 1 FROM task t WHERE t.id = e.task_id AND t.kind = 'protocol')",
    ),
    ("a message of no task", "SELECT message_id FROM outbox o WHERE NOT EXISTS (SELECT 1 FROM task t WHERE t.id = o.task_id)"),
    ("a message taken for no task", "SELECT message_id FROM inbox i WHERE NOT EXISTS (SELECT 1 FROM task t WHERE t.id = i.task_id)"),
    ("a message that was never sent", "SELECT message_id, task_id FROM outbox WHERE published_us IS NULL"),
    (
        "a completed protocol task without its protocol, or the other way round",
        "SELECT id, status FROM task t WHERE kind = 'protocol' AND (SELECT COUNT(*) FROM protocol p WHERE p.id = t.protocol_id \
         AND p.agenda_id = t.agenda_id) <> CASE WHEN status = 'COMPLETED' THEN 1 ELSE 0 END",
    ),
    (
        "a protocol that its own task does not name",
        "SELECT id FROM protocol p WHERE NOT EXISTS (SELECT 1 FROM task t WHERE t.id = p.task_id AND t.protocol_id = p.id)",
    ),
    ("a version left out", "SELECT agenda_id FROM protocol GROUP BY agenda_id HAVING COUNT(*) <> MAX(version) OR MIN(version) <> 1"),
    (
        "a key of no task, or one that expires while its task is active, or never",
        "SELECT k.scope, k.key FROM idempotency_key k LEFT JOIN task t ON t.id = k.task_id \
         WHERE t.id IS NULL OR (k.expires_us IS NULL) <> (t.finished_us IS NULL)",
    ),
];

/// Everything that does not add up, in words; empty: it does.
pub async fn differences(database: &TestDatabase, told: &Told) -> Vec<String> {
    let mut differences = Vec::new();
    for (what, query) in MUST_NOT_BE {
        let found = database.fetch(query).await;
        if !found.is_empty() {
            differences.push(format!("{what}: {}", Value::from_iter(found)));
        }
    }
    let rows = database.fetch("SELECT id, status FROM task").await;
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let stored: BTreeSet<String> = rows.iter().map(|row| text(&row[0])).collect();
    let lost: Vec<_> = told.accepted.difference(&stored).collect();
    if !lost.is_empty() {
        differences.push(format!("accepted and gone: {lost:?}"));
    }
    let nobodys = stored.len().saturating_sub(told.accepted.len());
    if nobodys > told.unknown {
        differences.push(format!("{nobodys} tasks that nobody was told of, and only {} submissions whose end is unknown", told.unknown));
    }
    for row in &rows {
        if told.cancelled.contains(&text(&row[0])) && row[1] != "CANCELLED" {
            differences.push(format!("told to be cancelled and not so: {row:?}"));
        }
    }
    // What was done by hand has its entry, and only that.
    for (action, query) in [
        ("task.cancel", "SELECT id FROM task WHERE status = 'CANCELLED'"),
        ("dead-letter.replay", "SELECT id FROM dead_letter WHERE replayed_us IS NOT NULL"),
        ("dead-letter.dismiss", "SELECT id FROM dead_letter WHERE dismissed_us IS NOT NULL"),
    ] {
        let sorted = |rows: Vec<Vec<Value>>| {
            let mut objects: Vec<String> = rows.iter().map(|row| text(&row[0])).collect();
            objects.sort();
            objects
        };
        let done = sorted(database.fetch(query).await);
        let entered = sorted(database.fetch(&format!("SELECT object FROM audit WHERE action = '{action}'")).await);
        if done != entered {
            differences.push(format!("{action}: done to {done:?}, and on record for {entered:?}"));
        }
    }
    let keys: BTreeSet<_> = database
        .fetch("SELECT scope, key, task_id FROM idempotency_key")
        .await
        .iter()
        .map(|row| (text(&row[0]), text(&row[1]), text(&row[2])))
        .collect();
    for key in told.keys.difference(&keys) {
        differences.push(format!("a key that does not answer its task: {key:?}"));
    }
    differences
}

/// Fails with everything that does not add up.
pub async fn reconcile(database: &TestDatabase, told: &Told) {
    let differences = differences(database, told).await;
    assert!(differences.is_empty(), "it does not add up:\n{}", differences.join("\n"));
}
