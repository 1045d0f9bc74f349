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

#[test]
fn a_new_key_is_shown_once_with_what_goes_into_the_configuration() {
    use sha2::{Digest as _, Sha256};
    let folder = tempfile::tempdir().expect("a folder");
    let made = run(&["keys", "new", "portal", "--role", "legacy", "--role", "submit"], &[], folder.path());
    assert_eq!(code(&made), Some(0), "{}", stderr(&made));
    let key = stdout(&made).lines().find_map(|line| line.strip_prefix("# key: ")).expect("the key").to_owned();
    assert!(key.len() >= 40 && key.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-')), "{key}");
    let hash = protocol_bridge::generator::documents::hex(&Sha256::digest(key.as_bytes()));
    assert!(stdout(&made).contains(&format!("key_sha256 = \"{hash}\"")), "{}", stdout(&made));
    let again = run(&["keys", "new", "portal", "--role", "legacy"], &[], folder.path());
    assert!(!stdout(&again).contains(&key), "no two are the same");
    // What is printed can be appended to a configuration as it is.
    fs::write(folder.path().join("bridge.toml"), &made.stdout).expect("written");
    let checked = run(&["check-config", "--config", "bridge.toml", "--listen", "0.0.0.0:80"], &[], folder.path());
    assert_eq!((code(&checked), stdout(&checked)), (Some(0), "ok\n"), "{}", stderr(&checked));

    for wrong in
        [["keys", "new", "a b", "--role", "legacy"], ["keys", "new", "other", "--role", "read"], ["keys", "new", "x", "--role", "king"]]
    {
        assert_eq!(code(&run(&wrong, &[], folder.path())), Some(2), "{wrong:?}");
    }
    assert_eq!(code(&run(&["keys", "new", "x"], &[], folder.path())), Some(2), "a key that may do nothing is a mistake");
}
