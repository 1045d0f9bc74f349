//! The seed's sequence, each branch, played by the real caller: the example program, with a real nginx between it and the service. One task, one protocol, and the
//! caller gets it. nginx gives up after 1 s here; `scripts/nginx-default.sh` plays the same with its default of 60 s.

use crate::support::{Service, TestDatabase, agendas, nginx::Nginx, on_both_databases, state_machine::StateMachine};
use serde_json::{Value, json};
use std::time::Duration;

/// Longer than three of nginx's patience.
const SLOW: Duration = Duration::from_millis(3500);

fn agenda(id: &str) -> Value {
    agendas::with("/agendaId", id.into())
}

async fn service(database: TestDatabase, machine: &StateMachine, settings: &[(&str, &str)]) -> Service {
    Service::configured(database, &[&[("AGENDA__SOURCE", machine.source.as_str())], settings].concat()).await
}

/// The agenda is protected, by the only protocol of the only task.
async fn one_task_one_protocol(service: &Service, machine: &StateMachine, id: &str) {
    let generation = machine.agenda(id)["generation"].clone();
    assert_eq!((&generation["state"], &generation["version"]), (&json!("done"), &json!(1)), "{id}: {generation}");
    assert_eq!(machine.statuses(id), ["PROTECTED", "PROTECTED"], "{id}");
    for table in ["task", "protocol"] {
        let rows = service.database.number(&format!("SELECT COUNT(*) FROM {table} WHERE agenda_id = '{id}'")).await;
        assert_eq!(rows, 1, "rows of {table} for {id}");
    }
    let stored = service.database.fetch(&format!("SELECT task_id, id FROM protocol WHERE agenda_id = '{id}'")).await;
    assert_eq!(stored[0], [generation["taskId"].clone(), generation["protocolId"].clone()], "{id}");
}

on_both_databases! {
    async fn a_proxy_that_gives_up_first_and_a_client_that_does(database: TestDatabase) {
        let machine = StateMachine::start(SLOW);
        let service = service(database, &machine, &[]).await;
        let (proxy, direct) = (Nginx::start(service.address, "1s").await, format!("http://{}", service.address));
        let proxied = format!("http://{}", proxy.address);
        for id in ["poll", "again", "cut"] {
            machine.add(&agenda(id));
        }
        let ((poll, told_poll), (again, told_again), (cut, told_cut)) = futures::join!(
            machine.run(&proxied, &["--mode", "v1", "--agenda", "poll", "--on-504", "poll"]),
            machine.run(&proxied, &["--mode", "v1", "--agenda", "again", "--on-504", "again"]),
            machine.run(&direct, &["--mode", "v1", "--agenda", "cut", "--cut", "0.7"]),
        );
        assert_eq!((poll, again, cut), (0, 0, 0), "{told_poll}\n{told_again}\n{told_cut}");
        assert!(told_poll.contains("call 1: 504 (a proxy's)") && !told_poll.contains("call 2"), "it found the task by its agenda: {told_poll}");
        assert!(told_again.contains("call 3: 504 (a proxy's)"), "it called again and again: {told_again}");
        assert!(told_cut.contains("call 3"), "it hung up and called again: {told_cut}");
        for id in ["poll", "again", "cut"] {
            one_task_one_protocol(&service, &machine, id).await;
        }
    }

    async fn the_services_own_504_answered_both_ways(database: TestDatabase) {
        let machine = StateMachine::start(SLOW);
        let service = service(database, &machine, &[("LEGACY__TIMEOUT", "1s")]).await;
        let url = format!("http://{}", service.address);
        machine.add(&agenda("poll"));
        machine.add(&agenda("again"));
        let ((poll, told_poll), (again, told_again)) = futures::join!(
            machine.run(&url, &["--mode", "v1", "--agenda", "poll", "--on-504", "poll"]),
            machine.run(&url, &["--mode", "v1", "--agenda", "again", "--on-504", "again"]),
        );
        assert_eq!((poll, again), (0, 0), "{told_poll}\n{told_again}");
        for (id, told) in [("poll", &told_poll), ("again", &told_again)] {
            let task = machine.agenda(id)["generation"]["taskId"].as_str().expect("a task").to_owned();
            assert!(told.contains(&format!("call 1: 504 {task}")), "the 504 names the task: {told}");
            one_task_one_protocol(&service, &machine, id).await;
        }
    }

    async fn it_waits_for_the_last_signature_and_tells_of_a_failure(database: TestDatabase) {
        let machine = StateMachine::start(Duration::ZERO);
        let service = service(database, &machine, &[]).await;
        let url = format!("http://{}", service.address);
        machine.add(&agendas::spoil(agenda("late"), "/questions/1/status", "DRAFT".into()));
        assert_eq!(machine.run(&url, &["--mode", "v1"]).await.0, 0, "nothing is ready, nothing is asked");
        assert_eq!(service.database.number("SELECT COUNT(*) FROM task").await, 0);
        let sign = async { machine.sign("late", "q2") };
        let ((code, told), ()) = futures::join!(machine.run(&url, &["--mode", "v1", "--wait"]), sign);
        assert_eq!(code, 0, "{told}");
        one_task_one_protocol(&service, &machine, "late").await;

        machine.add(&agendas::spoil(agenda("wrong"), "/questions/0/vote/for", 9.into()));
        let (code, told) = machine.run(&url, &["--mode", "v1", "--agenda", "wrong"]).await;
        assert_eq!((code, machine.agenda("wrong")["generation"]["problem"].as_str()), (1, Some("/problems/agenda-invalid")), "{told}");
        assert_eq!(machine.statuses("wrong"), ["REPORT_SIGNED", "PROTECTED"], "nothing moved");
        machine.add(&agenda("wrong"));
        assert_eq!(machine.run(&url, &["--mode", "v1", "--agenda", "wrong"]).await.0, 0, "corrected and tried again");
        assert_eq!(machine.statuses("wrong"), ["PROTECTED", "PROTECTED"]);
    }

    async fn closed_out_of_v1_it_moves_to_the_task_api(database: TestDatabase) {
        let machine = StateMachine::start(Duration::ZERO);
        let service = service(database, &machine, &[("LEGACY__STAGE", "M3")]).await;
        let url = format!("http://{}", service.address);
        machine.add(&agenda("moved"));
        assert_eq!(machine.run(&url, &["--mode", "v1"]).await.0, 3);
        let (code, told) = machine.run(&url, &["--mode", "v2"]).await;
        assert_eq!(code, 0, "{told}");
        one_task_one_protocol(&service, &machine, "moved").await;
    }

    async fn killed_while_it_polls_it_goes_on_with_the_same_task(database: TestDatabase) {
        let machine = StateMachine::start(SLOW);
        let service = service(database, &machine, &[]).await;
        let proxy = Nginx::start(service.address, "1s").await;
        let url = format!("http://{}", proxy.address);
        machine.add(&agenda("killed"));
        let mut first = machine.launch(&url, &["--mode", "v2"]);
        let running = machine.reaches("killed", "running").await;
        first.kill().expect("our child");
        first.wait().expect("our child");
        let (code, told) = machine.run(&url, &["--mode", "v2"]).await;
        assert_eq!((code, &machine.agenda("killed")["generation"]["taskId"]), (0, &running["taskId"]), "{told}");
        one_task_one_protocol(&service, &machine, "killed").await;

        // Killed before it had written the task down, it has the key.
        machine.rewrite("killed", json!({ "state": "submitting", "key": "agenda-state-machine-killed-1" }));
        let (code, told) = machine.run(&url, &["--mode", "v2"]).await;
        assert_eq!(code, 0, "{told}");
        one_task_one_protocol(&service, &machine, "killed").await;
    }
}

