//! A proxy between the caller and us gives up first, with a page of its own; the caller calls again (H-01).

use crate::support::{Service, TestDatabase, nginx::Nginx, on_both_databases};

on_both_databases! {
    async fn a_proxy_that_gives_up_first_costs_repeated_calls_and_no_second_task(database: TestDatabase) {
        let service = Service::start(database).await;
        let proxy = Nginx::start(service.address, "1s").await;
        let call = || service.client().post(format!("http://{}/api/v1/protocol/merge/byAgenda/slow-42", proxy.address)).send();
        for _ in 0..3 {
            let answer = call().await.expect("the proxy answers");
            assert_eq!(answer.status(), 504);
            assert!(!answer.headers().contains_key("error-source"), "the proxy's own page, without a task id");
        }
        // The caller never saw a task id, and finds the task by its agenda.
        let (status, tasks) = service.json(service.get("/task?agendaId=slow-42")).await;
        assert_eq!((status, tasks["items"].as_array().map(Vec::len)), (200, Some(1)), "{tasks}");
        let task = tasks["items"][0]["taskId"].as_str().expect("an id").to_owned();
        service.agendas.release();
        service.finished(&task).await;

        let answer = call().await.expect("the proxy answers");
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["task-id"], task.as_str(), "what it was owed");
        assert_eq!(service.database.number("SELECT COUNT(*) FROM protocol").await, 1);
        assert_eq!(service.database.number("SELECT COUNT(*) FROM task").await, 1);
    }
}
