//! Tasks that generate, on both databases: what is asked of the source, what is stored, and what a failure in between leaves.

use crate::{
    engine_world::author,
    generator_node::{LIMIT, Setup, id},
    support::{
        TestDatabase,
        agenda_server::{AgendaServer, Seen, answer, stalling},
        agendas::{good, spoil, told, with},
        eventually, on_both_databases,
    },
};
use axum::response::Response;
use futures::future::BoxFuture;
use protocol_bridge::{
    domain::{
        failure::FailureCode,
        protocol::Format,
        register::Gap,
        task::{Phase, Status},
    },
    engine::facade::DeadLetterFilter,
    generator::{
        InProcessRenderer,
        renderer::{RenderError, Rendered, Renderer},
    },
    store::Fault,
};
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

pub const FILES: usize = 5;

/// The good agenda under an id, with report files that lie beside it at the service.
pub fn with_files(agenda_id: &str) -> Value {
    let mut agenda = with("/agendaId", json!(agenda_id));
    // Reports lie at addresses of their own, so that none is known from another agenda.
    let questions: Vec<Value> = (1..=FILES)
        .map(|n| {
            json!({"id": format!("q{n}"), "order": n, "title": format!("Вопрос {n}"), "status": "PROTECTED",
                "outcome": {"category": "noted"}, "report": {"href": format!("files/{agenda_id}/{n}.pdf"), "mediaType": "application/pdf"}})
        })
        .collect();
    agenda = spoil(agenda, "/questions", json!(questions));
    agenda
}

/// A service that holds one agenda under any id, and its files.
pub async fn service(agenda: Arc<Mutex<Value>>) -> AgendaServer {
    AgendaServer::start(move |seen, _| serve(&agenda, seen)).await
}

pub fn serve(agenda: &Mutex<Value>, seen: &Seen) -> Response {
    if seen.path.contains("/files/") {
        return answer(200, format!("the file {}", seen.path));
    }
    let asked = seen.path.rsplit('/').next().unwrap_or_default();
    let agenda = spoil(agenda.lock().expect("nobody panics").clone(), "/agendaId", json!(asked));
    // Each agenda has files of its own.
    answer(200, agenda.to_string().replace("files/a/", &format!("files/{asked}/")))
}

pub fn source(server: &AgendaServer) -> String {
    server.url("/{agendaId}")
}

