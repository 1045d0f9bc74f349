//! `replay`: an operator's way to put failed tasks back, with the service up or down.

use crate::support::{Process, TestDatabase, eventually, on_both_databases, process::run};
use serde_json::{Value, json};
use std::{process::Output, time::Duration};

const LIMIT: Duration = Duration::from_mins(1);

struct Operator {
    database: TestDatabase,
}

impl Operator {
    fn replay(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let folder = self.database.data_dir.path();
        let data_dir = folder.join("data").display().to_string();
        let all = [&["replay", "--database-url", &self.database.url, "--data-dir", &data_dir], arguments].concat();
        let Output { status, stdout, stderr } = run(&all, &[("USER", "night-shift")], folder);
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (status.code(), text(stdout), text(stderr))
    }
}

async fn failed(process: &Process, agenda: &str) -> Value {
    let (_, task) = process.post("/task", &json!({ "agendaId": agenda })).await;
    let link = task["links"]["status"].as_str().expect("a link").to_owned();
    eventually(LIMIT, "it fails", async || process.json(&link).await["status"] == "FAILED").await;
    process.json(&link).await
}

on_both_databases! {
    async fn what_failed_is_put_back_with_the_service_up_and_with_it_down(database: TestDatabase) {
        let mut process = Process::serve(&database, &[("PROTOCOL_BRIDGE__SHUTDOWN__ANNOUNCE", "0s")]).await;
        let one = failed(&process, "no-such-1").await;
        let two = failed(&process, "no-such-2").await;
        let three = failed(&process, "unsigned-council").await;
        let operator = Operator { database };
        assert_eq!(operator.replay(&[]).0, Some(2), "what is to be replayed has to be said");
        assert_eq!(operator.replay(&["--reason", "made-up"]).0, Some(2));
        assert_eq!(operator.replay(&["0198c0de-0000-7000-8000-000000000000"]).0, Some(4), "unknown");
        let (code, said, _) = operator.replay(&["--reason", "agenda-not-found", "--dry-run"]);
        assert_eq!((code, &*said), (Some(0), "2 would be replayed\n"));
        // Up: it is picked up, and fails again.
        let (code, said, warned) = operator.replay(&["--reason", "agenda-not-found", "--json"]);
        assert_eq!((code, &*warned), (Some(0), ""), "{said}");
        let summary: Value = serde_json::from_str(&said).expect("one JSON object");
        assert_eq!(summary, json!({ "dryRun": false, "matching": 2, "replayed": 2, "skipped": [] }));
        for task in [&one, &two] {
            let path = format!("/api/tasks/{}", task["taskId"].as_str().expect("an id"));
            eventually(LIMIT, "it ran again", async || {
                let task = process.json(&path).await;
                task["status"] == "FAILED" && task["attempts"].as_array().is_some_and(|attempts| attempts.len() == 2)
            })
            .await;
        }
        // Down: it waits. A task's id does as well as its dead letter's.
        process.terminate();
        process.ended(LIMIT).await;
        let id = three["taskId"].as_str().expect("an id");
        let (code, said, _) = operator.replay(&[id, "--from-phase", "MERGE"]);
        assert_eq!((code, &*said), (Some(0), "1 replayed, 0 skipped\n"));
        let (code, said, why) = operator.replay(&[id]);
        assert_eq!((code, &*said), (Some(4), "0 replayed, 1 skipped\n"));
        assert!(why.contains("it was replayed before"), "{why}");
        let (code, said, _) = operator.replay(&["--all"]);
        assert_eq!((code, &*said), (Some(0), "2 replayed, 0 skipped\n"));
        assert_eq!(operator.database.number("SELECT COUNT(*) FROM task WHERE status = 'PENDING'").await, 3);
        assert_eq!(operator.database.number("SELECT COUNT(*) FROM audit WHERE action = 'dead-letter.replay' AND actor = 'cli:night-shift'").await, 5);
        let process = Process::serve(&operator.database, &[]).await;
        for task in [one, two, three] {
            let link = task["links"]["status"].as_str().expect("a link").to_owned();
            eventually(LIMIT, "the next process runs it", async || process.json(&link).await["status"] == "FAILED").await;
        }
    }
}
