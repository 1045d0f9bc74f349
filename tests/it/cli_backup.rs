//! A backup as docs/backup.md tells to make and restore it: whatever was done in between, `doctor --documents` tells the truth, and no task is stuck.

use crate::{
    cli_doctor::{LIMIT, doctor, generated},
    support::{Process, TestDatabase, eventually, on_both_databases, postgres},
};
use protocol_bridge::store::Dialect;
use serde_json::{Value, json};
use std::process::Command;

/// Runs the commands of docs/backup.md that stand under `title` in the folder that holds `data` and `backup`.
fn by_the_book(title: &str, database: &TestDatabase) {
    let page = include_str!("../../docs/backup.md");
    let begin = format!("```sh\n   # {title}");
    let (_, block) = page.split_once(&begin).unwrap_or_else(|| panic!("the page says nothing of {title}"));
    let (commands, _) = block.split_once("```").expect("the block ends");
    let path = std::env::join_paths([postgres::installed(), "/usr/bin".into(), "/bin".into()]).expect("a path");
    let mut bash = Command::new("bash");
    bash.args(["-euc", &format!("#{commands}")]).env_clear().env("PATH", path).env("DATABASE_URL", &database.url);
    let output = bash.current_dir(database.data_dir.path()).output().expect("bash is there");
    assert!(output.status.success(), "{title}: {}", String::from_utf8_lossy(&output.stderr));
}

fn dump(database: &TestDatabase) {
    by_the_book(if database.dialect == Dialect::Sqlite { "SQLite, with Python" } else { "PostgreSQL" }, database);
    by_the_book("documents", database);
}

fn restore(database: &TestDatabase) {
    by_the_book(if database.dialect == Dialect::Sqlite { "restore SQLite" } else { "restore PostgreSQL" }, database);
}

/// SQLite's file where the page has it.
fn where_it_is_by_default(database: TestDatabase) -> TestDatabase {
    match database.dialect {
        Dialect::Sqlite => {
            let url = format!("sqlite:{}", database.data_dir.path().join("data/protocol-bridge.db").display());
            TestDatabase { url, ..database }
        }
        Dialect::Postgres => database,
    }
}

/// The blobs of the protocol that a task made.
async fn blobs(process: &Process, task: &Value) -> Vec<Value> {
    let protocol = process.json(&format!("/protocol/{}", task["protocolId"].as_str().expect("an id"))).await;
    let documents = protocol["documents"].as_array().expect("documents");
    let mut blobs: Vec<Value> = documents
        .iter()
        .map(|document| {
            let sha256 = document["sha256"].as_str().expect("a digest");
            json!(format!("sha256/{}/{sha256}", &sha256[..2]))
        })
        .collect();
    blobs.sort_by_key(ToString::to_string);
    blobs
}

on_both_databases! {
    async fn a_restored_backup_is_told_as_it_is_and_no_task_is_stuck(database: TestDatabase) {
        let database = where_it_is_by_default(database);
        let settings = [("PROTOCOL_BRIDGE__ENGINE__LEASE", "3s"), ("PROTOCOL_BRIDGE__ENGINE__HEARTBEAT", "1s")];
        let folder = database.data_dir.path();
        let set_aside = |name: &str| std::fs::rename(folder.join("backup"), folder.join(name)).expect("our own folder");
        let take = |name: &str| std::fs::rename(folder.join(name), folder.join("backup")).expect("our own folder");
        let mut process = Process::serve(&database, &settings).await;
        let first = generated(&process, "council-2026-11").await;
        // Dumped while one task runs and one waits.
        for payload in [json!({ "sleepMs": 4000 }), json!({ "failUntilAttempt": 2 })] {
            assert_eq!(process.post("/api/tasks", &json!({ "kind": "demo", "payload": payload })).await.0, 202);
        }
        eventually(LIMIT, "one runs", async || database.number("SELECT COUNT(*) FROM task WHERE status = 'IN_PROGRESS'").await > 0).await;
        // The database first, then the documents: everything that the database names is in the copy.
        dump(&database);
        set_aside("old");

        // It runs on.
        let second = generated(&process, "allotments-2026").await;
        let (of_first, of_second) = (blobs(&process, &first).await, blobs(&process, &second).await);
        dump(&database);
        set_aside("new");
        process.kill();

        // The older database with the newer documents, as when the documents' disk survived: what came later is nobody's, and no fault.
        take("old");
        restore(&database);
        let (code, report) = doctor(&database, &["--documents"], &[]);
        assert_eq!((code, &report["documents"]["missing"]["count"]), (Some(0), &0.into()), "{report}");
        let nobodys = report["documents"]["unreferenced"]["blobs"].as_array().expect("a list").clone();
        assert!(of_second.iter().all(|blob| nobodys.contains(blob)) && !of_first.iter().any(|blob| nobodys.contains(blob)), "{report}");

        // Nothing that was under way when the dump was made is stuck, and what was made afterwards is made again.
        let mut process = Process::serve(&database, &settings).await;
        eventually(LIMIT, "all end", async || database.number("SELECT COUNT(*) FROM task WHERE finished_us IS NULL").await == 0).await;
        assert_eq!(database.number("SELECT COUNT(*) FROM task WHERE status <> 'COMPLETED'").await, 0);
        let again = generated(&process, "allotments-2026").await;
        assert_eq!(blobs(&process, &again).await, of_second, "the same content is the same file");
        let (code, report) = doctor(&database, &["--documents"], &[]);
        assert_eq!((code, &report["documents"]["unreferenced"]["count"]), (Some(0), &0.into()), "{report}");
        process.kill();

        // The other way round, which the order of the backup prevents: the newer database names files that the older documents lack.
        by_the_book("restore documents", &database);
        set_aside("old");
        take("new");
        restore(&database);
        let (code, report) = doctor(&database, &["--documents"], &[]);
        assert_eq!((code, &report["documents"]["missing"]["blobs"]), (Some(1), &of_second.into()), "{report}");
        let process = Process::serve(&database, &settings).await;
        eventually(LIMIT, "all end", async || database.number("SELECT COUNT(*) FROM task WHERE finished_us IS NULL").await == 0).await;
        drop(process);
    }
}
