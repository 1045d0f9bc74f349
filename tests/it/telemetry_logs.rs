//! What the log says: the fields by which lines are found, one line an outcome, and never a secret, at any level.

use crate::support::{
    Process, TestDatabase,
    agenda_server::{AgendaServer, answer},
    agendas::with,
    collector::Collector,
    eventually,
    nats::Nats,
    on_both_databases,
    receivers::{Manner, Receiver},
};
use serde_json::{Value, json};
use std::{fs, path::Path, time::Duration};

const LIMIT: Duration = Duration::from_mins(1);
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn lines(process: &Process) -> Vec<Value> {
    process.log().lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

on_both_databases! {
    async fn lines_are_found_by_task_agenda_caller_claim_and_trace(database: TestDatabase) {
        let process = Process::serve(&database, &[("PROTOCOL_BRIDGE__TELEMETRY__LOG", "warn,protocol_bridge=info"),
            ("PROTOCOL_BRIDGE__ENGINE__RETRY_BASE", "10ms")]).await;
        let submit = |path: &'static str, body: Value| {
            let request = process.client.post(format!("{}{path}", process.url)).json(&body).header("x-caller", "tester").header("traceparent", PARENT);
            async move { request.send().await.expect("an answer").json::<Value>().await.expect("JSON")["taskId"].as_str().expect("an id").to_owned() }
        };
        let task = submit("/task", json!({ "agendaId": "no-such" })).await;
        let retried = submit("/api/tasks", json!({ "kind": "demo", "payload": { "failUntilAttempt": 2 } })).await;
        let ended = || database.number("SELECT COUNT(*) FROM task WHERE finished_us IS NOT NULL");
        eventually(LIMIT, "both end", async || ended().await == 2).await;
        eventually(LIMIT, "it is said", async || process.events("task FAILED").len() + process.events("task COMPLETED").len() == 2).await;
        let trace = &PARENT[3..35];

        let outcome = &process.events("task FAILED")[0];
        for (key, value) in [("taskId", json!(task)), ("agendaId", json!("no-such")), ("caller", json!("tester")), ("claim", json!(1)), ("attempt", json!(1)),
            ("traceId", json!(trace)), ("failure", json!("agenda-not-found")), ("phase", json!("COLLECT")), ("kind", json!("protocol")), ("level", json!("INFO"))] {
            assert_eq!(outcome[key], value, "{key} in {outcome}");
        }
        let outcome = &process.events("task COMPLETED")[0];
        assert_eq!((&outcome["taskId"], &outcome["claim"], &outcome["attempt"]), (&json!(retried), &json!(2), &json!(2)));
        // Written within the attempt, of which its fields come.
        let again = process.events("the attempt failed and will be tried again");
        assert_eq!((again.len(), &again[0]["taskId"], &again[0]["claim"], &again[0]["caller"], &again[0]["traceId"]),
            (1, &json!(retried), &json!(1), &json!("tester"), &json!(trace)));
        let requests: Vec<Value> = process.events("request").into_iter().filter(|line| line["route"] == "/task").collect();
        assert_eq!(requests.len(), 1, "one line a request");
        for (key, value) in [("taskId", json!(task)), ("agendaId", json!("no-such")), ("caller", json!("tester")), ("traceId", json!(trace)),
            ("status", json!(202)), ("method", json!("POST"))] {
            assert_eq!(requests[0][key], value, "{key} in {}", requests[0]);
        }
        for line in lines(&process) {
            let keys: Vec<&String> = line.as_object().expect("an object").keys().collect();
            assert!(keys.iter().all(|key| is_camel_case(key)), "{line}");
            assert!(["timestamp", "level", "target", "message"].iter().all(|key| line.get(key).is_some_and(Value::is_string)), "{line}");
        }
    }
}

