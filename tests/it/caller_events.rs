//! The example state machine told by events: by webhook and by JetStream, duplicates dropped, an event that is there before its 202.

use crate::support::{Service, TestDatabase, agendas, nats::Nats, on_both_databases, state_machine::StateMachine};
use protocol_bridge::base::config::SubscriptionConfig;
use serde_json::{Value, json};
use std::time::Duration;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// It would have to be told within this; nobody looks at the task meanwhile.
const RUN: [&str; 4] = ["--mode", "events", "--fallback", "60"];

fn agenda(id: &str) -> Value {
    agendas::with("/agendaId", id.into())
}

on_both_databases! {
    async fn it_is_told_by_a_webhook(database: TestDatabase) {
        let machine = StateMachine::start(Duration::ZERO);
        let mut listener = machine.listen(&["--listen", "127.0.0.1:0", "--secret", "whsec_QmV2b3JlIGl0IHdhcyByZXBsYWNlZA==", "--secret", SECRET]);
        let url = listener.line();
        let written = SubscriptionConfig { name: "machine".to_owned(), url: url.clone(), types: Vec::new(), secret: SECRET.into(), secret_file: None };
        let settings = [("AGENDA__SOURCE", machine.source.as_str()), ("AUTH__SECRET_KEY", "a secret key of tests, long enough for one")];
        let service = Service::with(database, &settings, |config| {
            config.events.allow_private_targets = true;
            config.events.subscriptions = vec![written];
        })
        .await;
        let bridge = format!("http://{}", service.address);
        machine.add(&agenda("told"));
        let (code, told) = machine.run(&bridge, &RUN).await;
        assert!(code == 0 && told.contains("told: told ObesrabuoProtocolGenerationCompleted"), "{told}");
        assert_eq!(machine.agenda("told")["generation"]["state"], "done");
        assert_eq!(machine.statuses("told"), ["PROTECTED", "PROTECTED"]);
        assert!(listener.line().starts_with("taken: "));
        // The same event again.
        let deliveries = service.json(service.get("/api/deliveries")).await.1;
        let id = deliveries["items"][0]["deliveryId"].as_str().expect("an id").to_owned();
        assert_eq!(service.json(service.post(&format!("/api/deliveries/{id}/resend"))).await.0, 202);
        assert!(listener.line().starts_with("known already, dropped: "));
        // Somebody else's request.
        let forged = service.client().post(&url).header("webhook-id", "1").header("webhook-timestamp", "1").header("webhook-signature", "v1,AAAA");
        assert_eq!(forged.body("{}").send().await.unwrap().status(), 401);
        assert!(listener.line().starts_with("refused"));
        // An event that is there before the 202: the submission arrived, its answer did not.
        machine.add(&agenda("early"));
        machine.rewrite("early", json!({ "state": "submitting", "key": "agenda-state-machine-early-0" }));
        let lost = json!({ "agendaId": "early", "clientReference": "agenda-state-machine-early-0" });
        let (status, task) = service.json(service.post("/task").header("Idempotency-Key", "agenda-state-machine-early-0").json(&lost)).await;
        assert_eq!(status, 202, "{task}");
        assert!(listener.line().starts_with("taken: "));
        let (code, told) = machine.run(&bridge, &RUN).await;
        assert!(code == 0 && told.contains("early: told"), "{told}");
        assert_eq!(machine.agenda("early")["generation"]["taskId"], task["taskId"]);
        // And a failure.
        machine.add(&agendas::spoil(agenda("broken"), "/questions/0/vote/for", 9.into()));
        let (code, told) = machine.run(&bridge, &RUN).await;
        assert!(code == 1 && told.contains("told ObesrabuoProtocolGenerationFailed"), "{told}");
        assert_eq!(machine.agenda("broken")["generation"]["problem"], "/problems/agenda-invalid");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_told_by_jetstream() {
    let (nats, machine) = (Nats::start().await, StateMachine::start(Duration::ZERO));
    let settings = [
        ("AGENDA__SOURCE", machine.source.as_str()),
        ("ENGINE__TRANSPORT", &nats.url()),
        ("EVENTS__NATS_SUBJECT", "protocol-bridge.events"),
    ];
    let service = Service::configured(TestDatabase::postgres().await, &settings).await;
    let mut listener = machine.listen(&["--nats", &nats.url()]);
    assert_eq!(listener.line(), nats.url());
    machine.add(&agenda("told"));
    let (code, told) = machine.run(&format!("http://{}", service.address), &RUN).await;
    assert!(code == 0 && told.contains("told: told ObesrabuoProtocolGenerationCompleted"), "{told}");
    assert_eq!(machine.statuses("told"), ["PROTECTED", "PROTECTED"]);
    assert!(listener.line().starts_with("taken: "));
}
