//! What the program says about its configuration and its surroundings before it serves.

use crate::support::process::{Process, run};
use std::{fs, net::TcpListener, process::Output, time::Duration};

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("UTF-8")
}

#[test]
fn check_config_says_ok_or_everything_that_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = run(&["check-config"], &[], folder.path());
    assert_eq!((code(&good), stdout(&good), stderr(&good)), (Some(0), "ok\n", ""));

    fs::write(folder.path().join("bridge.toml"), "[engine]\nmax_runing = 3\nlease = 'soon'\n").expect("written");
    let bad = run(&["check-config", "--config", "bridge.toml", "--listen", "0.0.0.0:80"], &[], folder.path());
    assert_eq!((code(&bad), stdout(&bad)), (Some(2), ""));
    for expected in ["did you mean engine.max_running?", "engine.lease (from bridge.toml): \"soon\"", "auth.disabled = true"] {
        assert!(stderr(&bad).contains(expected), "{expected} is not in\n{}", stderr(&bad));
    }

    let dangerous = run(&["check-config"], &[("PROTOCOL_BRIDGE__LEGACY__TIMEOUT", "1s")], folder.path());
    assert_eq!((code(&dangerous), stdout(&dangerous)), (Some(0), "ok\n"));
    assert!(stderr(&dangerous).starts_with("warning: legacy.timeout: 1s is less than"), "{}", stderr(&dangerous));
}

#[test]
fn a_configuration_that_cannot_be_used_starts_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = run(&["--listen", "0.0.0.0:0"], &[], folder.path());
    assert_eq!(code(&refused), Some(2));
    assert!(stderr(&refused).contains("0.0.0.0:0 can be reached from other machines"), "{}", stderr(&refused));
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0, "nothing was made");
}

#[test]
fn a_taken_port_is_said_plainly() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = other.local_addr().expect("its address").to_string();
    let refused = run(&["--listen", &address], &[], folder.path());
    assert_eq!(code(&refused), Some(1));
    assert!(
        stderr(&refused).contains(&format!("{address} is taken by another program; stop it or choose --listen")),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn the_version_names_the_commit() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(&["--version"], &[], folder.path());
    let words: Vec<&str> = stdout(&output).split_whitespace().collect();
    assert_eq!(&words[..2], ["protocol-bridge", env!("CARGO_PKG_VERSION")]);
    assert!(words[2].len() > 8, "{words:?}");
}

#[test]
fn migrate_makes_the_schema_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for _ in 0..2 {
        let output = run(&["migrate", "--data-dir", "data"], &[], folder.path());
        assert_eq!((code(&output), stdout(&output)), (Some(0), "the schema is up to date\n"), "{}", stderr(&output));
    }
    assert!(folder.path().join("data/protocol-bridge.db").exists());
    let away = run(&["migrate", "--database-url", "postgres://nobody@127.0.0.1:1/none"], &[], folder.path());
    assert_eq!(code(&away), Some(1));
    assert!(stderr(&away).contains("the database cannot be opened"), "{}", stderr(&away));
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_json_off_a_terminal_and_text_when_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = Process::start(&[], &[], folder.path()).await;
    for line in json.log().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line} is no JSON"));
        assert!(["timestamp", "level", "target", "message"].iter().all(|key| line[key].is_string()), "{line}");
    }
    drop(json);

    let environment = [("PROTOCOL_BRIDGE__TELEMETRY__FORMAT", "text"), ("PROTOCOL_BRIDGE__SHUTDOWN__ANNOUNCE", "0s")];
    let mut text = Process::launch(&[], &environment, folder.path());
    crate::support::eventually(Duration::from_mins(1), "it listens", async || text.log().contains("listening")).await;
    assert!(text.log().lines().all(|line| !line.starts_with('{')), "{}", text.log());
    text.terminate();
    text.ended(Duration::from_secs(30)).await;
}