on_both_databases! {
    async fn an_agenda_becomes_a_protocol_and_again_the_same_one_until_it_changes(database: TestDatabase) {
        let agenda = Arc::new(Mutex::new(with_files("a")));
        let server = service(Arc::clone(&agenda)).await;
        let node = Setup::new(&source(&server)).start(&database).await;

        let task = node.generate("a").await;
        assert_eq!((task.status, task.phase), (Status::Completed, Some(Phase::Publish)), "{:?}", task.failure);
        assert_eq!(task.progress.done, task.progress.known);
        let protocols = node.protocols("a").await;
        assert_eq!(protocols.len(), 1);
        let first = protocols[0].clone();
        assert_eq!((Some(first.id), first.version, first.number.as_str()), (task.protocol_id, 1, "1"));
        assert_eq!(first.record.questions.len(), FILES);
        assert_eq!(server.seen().len(), 1 + FILES + 1, "the agenda, its files, and the agenda once more: it took more than one request");
        let stored = node.generator.documents().read(&first.documents[0].blob).await.expect("the store answers").expect("the document");
        assert_eq!(stored.len() as u64, first.documents[0].bytes);
        assert!(node.generator.is_unchanged(&first, LIMIT).await);

        // Nothing changed: no file is fetched, no document made, and it is the same protocol.
        let asked = server.seen().len();
        let again = node.generate("a").await;
        assert_eq!((again.status, again.protocol_id), (Status::Completed, Some(first.id)));
        assert_eq!(node.protocols("a").await.len(), 1);
        assert_eq!(server.seen().len() - asked, 1);

        // A status that changes because the protocol is done does not make it a stale one.
        *agenda.lock().expect("nobody panics") = spoil(with_files("a"), "/questions/0/status", json!("REPORT_SIGNED"));
        assert!(node.generator.is_unchanged(&first, LIMIT).await);
        assert_eq!(node.generate("a").await.protocol_id, Some(first.id));

        // One question corrected: the next version under the same number, and only that question's file is fetched.
        *agenda.lock().expect("nobody panics") = spoil(with_files("a"), "/questions/2/title", json!("Исправленный вопрос"));
        assert!(!node.generator.is_unchanged(&first, LIMIT).await);
        let asked = server.seen().len();
        let changed = node.generate("a").await;
        assert_eq!(changed.status, Status::Completed, "{:?}", changed.failure);
        let protocols = node.protocols("a").await;
        assert_eq!(protocols.iter().map(|protocol| protocol.version).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(protocols[0].number, "1");
        assert_eq!(protocols[1], first, "nothing is overwritten");
        let fetched: Vec<String> = server.seen()[asked..].iter().map(|seen| seen.path.clone()).collect();
        assert_eq!(fetched, ["/a", "/files/a/3.pdf", "/a"]);

        // Another agenda of the body gets the next number.
        let other = node.generate("b").await;
        assert_eq!(other.status, Status::Completed, "{:?}", other.failure);
        assert_eq!(node.protocols("b").await[0].number, "2");
    }

    async fn what_is_wrong_with_an_agenda_ends_the_task_and_a_correction_is_seen_by_a_replay(database: TestDatabase) {
        let agenda = Arc::new(Mutex::new(good()));
        let server = service(Arc::clone(&agenda)).await;
        let node = Setup::new(&source(&server)).start(&database).await;
        let set = |value: Value| *agenda.lock().expect("nobody panics") = value;

        set(spoil(with("/questions/0/status", json!("DRAFT")), "/questions/0/decision", json!([])));
        let task = node.generate("a").await;
        let failure = task.failure.expect("a failure");
        assert_eq!((task.status, failure.code, failure.phase), (Status::Failed, FailureCode::AgendaNotReady, Some(Phase::Collect)));
        assert_eq!(told(&failure.errors), ["question-not-ready /questions/0/status"]);

        set(spoil(with("/questions/0/vote/against", json!(3)), "/questions/1/titel", json!("x")));
        let task = node.generate("a").await;
        let failure = task.failure.expect("a failure");
        assert_eq!((task.status, failure.code), (Status::Failed, FailureCode::AgendaInvalid));
        let errors = told(&failure.errors);
        assert!(errors.contains(&"field-unknown /questions/1/titel".to_owned()), "{errors:?}");
        assert!(errors.contains(&"votes-do-not-add-up /questions/0/vote".to_owned()), "{errors:?}");
        let report = node.generator.check(&id("a"), None).await.expect("a report");
        assert_eq!(told(&report.errors), errors);

        set(good());
        let open = node.engine.dead_letters(DeadLetterFilter::default(), None, 10).await.expect("the store answers");
        let letter = open.items.iter().find(|letter| letter.task_id == task.id).expect("a dead letter");
        node.engine.replay(letter.id, None, &author()).await.expect("the store answers");
        let replayed = node.finished(task.id).await;
        assert_eq!(replayed.status, Status::Completed, "{:?}", replayed.failure);
    }

    async fn an_agendas_own_number_is_kept_and_nobody_elses(database: TestDatabase) {
        let server = AgendaServer::start(|seen, before| {
            let number = if seen.path == "/d" { "25" } else if seen.path == "/a" && before > 0 { "18" } else { "17" };
            let agenda = with("/agendaId", json!(seen.path.trim_start_matches('/')));
            answer(200, if seen.path == "/c" { agenda } else { spoil(agenda, "/number", json!(number)) }.to_string())
        })
        .await;
        let node = Setup::new(&source(&server)).start(&database).await;
        assert_eq!(node.generate("a").await.status, Status::Completed);
        assert_eq!(node.protocols("a").await[0].number, "17");
        for (agenda, why) in [("b", "«a»"), ("a", "«17»")] {
            let failure = node.generate(agenda).await.failure.expect("a failure");
            assert_eq!((failure.code, told(&failure.errors)), (FailureCode::AgendaInvalid, vec!["number-taken /number".to_owned()]));
            assert!(failure.errors[0].detail.contains(why), "{}", failure.errors[0].detail);
        }
        assert_eq!(node.generate("c").await.status, Status::Completed);
        assert_eq!(node.protocols("c").await[0].number, "18", "the next after the greatest");

        // Whoever looks after the register sees its gaps: those that an own number left, and a number without a protocol.
        assert_eq!(node.generate("d").await.status, Status::Completed);
        database.execute("INSERT INTO protocol_number (body, year, number, agenda_id, reserved_us) SELECT body, year, '19', 'e', reserved_us FROM protocol_number WHERE number = '17'").await;
        let (registers, next) = node.generator.registers(2026, None, 10).await.expect("the store answers");
        assert_eq!((registers.len(), next), (1, None));
        assert_eq!(registers[0].unused().map(|entry| (entry.number.as_str(), entry.agenda_id.as_str())).collect::<Vec<_>>(), [("19", "e")]);
        assert_eq!(registers[0].gaps(), [Gap { from: 20, to: 24 }]);
        assert_eq!(node.generator.registers(2025, None, 10).await.expect("the store answers").0, []);
    }

    /// A replay may come days later: it prints what the agenda is then.
    async fn a_replay_reads_the_agenda_again(database: TestDatabase) {
        let agenda = Arc::new(Mutex::new(good()));
        let server = service(Arc::clone(&agenda)).await;
        let renderer = Arc::new(BrokenOnce(AtomicBool::new(true)));
        let setup = Setup::new(&source(&server)).with(|config| config.generator.formats = vec![Format::Pdf]);
        let node = setup.with_renderer(renderer).start(&database).await;
        let task = node.generate("a").await;
        let failure = task.failure.expect("a failure");
        assert_eq!((failure.code, failure.phase, failure.detail.as_deref()), (FailureCode::RenderFailed, Some(Phase::Merge), Some("on purpose")));
        *agenda.lock().expect("nobody panics") = with("/questions/0/title", json!("О бюджете в новой редакции"));
        let open = node.engine.dead_letters(DeadLetterFilter::default(), None, 10).await.expect("the store answers");
        node.engine.replay(open.items[0].id, None, &author()).await.expect("the store answers");
        let task = node.finished(task.id).await;
        assert_eq!(task.status, Status::Completed, "{:?}", task.failure);
        assert_eq!(node.protocols("a").await[0].record.questions[0].title, "О бюджете в новой редакции");
    }

    /// Each transaction of the generator fails before and after its effect; the task ends all the same, with one protocol.
    async fn a_database_that_fails_in_between_changes_nothing(database: TestDatabase) {
        let agenda = Arc::new(Mutex::new(with_files("a")));
        let server = service(agenda).await;
        let node = Setup::new(&source(&server)).start(&database).await;
        let mut documents = Vec::new();
        for (n, transaction) in ["checkpoint", "checkpoint", "reserve_number", "reserve_number"].into_iter().enumerate() {
            let fault = if n % 2 == 0 { Fault::FailBefore } else { Fault::FailAfter };
            let name = format!("f{n}");
            node.db.faults().arm(transaction, fault, 2);
            let task = node.generate(&name).await;
            assert_eq!(task.status, Status::Completed, "{transaction} {fault:?}: {:?}", task.failure);
            let protocols = node.protocols(&name).await;
            assert_eq!((protocols.len(), protocols[0].number.as_str()), (1, (n + 1).to_string().as_str()));
            documents.push(protocols[0].documents[0].sha256.clone());
        }
        documents.dedup();
        assert_eq!(documents.len(), 4, "four agendas, four documents");
    }

    async fn agendas_are_listed_with_what_is_wrong_with_them(database: TestDatabase) {
        let node = Setup::new("samples").start(&database).await;
        let (first, next) = node.generator.agendas(None, 2).await.expect("a list");
        assert_eq!((first.len(), next.clone()), (2, Some(first[1].agenda_id.clone())));
        let (rest, end) = node.generator.agendas(next, 100).await.expect("a list");
        assert_eq!(end, None);
        for listed in first.iter().chain(&rest) {
            let is_bad = matches!(listed.agenda_id.as_str(), "unsigned-council" | "contradictory-council");
            assert_eq!((listed.ready, listed.errors.is_empty()), (!is_bad, !is_bad), "{listed:#?}");
            assert!(!listed.title.is_empty() && listed.date.starts_with("2026-"), "{listed:#?}");
        }
        let report = node.generator.check(&id("slow-council"), None).await.expect("a report, at once");
        assert_eq!(told(&report.errors), Vec::<String>::new());
        assert_eq!(node.generator.check(&id("nobody"), None).await.expect_err("unknown").code, FailureCode::AgendaNotFound);
    }

    /// A source that does not answer in time counts as unchanged: the caller gets what it is owed.
    async fn no_answer_in_time_counts_as_unchanged(database: TestDatabase) {
        let is_silent = Arc::new(AtomicBool::new(false));
        let silent = Arc::clone(&is_silent);
        let server = AgendaServer::start(move |_, _| {
            if silent.load(Ordering::SeqCst) { answer(200, stalling("{")) } else { answer(200, with("/agendaId", json!("a")).to_string()) }
        })
        .await;
        let node = Setup::new(&source(&server)).start(&database).await;
        assert_eq!(node.generate("a").await.status, Status::Completed);
        is_silent.store(true, Ordering::SeqCst);
        let start = Instant::now();
        assert!(node.generator.is_unchanged(&node.protocols("a").await[0], Duration::from_millis(300)).await);
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }

    /// Readiness may come a moment after the call: the caller asks before its own commit.
    async fn an_agenda_that_becomes_ready_in_time_is_waited_for(database: TestDatabase) {
        let agenda = Arc::new(Mutex::new(with("/questions/0/status", json!("DRAFT"))));
        let server = service(Arc::clone(&agenda)).await;
        let node = Setup::new(&source(&server)).with(|config| config.agenda.ready_grace = LIMIT).start(&database).await;
        let task = node.submit("a").await;
        eventually(LIMIT, "the agenda is looked at", || async { server.count("/a") >= 2 }).await;
        *agenda.lock().expect("nobody panics") = good();
        assert_eq!(node.finished(task).await.status, Status::Completed);
    }

    async fn an_agenda_that_keeps_changing_is_given_up(database: TestDatabase) {
        let server = AgendaServer::start(|seen, before| {
            if seen.path.contains("/files/") {
                return answer(200, "a file");
            }
            answer(200, spoil(with_files("a"), "/questions/0/title", json!(format!("Вопрос в редакции {before}"))).to_string())
        })
        .await;
        let node = Setup::new(&source(&server)).with(|config| config.engine.max_attempts = 1).start(&database).await;
        let task = node.generate("a").await;
        assert_eq!(task.failure.expect("a failure").code, FailureCode::AgendaKeepsChanging);
        assert_eq!(server.count("/a"), 4);
    }

    async fn an_unknown_agenda_is_not_tried_again_and_a_source_that_is_down_is(database: TestDatabase) {
        let server = AgendaServer::start(|seen, _| if seen.path == "/unknown" { answer(404, "") } else { answer(400, "") }).await;
        let node = Setup::new(&source(&server)).with(|config| config.engine.max_attempts = 2).start(&database).await;
        let task = node.generate("unknown").await;
        assert_eq!((task.attempt_no, task.failure.expect("a failure").code), (1, FailureCode::AgendaNotFound));
        let task = node.generate("down").await;
        assert_eq!((task.attempt_no, task.failure.expect("a failure").code), (2, FailureCode::AgendaSourceUnavailable));
    }

    /// D-03: what only the worker sees must never keep a task from its end.
    async fn nul_and_lone_surrogates_from_the_source_do_not_keep_a_task_alive(database: TestDatabase) {
        let server = AgendaServer::start(|seen, _| match seen.path.as_str() {
            "/text" => {
                let agenda = spoil(good(), "/agendaId", json!("text"));
                let agenda = spoil(agenda, "/questions/0/title", json!("О бюджете\u{0}NUL"));
                answer(200, agenda.to_string().replace("О дорогах", "О дорогах\\ud800\\u0000"))
            }
            "/key" => answer(200, spoil(good(), "/a\u{0}b", json!("x\u{0}y")).to_string()),
            "/value" => answer(200, with("/questions/0/order", json!("\u{0}")).to_string()),
            _ => answer(200, with("/questions/0/rapporteur", json!("\u{0}nobody")).to_string().replace("\"good\"", "\"id\"")),
        })
        .await;
        let node = Setup::new(&source(&server)).start(&database).await;
        let task = node.generate("text").await;
        assert_eq!(task.status, Status::Completed, "{:?}", task.failure);
        let protocol = &node.protocols("text").await[0];
        assert_eq!(protocol.record.questions[0].title, "О бюджетеNUL");
        assert!(told(&protocol.record.warnings).contains(&"unprintable-character /questions/0/title".to_owned()));
        for agenda in ["key", "value", "id"] {
            let task = node.generate(agenda).await;
            assert_eq!(task.status, Status::Failed, "{agenda}");
            let failure = task.failure.expect("a failure");
            assert_eq!(failure.code, FailureCode::AgendaInvalid, "{agenda}");
            assert!(!failure.errors.is_empty());
        }
    }
}

/// A renderer that fails once, as if the content did not typeset.
struct BrokenOnce(AtomicBool);

impl Renderer for BrokenOnce {
    fn render<'a>(
        &'a self,
        input: &'a Path,
        output: &'a Path,
        formats: &'a [Format],
        cancelled: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Rendered>, RenderError>> {
        Box::pin(async move {
            if self.0.swap(false, Ordering::SeqCst) {
                return Err(RenderError::Failed("on purpose".to_owned()));
            }
            InProcessRenderer::new(None).render(input, output, formats, cancelled).await
        })
    }
}

#[tokio::test]
async fn two_agendas_of_one_body_never_share_a_number() {
    for database in [TestDatabase::sqlite().await, TestDatabase::postgres().await] {
        let agenda = Arc::new(Mutex::new(good()));
        let server = service(agenda).await;
        let node = Setup::new(&source(&server)).start(&database).await;
        let names: Vec<String> = (0..12).map(|n| format!("n{n}")).collect();
        let tasks = futures::future::join_all(names.iter().map(|name| node.generate(name))).await;
        assert!(tasks.iter().all(|task| task.status == Status::Completed), "{tasks:#?}");
        let mut numbers: Vec<u32> = Vec::new();
        for name in &names {
            numbers.push(node.protocols(name).await[0].number.parse().expect("a number"));
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=12).collect::<Vec<_>>());
    }
}
