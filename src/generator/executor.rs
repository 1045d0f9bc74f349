//! The generator as the engine's executor: one attempt at a `protocol` task.
//!
//! A crash anywhere costs what was not noted yet: the next attempt starts from the stored agenda, skips every step whose key is known, and comes to the same bytes.

use super::{
    Generator, Halt, Journal, Meter,
    collect::Collector,
    files::FileRoom,
    merge::{self, Draft, Press},
    number, publish,
};
use crate::{
    domain::{
        failure::{Failure, FailureCode, Retryable},
        ids::AgendaId,
        protocol::NewProtocol,
        task::Phase,
    },
    engine::{Decision, Done, Run, TaskExecutor},
    store::protocol,
};
use futures::future::BoxFuture;

impl TaskExecutor for Generator {
    fn execute(&self, run: Run) -> BoxFuture<'_, Decision> {
        Box::pin(async move {
            // Dropping the work in the middle is what a crash does, too: nothing is lost but the step it was at.
            let outcome = tokio::select! {
                biased;
                () = run.cancelled().cancelled() => Err(Halt::Stopped),
                outcome = self.attempt(&run) => outcome,
            };
            match outcome {
                Ok(done) => Decision::Done(done),
                Err(Halt::Failed(failure)) => Decision::from(*failure),
                Err(Halt::Stopped) => Decision::Retry(Failure::new(FailureCode::Internal, "The attempt was stopped.")),
            }
        })
    }
}

impl Generator {
    async fn attempt(&self, run: &Run) -> Result<Done, Halt> {
        let parts = self.parts();
        let Some(id) = run.task().agenda_id.as_ref() else {
            return Err(Failure::new(FailureCode::Internal, "The task names no agenda.").into());
        };
        let journal = Journal::Task { db: &parts.db, run, clock: &parts.work.clock };
        let meter = Meter::default();
        let done = Box::pin(self.phases(run, id, &journal, &meter)).await;
        if let Err(Halt::Failed(failure)) = &done
            // What is not tried again has nothing to forget: a replay reads everything anew.
            && failure.retryable != Retryable::No
            && (failure.code.is_about_the_agenda() || failure.code == FailureCode::ReportUnavailable)
        {
            let room =
                FileRoom { source: &parts.work.source, outside: &parts.work.outside, store: &parts.work.store, settings: &parts.settings };
            let collector = Collector { id, id_is_asked: true, room, clock: &parts.work.clock, journal: &journal, meter: &meter };
            collector.forget().await?;
        }
        done
    }

    async fn phases(&self, run: &Run, id: &AgendaId, journal: &Journal<'_>, meter: &Meter) -> Result<Done, Halt> {
        let parts = self.parts();
        let work = &parts.work;
        let examined = work.examine(id, true, &parts.settings, journal, meter).await?;
        if let Some(failure) = examined.failure() {
            return Err(failure.into());
        }
        let number =
            number::reserve(&parts.db, run, &examined.collected, id, work.clock.now()).await.map_err(|halt| halt.in_phase(Phase::Check))?;
        let draft = Draft::of(examined.collected, number, examined.warnings, &parts.settings.formats).await;

        let documents = if let Some(documents) = self.newest_if_same(run, id, &draft).await? {
            meter.add(parts.settings.formats.len());
            documents
        } else {
            let press = Press {
                store: &work.store,
                renderer: &*parts.renderer,
                work_dir: &parts.work_dir,
                formats: &parts.settings.formats,
                cancelled: run.cancelled(),
            };
            work.timed(Phase::Merge, Box::pin(merge::merge(&draft, press, journal, meter))).await?
        };
        let publish = async {
            journal.progress(Phase::Publish, meter.progress()).await?;
            let now = work.clock.now();
            let new = NewProtocol {
                id: parts.entropy.id(now),
                agenda_id: id.clone(),
                number: draft.number.clone(),
                fingerprint: draft.fingerprint.clone(),
                record: draft.record.clone(),
                documents,
            };
            journal.done(Phase::Publish, meter.add(1), Vec::new()).await?;
            Ok(publish::publish(new, run.task().id, now))
        };
        work.timed(Phase::Publish, publish).await
    }

    /// The documents of the agenda's newest protocol, if this would be it again: nothing is typeset then, whatever became of the step cache.
    async fn newest_if_same(
        &self,
        run: &Run,
        id: &AgendaId,
        draft: &Draft,
    ) -> Result<Option<Vec<crate::domain::protocol::Document>>, Halt> {
        let find = || {
            let agenda_id = id.clone();
            self.parts().db.read("find_newest_protocol", move |tx| {
                let agenda_id = agenda_id.clone();
                Box::pin(async move { protocol::newest(tx, &agenda_id).await })
            })
        };
        let newest = run.patiently("looking for the newest protocol", find).await??;
        Ok(newest.filter(|newest| newest.fingerprint == draft.fingerprint).map(|newest| newest.documents))
    }
}
