//! A backup as docs/backup.md tells to make and restore it: whatever was done in between, `doctor --documents` tells the truth, and no task is stuck.

use crate::{
    cli_doctor::{LIMIT, doctor, generated},
    support::{Process, TestDatabase, eventually, on_both_databases, postgres},
};
use protocol_bridge::store::Dialect;
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

fn run(command: &mut Command) {
    let output = command.output().expect("it can be started");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Dumps the database while it is in use.
async fn dump(database: &TestDatabase, to: &Path) {
    match database.dialect {
        Dialect::Sqlite => database.execute(&format!("VACUUM INTO '{}'", to.display())).await,
        Dialect::Postgres => {
            run(Command::new(postgres::installed().join("pg_dump")).args(["--format=custom", "--file"]).arg(to).arg(&database.url));
        }
    }
}

/// Puts a dump in the place of the database; nobody uses it.
fn restore(database: &TestDatabase, from: &Path) {
    match database.dialect {
        Dialect::Sqlite => {
            let file = PathBuf::from(database.url.trim_start_matches("sqlite:"));
            for ending in ["-wal", "-shm"] {
                let _ = std::fs::remove_file(format!("{}{ending}", file.display()));
            }
            std::fs::copy(from, &file).expect("the file");
        }
        Dialect::Postgres => {
            let restore = ["--clean", "--if-exists", "--single-transaction", "--exit-on-error", "--dbname"];
            run(Command::new(postgres::installed().join("pg_restore")).args(restore).arg(&database.url).arg(from));
        }
    }
}

fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").arg("-a").arg(from).arg(to));
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
        let settings = [("PROTOCOL_BRIDGE__ENGINE__LEASE", "3s"), ("PROTOCOL_BRIDGE__ENGINE__HEARTBEAT", "1s")];
        let folder = database.data_dir.path();
        let documents = folder.join("data/documents");
        let (old, new) = (folder.join("old.dump"), folder.join("new.dump"));
        let mut process = Process::serve(&database, &settings).await;
        let first = generated(&process, "council-2026-11").await;
        // Dumped while one task runs and one waits.
        for payload in [json!({ "sleepMs": 4000 }), json!({ "failUntilAttempt": 2 })] {
            assert_eq!(process.post("/api/tasks", &json!({ "kind": "demo", "payload": payload })).await.0, 202);
        }
        eventually(LIMIT, "one runs", async || database.number("SELECT COUNT(*) FROM task WHERE status = 'IN_PROGRESS'").await > 0).await;
        // The database first, then the documents: everything that the database names is in the copy.
        dump(&database, &old).await;
        copy(&documents, &folder.join("old-documents"));

        // It runs on.
        let second = generated(&process, "allotments-2026").await;
        let (of_first, of_second) = (blobs(&process, &first).await, blobs(&process, &second).await);
        dump(&database, &new).await;
        process.kill();

        // The older database with the newer documents, as when the documents' disk survived: what came later is nobody's, and no fault.
        restore(&database, &old);
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
        restore(&database, &new);
        std::fs::remove_dir_all(&documents).expect("our own folder");
        copy(&folder.join("old-documents"), &documents);
        let (code, report) = doctor(&database, &["--documents"], &[]);
        assert_eq!((code, &report["documents"]["missing"]["blobs"]), (Some(1), &of_second.into()), "{report}");
        let process = Process::serve(&database, &settings).await;
        eventually(LIMIT, "all end", async || database.number("SELECT COUNT(*) FROM task WHERE finished_us IS NULL").await == 0).await;
        drop(process);
    }
}
