//! The account of one call: its WARN line, its entry in the ledger and its outcome, each exactly once however the call ends.

use crate::{
    base::{
        clock::{Clock, Monotonic},
        metrics,
        shutdown::Shutdown,
    },
    callers::{Identity, Ledger, ledger::Entry},
    domain::ids::TaskId,
};
use std::time::Duration;
use tokio::task::JoinHandle;

/// How long an answer may wait for its call to be on record.
const LEDGER_PATIENCE: Duration = Duration::from_millis(500);

/// One call's account. Dropped while open, as when a client hangs up, it counts as `disconnected`.
#[derive(Debug)]
pub(super) struct Record {
    ledger: Ledger,
    clock: Clock,
    shutdown: Shutdown,
    entry: Entry,
    caller: String,
    agenda_id: String,
    trace_id: String,
    since: Monotonic,
    noted: bool,
    open: bool,
}

impl Record {
    pub(super) fn open(
        ledger: Ledger,
        clock: Clock,
        shutdown: Shutdown,
        identity: &Identity,
        agenda_id: &str,
        trace_id: &str,
        since: Monotonic,
    ) -> Self {
        let entry = ledger.open(identity);
        let (caller, agenda_id, trace_id) = (identity.caller.name.clone(), agenda_id.to_owned(), trace_id.to_owned());
        Self { ledger, clock, shutdown, entry, caller, agenda_id, trace_id, since, noted: false, open: true }
    }

    /// The name under which the ledger keeps the call.
    pub(super) fn name(&self) -> &str {
        self.entry.name()
    }

    pub(super) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The entry was committed together with the submit or join of `task`.
    pub(super) fn committed_with(&mut self, task: TaskId) {
        self.warn(Some(task));
        self.note(true);
    }

    /// The call is answered from an earlier task: there is no submit to commit with.
    pub(super) async fn answered_from(&mut self, task: TaskId) {
        self.warn(Some(task));
        self.stored().await;
    }

    /// The call came to no task.
    pub(super) async fn refused(&mut self) {
        self.warn(None);
        self.stored().await;
    }

    /// Returns when the call is on record in the database: a caller's only call of the month must not be forgotten if the process dies right after its answer.
    /// A database that is away keeps nobody waiting for long.
    async fn stored(&mut self) {
        let Some(written) = self.note(false) else { return };
        tokio::select! {
            _ = written => {}
            () = self.clock.sleep(LEDGER_PATIENCE) => {}
        }
    }

    pub(super) fn close(mut self, outcome: &'static str) {
        self.end(outcome);
    }

    /// The line by which people see who still has to move; its text is a contract.
    fn warn(&self, task: Option<TaskId>) {
        let caller = &self.caller;
        tracing::warn!(
            taskId = task.map(tracing::field::display),
            agendaId = self.agenda_id,
            traceId = self.trace_id,
            "Sync v1 called by {caller}, migrate to task-based"
        );
    }

    /// Hands the entry to the ledger; what comes back ends when it is written, if it is to be written at once.
    fn note(&mut self, written: bool) -> Option<JoinHandle<()>> {
        self.noted = true;
        let ledger = self.ledger.clone();
        self.ledger.settle(&self.entry, written).then(|| self.shutdown.spawn("ledger", async move { ledger.flush().await }))
    }

    fn end(&mut self, outcome: &'static str) {
        self.open = false;
        self.ledger.count(&self.entry, outcome);
        metrics::LEGACY_WAIT.record(&[outcome], self.clock.monotonic().since(self.since));
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.open {
            if !self.noted {
                // Hung up while the submit was on its way: it may commit all the same. A call counted twice is better than one forgotten.
                self.warn(None);
                self.note(false);
            }
            self.end("disconnected");
        }
    }
}
