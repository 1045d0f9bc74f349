//! When there is no room: a full queue, a full disk. Nothing new is accepted, what runs finishes where it can, and it is over by itself.

use crate::{
    engine_world::{LIMIT, Node, Script, Setup, author, demo, endless, protocol, with_key},
    support::{Service, TestDatabase, eventually, on_both_databases},
};
use futures::{FutureExt as _, future::join_all};
use protocol_bridge::{
    base::disk::FreeSpace,
    domain::task::{Kind, Status},
    engine::{Decision, Done, Effected, Overload, SubmitError, effect},
    store::{Db, Dialect, Tx, setting},
};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use tokio::sync::Notify;

/// From now on the database has no room for another task; `false`: it has again.
async fn fill_the_disk(database: &TestDatabase, db: &Db, full: bool) {
    match database.dialect {
        // SQLite reports a database at its page limit exactly as it does a full disk.
        Dialect::Sqlite => {
            let limit = if full { "PRAGMA max_page_count = 1" } else { "PRAGMA max_page_count = 1000000" };
            db.transaction("test", move |tx| {
                Box::pin(async move {
                    let Tx::Sqlite(connection) = tx else { unreachable!("it is SQLite") };
                    sqlx::query(limit).execute(&mut **connection).await?;
                    Ok(())
                })
            })
            .await
            .expect("a limit for the writer's connection");
        }
        Dialect::Postgres if full => {
            database
                .execute(
                    "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$; \
                 CREATE TRIGGER no_room BEFORE INSERT ON task FOR EACH ROW EXECUTE FUNCTION no_room(); \
                 CREATE TRIGGER no_room BEFORE INSERT ON setting FOR EACH ROW EXECUTE FUNCTION no_room()",
                )
                .await;
        }
        Dialect::Postgres => {
            database.execute("DROP TRIGGER no_room ON task; DROP TRIGGER no_room ON setting; DROP FUNCTION no_room()").await;
        }
    }
}

