//! Questions that an agenda lists by reference: what is fetched, what is fetched again, and what is told when a link leads to something else.

use crate::{
    generator_node::{LIMIT, Setup},
    support::{
        TestDatabase,
        agenda_server::{AgendaServer, Seen, answer},
        agendas::{good, spoil, told, under, with},
        on_both_databases,
    },
};
use axum::response::Response;
use protocol_bridge::domain::{failure::FailureCode, task::Status};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

on_both_databases! {
    async fn questions_are_listed_by_reference_and_only_a_changed_one_is_fetched_again(database: TestDatabase) {
        let revision = Arc::new(AtomicUsize::new(1));
        let now = Arc::clone(&revision);
        let server = AgendaServer::start(move |seen, _| by_reference(seen, now.load(Ordering::SeqCst))).await;
        let node = Setup::new(&server.url("/{agendaId}")).start(&database).await;
        let task = node.generate("a").await;
        assert_eq!(task.status, Status::Completed, "{:?}", task.failure);
        assert_eq!(task.progress.done, task.progress.known);
        let titles: Vec<String> = node.protocols("a").await[0].record.questions.iter().map(|question| question.title.clone()).collect();
        assert_eq!(titles, ["Вопрос 0", "Вопрос 1 в редакции 1", "Вопрос 2"]);
        assert_eq!(server.seen().len(), 5, "the list, three questions, and the list once more");

        // Nothing changed: only the list is asked for. One changed: that one, and the list once more.
        let asked = server.seen().len();
        assert_eq!(node.generate("a").await.protocol_id, task.protocol_id);
        assert_eq!(server.seen().len() - asked, 1);
        assert!(node.generator.is_unchanged(&node.protocols("a").await[0], LIMIT).await);
        revision.store(2, Ordering::SeqCst);
        assert!(!node.generator.is_unchanged(&node.protocols("a").await[0], LIMIT).await);
        let asked = server.seen().len();
        let changed = node.generate("a").await;
        assert_eq!(changed.status, Status::Completed, "{:?}", changed.failure);
        let paths: Vec<String> = server.seen()[asked..].iter().map(|seen| seen.path.clone()).collect();
        assert_eq!(paths, ["/a", "/q/1?r=2", "/a"]);
        assert_eq!(node.protocols("a").await[0].record.questions[1].title, "Вопрос 1 в редакции 2");
    }

    async fn a_link_to_another_question_or_to_nothing_is_told(database: TestDatabase) {
        let server = AgendaServer::start(|seen, _| {
            let list = |questions: Value| answer(200, under(&with("/questions", questions), &seen.path));
            let link = |href: &str| json!({"id": "q1", "order": 1, "href": href});
            match seen.path.as_str() {
                "/other" => list(json!([link("/q/other")])),
                "/missing" => list(json!([link("/q/missing")])),
                "/text" => list(json!([link("/q/text")])),
                "/inside" => list(json!([link("http://169.254.169.254/q"), link("http://10.0.0.1/q"), link("file:///etc/passwd")])),
                "/q/other" => answer(200, spoil(good()["questions"][0].clone(), "/id", json!("q2")).to_string()),
                "/q/text" => answer(200, "not JSON"),
                _ => answer(404, ""),
            }
        })
        .await;
        let node = Setup::new(&server.url("/{agendaId}")).with(|config| config.engine.max_attempts = 1).start(&database).await;
        for (agenda, code, want) in [
            ("other", FailureCode::AgendaInvalid, vec!["linked-object-differs /questions/0"]),
            ("missing", FailureCode::AgendaSourceUnavailable, vec!["linked-object-missing /questions/0"]),
            ("text", FailureCode::AgendaInvalid, vec!["linked-object-unreadable /questions/0"]),
            ("inside", FailureCode::AgendaInvalid, vec!["link-not-followed /questions/0", "link-not-followed /questions/1", "link-not-followed /questions/2"]),
        ] {
            let failure = node.generate(agenda).await.failure.expect(agenda);
            let faults: BTreeSet<String> = told(&failure.errors).into_iter().filter(|fault| !fault.starts_with("no-questions")).collect();
            assert_eq!((failure.code, faults), (code, want.into_iter().map(str::to_owned).collect()), "{agenda}: {failure:#?}");
        }
    }
}

fn by_reference(seen: &Seen, revision: usize) -> Response {
    let question =
        |n: usize, title: &str| json!({"id": format!("q{n}"), "title": title, "status": "PROTECTED", "outcome": {"category": "noted"}});
    match seen.path.as_str() {
        "/a" => {
            let list = json!([
                {"id": "q0", "order": 0, "href": "q/0", "revision": "1"},
                {"id": "q1", "order": 1, "href": format!("/q/1?r={revision}"), "revision": revision.to_string()},
                {"id": "q2", "order": 2, "href": "q/2", "revision": "1"},
            ]);
            answer(200, under(&with("/questions", list), "/a"))
        }
        "/q/0" => answer(200, question(0, "Вопрос 0").to_string()),
        "/q/2" => answer(200, question(2, "Вопрос 2").to_string()),
        _ => answer(200, question(1, &format!("Вопрос 1 в редакции {revision}")).to_string()),
    }
}
