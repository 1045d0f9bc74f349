//! Replaying what matches a filter: newest first, each in a transaction of its own, so that one that cannot be replayed stands in nobody's way. Of several of one
//! agenda the newest goes; the others are skipped while it is active.
//!
//! A call is bounded in rows and time and says where to go on. Newest first it comes to an end even when what was replayed fails again meanwhile: the new dead
//! letters lie behind it. On a crash in the middle those done are done, and asking again goes on with the rest.

use super::{
    core::{Core, is_permanent},
    facade::Replayed,
    replay::replay,
};
use crate::{
    base::chain::chain,
    domain::{
        audit::Author,
        cursor::{Cursor, Page},
        ids::DeadLetterId,
        task::Phase,
    },
    store::{self, dead_letter, dead_letter::DeadLetterFilter},
};
use futures::FutureExt as _;
use std::time::Duration;

/// A call ends soon after this, however many rows are left: its caller waits.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is to be replayed, and how.
#[derive(Debug, Clone, Default)]
pub struct ReplayMany {
    /// Only what is open is looked at, whatever it says.
    pub filter: DeadLetterFilter,
    pub from_phase: Option<Phase>,
    /// Where the last call ended.
    pub cursor: Option<Cursor>,
    /// The most dead letters to look at.
    pub limit: usize,
    /// Only count.
    pub dry_run: bool,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplayedMany {
    /// How many open ones matched when the call began.
    pub matching: u64,
    pub replayed: u64,
    pub skipped: Vec<Skipped>,
    /// There may be more: where to go on.
    pub next_cursor: Option<Cursor>,
}

/// One that was not replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    pub id: DeadLetterId,
    /// `agenda-busy`, `already-replayed`, `not-found` (its task is past its retention) or `internal` (the log says more).
    pub reason: &'static str,
}

pub(super) async fn replay_many(core: &Core, ask: &ReplayMany, author: &Author) -> store::Result<ReplayedMany> {
    let deadline = core.clock.monotonic() + PATIENCE;
    let filter = DeadLetterFilter { open_only: true, ..ask.filter.clone() };
    let (cursor, limit) = (ask.cursor, ask.limit);
    let work = store::work(move |tx| {
        let filter = filter.clone();
        async move { Ok((dead_letter::count(tx, &filter).await?, dead_letter::list(tx, &filter, cursor, limit + 1).await?)) }.boxed()
    });
    let (matching, letters) = core.db.read("dead_letters", work).await?;
    let mut answer = ReplayedMany { matching, ..ReplayedMany::default() };
    if ask.dry_run {
        return Ok(answer);
    }
    let Page { items, next_cursor } = Page::from_rows(letters, limit, |letter| Cursor { at: letter.failed_at, id: letter.id.0 });
    answer.next_cursor = next_cursor;
    for letter in items {
        let reason = match replay(core, letter.id, ask.from_phase, author).await {
            Ok(Replayed::Queued(_)) => None,
            Ok(Replayed::AgendaBusy(_)) => Some("agenda-busy"),
            Ok(Replayed::AlreadyReplayed) => Some("already-replayed"),
            Ok(Replayed::Unknown) => Some("not-found"),
            Err(error) if is_permanent(&error) => {
                tracing::error!(deadLetterId = %letter.id, taskId = %letter.task_id, error = chain(&error), "a dead letter cannot be replayed");
                Some("internal")
            }
            Err(error) => return Err(error),
        };
        match reason {
            None => answer.replayed += 1,
            Some(reason) => answer.skipped.push(Skipped { id: letter.id, reason }),
        }
        if core.clock.monotonic() >= deadline {
            // The next page may begin here; that it may be empty does no harm.
            answer.next_cursor = Some(Cursor { at: letter.failed_at, id: letter.id.0 });
            break;
        }
    }
    Ok(answer)
}