async fn refused(node: &Node, submission: protocol_bridge::engine::Submission) -> Overload {
    match node.engine.submit(submission, None).await {
        Err(SubmitError::Overloaded(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}

on_both_databases! {
    async fn the_limit_is_exact_however_many_ask_at_once_on_however_many_nodes(database: TestDatabase) {
        const LIMIT_OF_QUEUE: u64 = 25;
        let setup = || Setup::still(1).with_config(|config| config.max_pending = LIMIT_OF_QUEUE);
        let db = setup().open(&database).await;
        let other = if database.dialect == Dialect::Postgres { setup().open(&database).await } else { db.clone() };
        // Each with randomness of its own: two nodes of one seed would make the same ids.
        let entropy = setup().entropy;
        let node = |db: &Db| {
            let mut setup = setup();
            setup.entropy = entropy.clone();
            setup.by_hand(&database, db)
        };
        let nodes = [node(&db), node(&other)];
        let active = nodes[0].0.submit(protocol("active")).await;
        let calls = (0..60).map(|call| nodes[call % 2].0.engine.submit(with_key(demo("{}"), &format!("k{call}"), "same"), None));
        let answers = join_all(calls).await;
        let accepted = answers.iter().filter(|answer| answer.is_ok()).count();
        let full = answers.iter().filter(|answer| matches!(answer, Err(SubmitError::Overloaded(Overload::Queue)))).count();
        assert_eq!((accepted, full), (24, 36), "25 with the first one");
        assert_eq!(database.number("SELECT COUNT(*) FROM task").await, 25);
        assert_eq!(database.number("SELECT COUNT(*) FROM idempotency_key").await, 24, "refused keys are free");
        for (node, _) in &nodes {
            let joined = node.engine.submit(protocol("active"), None).await.unwrap();
            assert!(joined.joined && joined.task.id == active.id, "who joins adds nothing");
        }
        // One leaves, one comes in.
        nodes[1].0.engine.cancel(active.id, &author()).await.unwrap();
        nodes[0].0.submit(demo("{}")).await;
        assert_eq!(refused(&nodes[1].0, demo("{}")).await, Overload::Queue);
    }

    async fn below_the_floor_of_free_space_nothing_new_comes_in_and_what_runs_finishes(database: TestDatabase) {
        let mut setup = Setup::still(2);
        let clock = setup.clock.clone();
        setup.disk = Some(FreeSpace::new(database.data_dir.path().to_owned(), u64::MAX));
        let db = setup.open(&database).await;
        let (full, ticks) = setup.by_hand(&database, &db);
        let mut setup = Setup::still(3);
        setup.clock = clock;
        let (roomy, _ticks) = setup.by_hand(&database, &db);
        let task = roomy.submit(protocol("a")).await;
        assert_eq!(refused(&full, demo("{}")).await, Overload::Disk);
        assert_eq!(refused(&full, with_key(protocol("b"), "k", "f")).await, Overload::Disk);
        assert!(full.engine.submit(protocol("a"), None).await.unwrap().joined);
        assert_eq!(ticks.claim_due().await.unwrap(), 1);
        full.reaches(task.id, Status::Completed).await;
    }

    async fn a_full_disk_refuses_submissions_and_loses_nothing_and_is_over_by_itself(database: TestDatabase) {
        let setup = Setup::new().with_executor(Kind::Protocol, endless());
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let running = node.submit(protocol("runs")).await;
        node.reaches(running.id, Status::InProgress).await;
        fill_the_disk(&database, &db, true).await;
        let mut submission = demo("{}");
        // More than there is room for in the pages that there are.
        submission.payload = json!({ "note": "x".repeat(200_000) }).to_string();
        for _ in 0..3 {
            assert_eq!(refused(&node, submission.clone()).await, Overload::Disk);
        }
        assert_eq!(node.task(running.id).await.status, Status::InProgress);
        fill_the_disk(&database, &db, false).await;
        let task = node.submit(submission).await;
        node.reaches(task.id, Status::Completed).await;
        let running = node.task(running.id).await;
        assert_eq!((running.status, running.claim_no), (Status::InProgress, 1), "it never noticed");
        node.kill().await;
    }

    async fn a_finish_that_finds_no_room_is_written_when_there_is(database: TestDatabase) {
        let tries = Arc::new(AtomicU32::new(0));
        let (go_on, counted) = (Arc::new(Notify::new()), Arc::clone(&tries));
        let gate = Arc::clone(&go_on);
        let setup = Setup::new().with_executor(Kind::Demo, Script::new(move |_| {
            let (gate, tries) = (Arc::clone(&gate), Arc::clone(&counted));
            async move {
                gate.notified().await;
                let effect = effect(move |tx| {
                    tries.fetch_add(1, Ordering::Relaxed);
                    async move {
                        setting::put(tx, "result", &"x".repeat(200_000)).await?;
                        Ok(Effected::default())
                    }
                    .boxed()
                });
                Decision::Done(Done { effect: Some(effect) })
            }
        }));
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let task = node.submit(demo("{}")).await;
        node.reaches(task.id, Status::InProgress).await;
        fill_the_disk(&database, &db, true).await;
        go_on.notify_one();
        eventually(LIMIT, "it was tried, and tried again", || async { tries.load(Ordering::Relaxed) >= 2 }).await;
        assert_eq!(node.task(task.id).await.status, Status::InProgress);
        fill_the_disk(&database, &db, false).await;
        let done = node.reaches(task.id, Status::Completed).await;
        assert_eq!((done.claim_no, done.attempt_no), (1, 1), "the same attempt");
        node.kill().await;
    }

    async fn both_doors_say_it_alike(database: TestDatabase) {
        let service = Service::configured(database, &[("ENGINE__MAX_PENDING", "1")]).await;
        assert_eq!(service.post("/api/engine/pause").send().await.unwrap().status(), 200);
        let (status, first) = service.json(service.post("/task").json(&json!({ "agendaId": "1" }))).await;
        assert_eq!(status, 202);
        for request in [
            service.post("/task").json(&json!({ "agendaId": "2" })),
            service.post("/api/tasks").json(&json!({ "payload": {} })),
            service.merge("2"), // goes with v1
        ] {
            let response = request.send().await.unwrap();
            assert_eq!((response.status().as_u16(), response.headers()["retry-after"].to_str().unwrap()), (503, "5"));
            let problem: serde_json::Value = response.json().await.unwrap();
            assert_eq!((&problem["type"], &problem["detail"]), (&"/problems/overloaded".into(), &"Too many tasks wait already; nothing was accepted.".into()));
        }
        let (status, joined) = service.json(service.post("/task").json(&json!({ "agendaId": "1" }))).await;
        assert_eq!((status, &joined["taskId"], &joined["joined"]), (202, &first["taskId"], &true.into()));
        // goes with v1: begin
        let (status, joined) = service.json(service.merge("1").header("prefer", "respond-async")).await;
        assert_eq!((status, &joined["taskId"]), (202, &first["taskId"]), "v1 joins, too");
        // goes with v1: end
        let (status, _) = service.json(service.request(reqwest::Method::DELETE, &format!("/task/{}", first["taskId"].as_str().unwrap()))).await;
        assert_eq!(status, 202);

        fill_the_disk(&service.database, &service.db, true).await;
        let large = json!({ "payload": { "note": "x".repeat(200_000) } });
        let response = service.post("/api/tasks").json(&large).send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.headers()["retry-after"].to_str().unwrap()), (503, "5"));
        let problem: serde_json::Value = response.json().await.unwrap();
        assert_eq!((&problem["type"], &problem["detail"]), (&"/problems/overloaded".into(), &"The disk is full; nothing was accepted.".into()));
        fill_the_disk(&service.database, &service.db, false).await;
        assert_eq!(service.json(service.post("/api/tasks").json(&large)).await.0, 202);
    }
}
