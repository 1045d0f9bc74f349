//! The snippets of docs/migration.md, run as they stand, against the service.

use crate::support::{Service, TestDatabase, breaking_proxy::BreakingProxy, eventually, on_both_databases, within};
use std::time::Duration;
use tokio::process::Command;

const LIMIT: Duration = Duration::from_mins(1);
const PAGE: &str = include_str!("../../docs/migration.md");

/// The page's blocks in `language`, one after the other, asking `service`.
fn snippets(language: &str, service: &Service) -> String {
    let fence = format!("```{language}\n");
    let blocks = PAGE.split(&fence).skip(1).map(|rest| rest.split("```").next().expect("split gives one"));
    let text = blocks.collect::<Vec<_>>().join("\n");
    assert!(text.contains("localhost:8080"), "there are blocks in {language}");
    text.replace("localhost:8080", &service.address.to_string())
}

async fn run(program: &str, arguments: &[&str]) -> String {
    let output =
        within(LIMIT, "it ends", Command::new(program).args(arguments).kill_on_drop(true).output()).await.expect("it is installed");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    told
}

on_both_databases! {
    async fn curl_and_python_get_their_protocols(database: TestDatabase) {
        let service = Service::start(database).await;
        let told = run("bash", &["-euo", "pipefail", "-c", &snippets("sh", &service)]).await;
        assert!(told.contains(r#""status":"COMPLETED""#) && told.contains(r#""documents":[{"#) && told.contains(r#"{"items":[{"taskId""#), "{told}");
        let told = run("python3", &["-c", &snippets("python", &service)]).await;
        assert!(told.contains("/document.pdf"), "{told}");
        let keys = service.database.number("SELECT COUNT(*) FROM idempotency_key").await;
        assert_eq!(keys, 2, "one of curl's, one of Python's");
    }

    // Case H-02 with curl: the connection breaks after the request was read; curl repeats it.
    async fn a_post_that_curl_repeats_is_one_task(database: TestDatabase) {
        let service = Service::start(database).await;
        let retry = ["-sS", "--fail-with-body", "--retry", "3", "--retry-all-errors", "--retry-delay", "1", "-X", "POST"];
        let (v1, v2) = (BreakingProxy::start(service.address).await, BreakingProxy::start(service.address).await);
        let (v1_url, v2_url) = (format!("http://{}/api/v1/protocol/merge/byAgenda/slow-curl", v1.address), format!("http://{}/task", v2.address));
        let (body, key) = (r#"{"agendaId":"slow-curl-v2"}"#, "Idempotency-Key: once");
        let v1_call = [retry.as_slice(), &[&v1_url]].concat();
        let v2_call = [retry.as_slice(), &["-H", "Content-Type: application/json", "-H", key, "-d", body, &v2_url]].concat();
        let accepted = async || service.database.number("SELECT COUNT(*) FROM task").await == 2;
        let cut = async {
            eventually(LIMIT, "both are accepted, and neither is answered", accepted).await;
            v1.break_once();
            v2.break_once();
            eventually(LIMIT, "v1 is called again", async || v1.connections() == 2).await;
            service.agendas.release();
        };
        let (protocol, task, ()) = futures::join!(run("curl", &v1_call), run("curl", &v2_call), cut);
        assert!(protocol.contains(r#""agendaId":"slow-curl""#) && task.contains(r#""joined":true"#), "{protocol}\n{task}");
        assert!(service.database.number("SELECT COUNT(*) FROM task").await == 2, "one of v1, one of v2");
    }
}
