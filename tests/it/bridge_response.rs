//! `legacy.response`: the 200 in the caller's own shape, and what happens when the program is wrong.

use crate::support::{Service, TestDatabase, eventually, on_both_databases, process};
use serde_json::json;
use std::time::Duration;

on_both_databases! {
    async fn the_200_comes_in_the_callers_own_shape(database: TestDatabase) {
        let program = "{id: .protocolId, meeting: .date, file: (.documents[] | select(.format == \"pdf\") | .url), outcomes: [.questions[].outcome]}";
        let service = Service::configured(database, &[("LEGACY__RESPONSE", program)]).await;
        let response = service.merge("1").send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!((response.headers()["content-type"].to_str().unwrap(), response.headers()["error-source"].to_str().unwrap()), ("application/json", "task"));
        let body: serde_json::Value = response.json().await.unwrap();
        let id = body["id"].as_str().expect("an id").to_owned();
        assert_eq!(body, json!({ "id": id, "meeting": "2026-11-30", "file": format!("/protocol/{id}/document.pdf"), "outcomes": ["adopted"] }));
        let (_, ours) = service.json(service.get(&format!("/protocol/{id}"))).await;
        assert_eq!(ours["protocolId"], id.as_str(), "v2 keeps its own");
        let (status, problem) = service.json(service.merge("unknown-1")).await;
        assert_eq!((status, &problem["type"]), (404, &"/problems/agenda-not-found".into()), "problems keep their shape");
    }

    async fn a_program_that_fails_on_a_protocol_gives_no_answer_and_the_answer_stays_owed(database: TestDatabase) {
        // The sample's number is 17; the first protocol of a fresh database has another.
        let service = Service::configured(database, &[("LEGACY__RESPONSE", "if .number == \"17\" then . else error(\"secret of the program\") end")]).await;
        let response = service.merge("1").send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.headers()["error-source"].to_str().unwrap()), (500, "bridge"));
        let task = response.headers()["task-id"].to_str().unwrap().to_owned();
        let body = response.text().await.unwrap();
        assert!(body.contains("/problems/internal") && body.contains(&task) && !body.contains("secret"), "{body}");
        assert_eq!(service.finished(&task).await["status"], "COMPLETED", "the protocol is there all the same");
        assert_eq!(service.database.number("SELECT COUNT(*) FROM owed_answer").await, 1);
        eventually(Duration::from_secs(5), "it counts as refused", || async {
            service.metric("protocol_bridge_legacy_requests_total{caller=\"other\",outcome=\"refused\"}") >= 1.0
        }).await;
        let database = service.stop().await;
        let corrected = Service::configured(database, &[("LEGACY__RESPONSE", ".taskId")]).await;
        let answer = corrected.merge("1").send().await.unwrap();
        assert_eq!(answer.headers()["task-id"], task.as_str());
    }
}

#[test]
fn a_wrong_program_is_told_before_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    for (program, expected) in [
        (".number |", "legacy.response (from the environment): is no jq program: line 1, column 10: expected term, found the end"),
        ("{a: .number,\n b: nonsense}", "line 2, column 5: there is no filter nonsense"),
        (".number.x", "legacy.response fails on a sample protocol"),
        (".documents[]", "legacy.response fails on a sample protocol: it gives more than one value"),
        ("def f: 1 + f; f", "legacy.response fails on a sample protocol: it brings its process down"),
        ("[limit(1e9; repeat(\"x\" * 100000000))]", "legacy.response fails on a sample protocol: it"),
        ("def f: f; f", "legacy.response fails on a sample protocol: it took over 2 s"),
    ] {
        let environment = [("PROTOCOL_BRIDGE__LEGACY__RESPONSE", program), ("PROTOCOL_BRIDGE__HTTP__LISTEN", "127.0.0.1:0")];
        for (command, code) in [("check-config", 2), ("serve", if expected.contains("sample") { 1 } else { 2 })] {
            let output = process::run(&[command], &environment, folder.path());
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(text.contains(expected), "{command} {program:?}: {text}");
            assert_eq!(output.status.code(), Some(code), "{command} {program:?}: {text}");
        }
    }
}