on_both_databases! {
    async fn what_goes_wrong_inside_is_told_once_with_its_causes_and_not_to_the_caller(database: TestDatabase) {
        let process = Process::serve(&database, &[]).await;
        database.execute("ALTER TABLE audit RENAME TO mislaid").await;
        let answer = process.json("/api/audit").await;
        assert_eq!((&answer["status"], &answer["type"]), (&json!(500), &json!("/problems/internal")), "{answer}");
        let request = answer["instance"].as_str().and_then(|instance| instance.strip_prefix("/requests/")).expect("an id");
        let about = || lines(&process).into_iter().filter(|line| line["requestId"] == request).collect::<Vec<_>>();
        eventually(LIMIT, "it is told", async || !about().is_empty()).await;
        let told = about();
        assert_eq!((told.len(), &told[0]["level"], &told[0]["message"], &told[0]["code"]), (1, &json!("ERROR"), &json!("request failed"), &json!("internal")), "{told:?}");
        let cause = told[0]["cause"].as_str().expect("a text");
        assert!(cause.matches(": ").count() > 0 && cause.contains("audit"), "the whole chain: {cause}");
        assert!(!answer["detail"].to_string().contains("audit"), "{answer}");
        let errors = lines(&process).into_iter().filter(|line| ["WARN", "ERROR"].contains(&line["level"].as_str().expect("a level"))).count();
        assert_eq!(errors, 1, "nobody else says it:\n{}", process.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_level_shows_a_secret() {
    let (database_password, nats_token, agenda_token, key, wrong_key) =
        ("pw-7f3a9c", "tok-51be07", "tok-c04d1e", "pbk_key-93ab5d", "pbk_key-000bad");
    let nats = Nats::start_with(&["--auth", nats_token]).await;
    let agendas = AgendaServer::start(|seen, _| {
        let id = seen.path.rsplit('/').next().unwrap_or_default();
        let id = id.split('?').next().unwrap_or_default();
        if id == "away" { answer(503, "") } else { answer(200, with("/agendaId", json!(id)).to_string()) }
    })
    .await;
    let database = TestDatabase::postgres().await;
    let with_password = TestDatabase {
        url: database.url.replace("postgres://postgres@", &format!("postgres://postgres:{database_password}@")),
        dialect: database.dialect,
        data_dir: tempfile::tempdir().expect("a folder"),
    };
    assert_ne!(with_password.url, database.url);
    let folder = with_password.data_dir.path();
    let config = folder.join("config.toml");
    let sha256 = sha256_of(key);
    let (sealing_key, hook_secret) = ("sealing-key-2ad9f1, long enough for one", "whsec_aG9va3MtZDM3Zi1ob29rcy1kMzdmLWhvb2tzLWQz");
    let receiver = Receiver::start(Manner::Answers(503)).await;
    let hook = format!("{}?sig=hook-77ab01", receiver.url());
    let callers = format!("[[callers]]\nname = \"tester\"\nroles = [\"submit\", \"read\", \"admin\"]\nkey_sha256 = \"{sha256}\"\n");
    let events = format!(
        "[events]\nallow_private_targets = true\nschedule = [\"0s\", \"10ms\"]\n\
         subscriptions = [{{ name = \"hooks\", url = \"{hook}\", secret = \"{hook_secret}\" }}]\n"
    );
    fs::write(&config, callers + &events).expect("a file");
    let nats_url = nats.url().replace("nats://", &format!("nats://{nats_token}@"));
    let source = agendas.url("/agenda/{agendaId}?sig=query-5ec2e7");
    let collector = Collector::start().await;
    let environment = [
        ("PROTOCOL_BRIDGE__DATABASE__URL", with_password.url.as_str()),
        ("PROTOCOL_BRIDGE__ENGINE__TRANSPORT", &nats_url),
        ("PROTOCOL_BRIDGE__ENGINE__DEMO", "true"),
        ("PROTOCOL_BRIDGE__ENGINE__MAX_ATTEMPTS", "1"),
        ("PROTOCOL_BRIDGE__AGENDA__SOURCE", &source),
        ("PROTOCOL_BRIDGE__AGENDA__TOKEN", agenda_token),
        ("PROTOCOL_BRIDGE__TELEMETRY__LOG", "trace"),
        ("PROTOCOL_BRIDGE__TELEMETRY__OTLP_ENDPOINT", &collector.url),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-collector-key=otlp-6d20aa"),
        ("PROTOCOL_BRIDGE__AUTH__SECRET_KEY", sealing_key),
    ];
    let arguments = ["--config", config.to_str().expect("UTF-8")];
    let mut process = Process::start(&arguments, &environment, folder).await;
    let post = |path: &'static str, key: &'static str, body: Value| {
        process.client.post(format!("{}{path}", process.url)).bearer_auth(key).json(&body).send()
    };
    let made = post("/api/subscriptions", key, json!({ "url": hook })).await.expect("an answer").json::<Value>().await.expect("JSON");
    let made_secret = made["secret"].as_str().expect("it is shown once");
    for agenda in ["good", "away"] {
        assert_eq!(post("/task", key, json!({ "agendaId": agenda })).await.expect("an answer").status(), 202);
    }
    assert_eq!(post("/task", wrong_key, json!({ "agendaId": "good" })).await.expect("an answer").status(), 401);
    let get = |path: &str| process.client.get(format!("{}{path}", process.url));
    for path in ["/livez?token=url-a3371c", "/no/such/place/url-a3371c", "/api/tasks?caller=url-a3371c"] {
        get(path).header("cookie", "session=head-8814e2").header("x-api-key", "head-8814e2").send().await.expect("an answer");
    }
    assert_eq!(get("/livez").basic_auth("user", Some("head-8814e2")).send().await.expect("an answer").status(), 200);
    eventually(LIMIT, "both end", async || database.number("SELECT COUNT(*) FROM task WHERE finished_us IS NOT NULL").await == 2).await;
    let given_up = "SELECT COUNT(*) FROM delivery WHERE attempts = 2";
    eventually(LIMIT, "each of two webhooks was tried twice for each of two events", async || database.number(given_up).await == 4).await;
    eventually(LIMIT, "spans come", async || !collector.spans().is_empty()).await;
    assert!(agendas.seen().iter().any(|seen| seen.authorization.as_deref() == Some(&format!("Bearer {agenda_token}"))));
    process.interrupt();
    process.ended(LIMIT).await;
    let log = process.log();
    assert!(log.contains(r#""level":"TRACE""#) && log.contains("task COMPLETED") && log.contains("task FAILED"), "the log is on");

    // A start that fails says why, and not with which password.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let url = format!("postgres://postgres:{database_password}@{nobody}/nothing");
    let mut failing =
        Process::launch(&arguments, &[&[("PROTOCOL_BRIDGE__DATABASE__URL", url.as_str())], &environment[1..]].concat(), folder);
    failing.ended(LIMIT).await;
    let failed = failing.log();
    assert!(failed.contains("cannot start"), "{failed}");
    let others = ["query-5ec2e7", "url-a3371c", "head-8814e2", "otlp-6d20aa", "hook-77ab01", sealing_key, hook_secret, made_secret];
    for secret in [database_password, nats_token, agenda_token, key, wrong_key].into_iter().chain(others) {
        for log in [&log, &failed] {
            let shown: Vec<&str> = log.lines().filter(|line| line.contains(secret)).collect();
            assert!(shown.is_empty(), "{secret} is shown:\n{}", shown[..shown.len().min(5)].join("\n"));
        }
    }
}

fn sha256_of(key: &str) -> String {
    use sha2::{Digest as _, Sha256};
    protocol_bridge::generator::documents::hex(&Sha256::digest(key.as_bytes()))
}

fn is_camel_case(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_lowercase()) && key.chars().all(|c| c.is_ascii_alphanumeric())
}

/// The fields of our own events, as the source writes them: one style for whoever searches.
#[test]
fn fields_in_the_source_are_in_one_style() {
    let mut fields = 0;
    each_source(Path::new("src"), &mut |path, text| {
        for (at, _) in text.match_indices("tracing::") {
            let rest = &text[at + "tracing::".len()..];
            let Some((name, body)) = rest.split_once('(') else { continue };
            let is_event = ["trace!", "debug!", "info!", "warn!", "error!", "error_span!", "info_span!"].contains(&name);
            if !is_event {
                continue;
            }
            for field in names_in(body) {
                fields += 1;
                assert!(is_camel_case(field), "{path}: {field}");
            }
        }
    });
    assert!(fields > 100, "they are looked at: {fields}");
}

/// The names at the top level of a macro's arguments: before `=`, or alone, which is short for a variable of that name.
fn names_in(body: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut escaped, mut start, mut is_value) = (0_u32, false, false, 0, false);
    let mut names = Vec::new();
    for (at, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            ',' | '=' if depth == 0 && !(c == '=' && body[at + 1..].starts_with(['=', '>'])) => {
                let name = body[start..at].trim().trim_start_matches(['%', '?']);
                if !is_value && !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                    names.push(name);
                }
                (start, is_value) = (at + 1, c == '=');
            }
            _ => {}
        }
    }
    names
}

fn each_source(folder: &Path, look: &mut dyn FnMut(&str, &str)) {
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).expect("the sources") {
        let path = folder.join(entry.expect("an entry").file_name());
        let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join(&path);
        if whole.is_dir() {
            each_source(&path, look);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            look(&path.display().to_string(), &fs::read_to_string(&whole).expect("UTF-8"));
        }
    }
}
