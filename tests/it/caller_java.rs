//! What a Java client does that nobody changed: plain `HttpURLConnection`, as Feign's default client uses it, and the decoder that docs/migration.md shows.

use crate::support::{Service, TestDatabase, breaking_proxy::BreakingProxy, eventually, nginx::Nginx, on_both_databases, within};
use protocol_bridge::base::config::{CallerConfig, Role, SubscriptionConfig};
use std::{net::SocketAddr, path::Path, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};

const LIMIT: Duration = Duration::from_mins(1);
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn v1(address: SocketAddr, agenda: &str) -> String {
    format!("http://{address}/api/v1/protocol/merge/byAgenda/{agenda}")
}

/// Runs a program of the JDK; what it printed.
async fn jdk(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(ROOT).kill_on_drop(true).output();
    let output = within(LIMIT, "Java ends", output).await.expect("a JDK is installed (scripts/test.sh --install)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// `java LegacyCaller.java METHOD URL`.
async fn call(method: &str, url: &str) -> String {
    jdk("java", &["docs/java/LegacyCaller.java", method, url]).await
}

/// The v1 caller that cannot be changed: known by its network and the User-Agent that the JDK sends.
fn agenda_state_machine() -> CallerConfig {
    CallerConfig {
        name: "agenda-state-machine".to_owned(),
        roles: vec![Role::Legacy],
        key_sha256: None,
        networks: vec!["127.0.0.0/8".to_owned()],
        user_agent: Some("Java/".to_owned()),
        retired: false,
        cut_off: None,
    }
}

on_both_databases! {
    async fn an_unchanged_client_may_call_v1_and_nothing_that_submits(database: TestDatabase) {
        let service = Service::with(database, &[], |config| config.callers = vec![agenda_state_machine()]).await;
        let told = call("POST", &v1(service.address, "java-1")).await;
        assert!(told.starts_with("status=200\n"), "{told}");
        assert!(told.contains("error-source=task\n") && told.contains("deprecation=@1767225600\n") && told.contains(r#""agendaId":"java-1""#), "{told}");
        let told = call("POST", &format!("http://{}/task", service.address)).await;
        assert!(told.starts_with("status=401\n"), "{told}");
        assert!(service.metric("protocol_bridge_legacy_requests_total{caller=\"agenda-state-machine\",outcome=\"completed\"}") >= 1.0);
    }

    // Case H-02: the JDK sends an empty POST again by itself when the connection dies before the answer; Feign never hears of it.
    async fn a_post_that_the_jdk_repeats_by_itself_is_one_task(database: TestDatabase) {
        let service = Service::start(database).await;
        let proxy = BreakingProxy::start(service.address).await;
        let url = v1(proxy.address, "slow-java");
        let cut = async {
            eventually(LIMIT, "the call waits", async || service.metric("protocol_bridge_legacy_waiters") >= 1.0).await;
            proxy.break_once();
            eventually(LIMIT, "the JDK calls again", async || proxy.connections() == 2).await;
            service.agendas.release();
        };
        let (told, ()) = futures::join!(call("POST", &url), cut);
        assert!(told.starts_with("status=200\n"), "it never noticed: {told}");
        assert_eq!(proxy.connections(), 2);
        assert_eq!(service.database.number("SELECT COUNT(*) FROM task").await, 1);
        assert_eq!(service.database.number("SELECT COUNT(*) FROM protocol").await, 1);
    }

    async fn the_documented_decoder_reads_the_task(database: TestDatabase) {
        let service = Service::start(database).await;
        let proxy = Nginx::start("127.0.0.1:9".parse().expect("an address where nobody listens"), "1s").await;
        let folder = tempfile::tempdir().expect("a folder");
        let classes = folder.path().display().to_string();
        let sources = ["docs/java/BridgeAnswer.java", "docs/java/StillGenerating.java", "docs/java/ProtocolErrorDecoder.java",
            "tests/java/DecoderTrial.java", "tests/java/feign/Response.java", "tests/java/feign/codec/ErrorDecoder.java"];
        jdk("javac", &[&["-Xlint:all", "-Werror", "-d", &classes], sources.as_slice()].concat()).await;
        let urls = [v1(service.address, "slow-decoder"), v1(service.address, "unsigned-1"), v1(proxy.address, "1")];
        let told = jdk("java", &["-cp", &classes, "DecoderTrial", &urls[0], &urls[1], &urls[2]]).await;
        let lines: Vec<&str> = told.lines().collect();
        let task = service.database.fetch("SELECT id FROM task WHERE agenda_id = 'slow-decoder'").await[0][0].as_str().expect("an id").to_owned();
        assert_eq!(lines[0], format!("504 StillGenerating task={task} task {task} goes on"));
        assert!(lines[1].starts_with("409 IllegalStateException [409] {\"taskId\":\""), "what Feign makes of it, body and all: {}", lines[1]);
        assert_eq!(lines[2], "502 StillGenerating task=null a proxy gave up first; look the task up by its agenda");
        service.agendas.release();
    }
}

/// A receiver in Java, with the class that docs/migration.md shows.
#[tokio::test(flavor = "multi_thread")]
async fn the_documented_webhook_class_knows_what_is_genuine() {
    let folder = tempfile::tempdir().expect("a folder");
    let classes = folder.path().display().to_string();
    jdk("javac", &["-Xlint:all", "-Werror", "-d", &classes, "docs/java/BridgeWebhook.java", "tests/java/WebhookTrial.java"]).await;
    let written = |name: &str, url: &str| SubscriptionConfig {
        name: name.to_owned(),
        url: url.to_owned(),
        types: Vec::new(),
        secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into(),
        secret_file: None,
    };
    let secrets = ["whsec_QmV2b3JlIGl0IHdhcyByZXBsYWNlZA==", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"];
    let mut java = Command::new("java")
        .args(["-cp", &classes, "WebhookTrial"])
        .args(secrets)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("a JDK is installed (scripts/test.sh --install)");
    let mut said = BufReader::new(java.stdout.take().expect("it is piped")).lines();
    let port = within(LIMIT, "Java listens", said.next_line()).await.expect("readable").expect("a port");
    let service = Service::with(TestDatabase::sqlite().await, &[], |config| {
        config.events.allow_private_targets = true;
        config.events.subscriptions = vec![written("java", &format!("http://127.0.0.1:{port}/hook"))];
    })
    .await;
    service.protocol_of("java").await;
    let line = within(LIMIT, "Java is told", said.next_line()).await.expect("readable").expect("a line");
    let id = service.database.fetch("SELECT id FROM event").await[0][0].as_str().expect("an id").to_owned();
    assert_eq!(line, format!("{id} genuine=true changed=false old=false"));
}

/// What docs/migration.md shows is what is compiled here.
#[test]
fn the_java_of_the_documentation_is_the_one_that_is_tried() {
    let page = include_str!("../../docs/migration.md");
    for name in ["BridgeAnswer", "StillGenerating", "ProtocolErrorDecoder", "BridgeWebhook"] {
        let source = std::fs::read_to_string(Path::new(ROOT).join(format!("docs/java/{name}.java"))).expect("the file");
        assert!(page.contains(&format!("```java\n{source}```")), "docs/java/{name}.java, as it is, between ```java and ```");
    }
}