/// Case H-01 with nginx and the client as they come: both give up after 60 s.
async fn nginx_and_client_as_they_come(database: TestDatabase) {
    let machine = StateMachine::start(Duration::from_secs(130));
    let service = service(database, &machine, &[("AGENDA__TIMEOUT", "5m")]).await;
    let (proxy, direct) = (Nginx::as_it_comes(service.address).await, format!("http://{}", service.address));
    let proxied = format!("http://{}", proxy.address);
    for id in ["poll", "again", "cut"] {
        machine.add(&agenda(id));
    }
    let ((poll, told_poll), (again, told_again), (cut, told_cut)) = futures::join!(
        machine.run(&proxied, &["--mode", "v1", "--agenda", "poll", "--cut", "900", "--on-504", "poll", "--tries", "2000"]),
        machine.run(&proxied, &["--mode", "v1", "--agenda", "again", "--cut", "900", "--on-504", "again"]),
        machine.run(&direct, &["--mode", "v1", "--agenda", "cut"]),
    );
    assert_eq!((poll, again, cut), (0, 0, 0), "{told_poll}\n{told_again}\n{told_cut}");
    assert!(told_poll.contains("call 1: 504 (a proxy's)"), "{told_poll}");
    assert!(told_again.contains("call 2: 504 (a proxy's)"), "{told_again}");
    assert!(told_cut.contains("call 2"), "{told_cut}");
    for id in ["poll", "again", "cut"] {
        one_task_one_protocol(&service, &machine, id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/nginx-default.sh"]
async fn nginx_and_client_as_they_come_on_sqlite() {
    nginx_and_client_as_they_come(TestDatabase::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/nginx-default.sh"]
async fn nginx_and_client_as_they_come_on_postgres() {
    nginx_and_client_as_they_come(TestDatabase::postgres().await).await;
}
