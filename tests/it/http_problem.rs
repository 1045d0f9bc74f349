//! Problems: one shape, one id in body, header and log, one page per type; inside stays inside.

use crate::support::{Service, TestDatabase, on_both_databases};
use protocol_bridge::{
    domain::{
        failure::{Failure, FailureCode, Fault as Found},
        ids::RequestId,
        task::Phase,
    },
    http::{Problem, ProblemType, RequestProblem},
    store::Fault,
};
use std::time::{Duration, Instant};

on_both_databases! {
    async fn body_and_header_name_the_same_request_and_every_type_has_a_page(database: TestDatabase) {
        let service = Service::start(database).await;
        let response = service.get("/nothing").send().await.unwrap();
        let request = response.headers()["x-request-id"].to_str().unwrap().to_owned();
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let text = response.text().await.unwrap();
        assert!(text.ends_with(&format!(r#""instance":"/requests/{request}"}}"#)), "{text}");
        for kind in ProblemType::all() {
            let page = service.get(&format!("/problems/{}", kind.entry().code)).send().await.unwrap();
            assert_eq!(page.status(), 200, "{kind:?}");
            assert!(page.text().await.unwrap().contains("What to do"));
        }
        assert_eq!(service.get("/problems/teapot").send().await.unwrap().status(), 404);
    }

    async fn what_breaks_inside_is_not_told_outside(database: TestDatabase) {
        let service = Service::start(database).await;
        service.db.faults().arm("submit_task", Fault::FailBefore, 1000);
        let (status, body) = service.json(service.post("/task").json(&serde_json::json!({ "agendaId": "1" }))).await;
        assert_eq!((status, &body["type"]), (503, &"/problems/unavailable".into()));
        assert!(!body.to_string().contains("injected"), "{body}");
        service.db.faults().disarm("submit_task");
    }

    async fn a_database_that_hangs_is_answered_within_five_seconds(database: TestDatabase) {
        let service = Service::start(database).await;
        service.db.faults().arm("submit_task", Fault::Delay(Duration::from_secs(20)), 1);
        let start = Instant::now();
        let (status, body) = service.json(service.post("/task").json(&serde_json::json!({ "agendaId": "2" }))).await;
        assert!(start.elapsed() < Duration::from_secs(5), "answered after {:?}", start.elapsed());
        assert_eq!((status, &body["type"]), (503, &"/problems/unavailable".into()));
    }
}

/// The failure catalogue as clients get it, and the request problems beside it.
#[test]
fn the_catalogue_of_problems() {
    let request = RequestId(uuid::Uuid::nil());
    let failures =
        FailureCode::ALL.into_iter().map(|code| {
            let faults = vec![Found { code: "rule".to_owned(), pointer: "/questions/0".to_owned(), detail: "What is wrong.".to_owned() }];
            let failure = Failure::new(code, "What happened.")
                .in_phase(Phase::Collect)
                .with_errors(if code == FailureCode::AgendaInvalid { faults } else { vec![] });
            Problem::failure(&failure).body(request)
        });
    let requests = RequestProblem::ALL.into_iter().map(|kind| Problem::request(kind, "What happened.").body(request));
    insta::assert_snapshot!(failures.chain(requests).collect::<Vec<_>>().join("\n"));
}
