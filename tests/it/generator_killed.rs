//! `kill -9`, or what amounts to it, at every boundary of a task's steps: the next process comes to the same bytes and asks for what was missing only.

use crate::{
    generator_node::{LIMIT, Setup},
    generator_tasks::{FILES, serve, service, source, with_files},
    support::{
        TestDatabase,
        agenda_server::{AgendaServer, answer, stalling},
        eventually, on_both_databases,
    },
};
use futures::future::BoxFuture;
use protocol_bridge::{
    domain::{
        protocol::{Format, Protocol},
        task::Status,
    },
    generator::{
        InProcessRenderer,
        renderer::{RenderError, Rendered, Renderer},
    },
    store::Fault,
};
use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use tokio_util::sync::CancellationToken;

on_both_databases! {
    /// Killed while it asks for each thing in turn, and while it typesets: the next process finishes with the same bytes and asks for what was missing only.
    async fn a_killed_task_is_finished_by_the_next_process_to_the_same_bytes(database: TestDatabase) {
        let kill_at = Arc::new(AtomicUsize::new(usize::MAX));
        let reached = CancellationToken::new();
        let agenda = Arc::new(Mutex::new(with_files("a")));
        let (at, signal) = (Arc::clone(&kill_at), Arc::new(Mutex::new(reached.clone())));
        let signals = Arc::clone(&signal);
        let server = AgendaServer::start(move |seen, _| {
            let number = seen.path.strip_suffix(".pdf").and_then(|path| path.rsplit('/').next()?.parse::<usize>().ok()).unwrap_or(0);
            if number == at.load(Ordering::SeqCst) {
                signals.lock().expect("nobody panics").cancel();
                return answer(200, stalling("half a f"));
            }
            serve(&agenda, seen)
        })
        .await;
        let one_by_one = || {
            Setup::new(&source(&server)).with(|config| {
                config.agenda.max_per_host = 1;
                config.generator.formats = vec![Format::Pdf, Format::Json];
            })
        };

        let node = one_by_one().start(&database).await;
        let whole = node.generate("whole").await;
        assert_eq!(whole.status, Status::Completed, "{:?}", whole.failure);
        node.kill().await;

        // 0 is the agenda itself, 1 to FILES its files, one more the typesetting.
        for boundary in 0..=FILES + 1 {
            let name = format!("killed-{boundary}");
            let reached = CancellationToken::new();
            *signal.lock().expect("nobody panics") = reached.clone();
            kill_at.store(if boundary <= FILES { boundary } else { usize::MAX }, Ordering::SeqCst);
            let stuck = Arc::new(Stuck { reached: reached.clone(), is_stuck: AtomicBool::new(boundary > FILES) });
            let node = one_by_one().with_renderer(stuck).start(&database).await;
            let task = node.submit(&name).await;
            tokio::time::timeout(LIMIT, reached.cancelled()).await.expect("the boundary is reached");
            node.kill().await;
            let fetched = database.number(&files_of(&name)).await;

            kill_at.store(usize::MAX, Ordering::SeqCst);
            let asked = server.seen().len();
            let node = one_by_one().start(&database).await;
            let task = node.finished(task).await;
            assert_eq!((task.status, task.attempt_no), (Status::Completed, 2), "boundary {boundary}: {:?}", task.failure);
            let missing = FILES - usize::try_from(fetched).expect("a count") + usize::from(boundary == 0);
            let requests = server.seen().len() - asked;
            assert!(requests <= missing + 1, "boundary {boundary}: {requests} requests, {missing} were missing");
            assert!(requests == 0 || boundary <= FILES, "nothing is asked for once everything was collected");
            let protocols = node.protocols(&name).await;
            assert_eq!(protocols.len(), 1);
            node.kill().await;
        }

        // Undisturbed, the same content under the same id and number gives the same bytes.
        let node = one_by_one().start(&database).await;
        let mut killed = Vec::new();
        for boundary in 0..=FILES + 1 {
            killed.push(digests(&node.protocols(&format!("killed-{boundary}")).await));
        }
        database.execute("DELETE FROM document; DELETE FROM protocol; DELETE FROM checkpoint; DELETE FROM step_cache").await;
        for (boundary, want) in killed.iter().enumerate() {
            let name = format!("killed-{boundary}");
            let again = node.generate(&name).await;
            assert_eq!(again.status, Status::Completed, "{:?}", again.failure);
            assert_eq!(&digests(&node.protocols(&name).await), want, "boundary {boundary}");
        }
    }

    /// The process dies before each step is noted in turn, and before and after the two transactions that are no steps: the next one comes to the same bytes.
    async fn killed_at_any_step_boundary_it_comes_to_the_same_bytes(database: TestDatabase) {
        let agenda = Arc::new(Mutex::new(with_files("a")));
        let server = service(agenda).await;
        let one_by_one = || Setup::new(&source(&server)).with(|config| config.agenda.max_per_host = 1);
        let node = one_by_one().start(&database).await;
        assert_eq!(node.generate("a").await.status, Status::Completed);
        let want = digests(&node.protocols("a").await);
        node.kill().await;

        let ends = ["reserve_number", "finish_task"].into_iter().flat_map(|name| [(name, 0, Fault::KilledBefore), (name, 0, Fault::KilledAfter)]);
        let mut killed = 0;
        let steps = (0..50).map(|skip| ("checkpoint", skip, Fault::KilledBefore));
        for (transaction, skip, fault) in ends.chain(steps) {
            database.execute("DELETE FROM document; DELETE FROM protocol; DELETE FROM checkpoint; DELETE FROM step_cache").await;
            let node = one_by_one().start(&database).await;
            node.db.faults().arm_later(transaction, skip, fault);
            let task = node.submit("a").await;
            let open = "SELECT COUNT(*) FROM task WHERE status IN ('PENDING', 'IN_PROGRESS')";
            let is_over = async || !node.db.faults().is_armed(transaction) || database.number(open).await == 0;
            eventually(LIMIT, "the boundary is reached, or the end", is_over).await;
            if node.db.faults().is_armed(transaction) {
                assert!(transaction == "checkpoint", "{transaction} is reached");
                node.kill().await;
                break;
            }
            killed += 1;
            node.abandon();

            let node = one_by_one().start(&database).await;
            let task = node.finished(task).await;
            assert_eq!(task.status, Status::Completed, "{transaction} {skip} {fault:?}: {:?}", task.failure);
            assert_eq!(digests(&node.protocols("a").await), want, "{transaction} {skip} {fault:?}");
            assert_eq!(node.protocols("a").await.len(), 1);
            node.kill().await;
        }
        assert!(killed > 8, "{killed} boundaries");
    }
}

fn digests(protocols: &[Protocol]) -> Vec<String> {
    protocols[0].documents.iter().map(|document| document.sha256.clone()).collect()
}

fn files_of(agenda: &str) -> String {
    format!(
        "SELECT count(*) FROM checkpoint JOIN task ON task.id = checkpoint.task_id \
         WHERE task.agenda_id = '{agenda}' AND checkpoint.step LIKE 'COLLECT/question/%/report'"
    )
}

/// A renderer that, once, says that it has begun and never ends.
struct Stuck {
    reached: CancellationToken,
    is_stuck: AtomicBool,
}

impl Renderer for Stuck {
    fn render<'a>(
        &'a self,
        input: &'a Path,
        output: &'a Path,
        formats: &'a [Format],
        cancelled: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Rendered>, RenderError>> {
        Box::pin(async move {
            if self.is_stuck.swap(false, Ordering::SeqCst) {
                self.reached.cancel();
                cancelled.cancelled().await;
                return Err(RenderError::Cancelled);
            }
            InProcessRenderer::new(None).render(input, output, formats, cancelled).await
        })
    }
}
