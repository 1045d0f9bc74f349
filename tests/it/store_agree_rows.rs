//! Operations on what belongs to tasks: messages, attempts, checkpoints, keys, events and the rest.

use crate::store_agree_world::{Operation, Work, World, answer, operation, sorted};
use protocol_bridge::{
    domain::{
        delivery::{Sink, State},
        envelope::Envelope,
        event::EventType,
        ids::{AttemptId, DeliveryId, EventId, WorkerId},
        task::{AttemptOutcome, Phase},
    },
    store::{
        Error, IdList, Tx, attempt, callback, checkpoint,
        delivery::{self, DeliveryFilter, NewDelivery, Settled},
        event, idempotency, inbox, outbox, protocol_number, setting, step_cache, task,
    },
};
use rand::RngExt as _;
use std::{sync::Arc, time::Duration};

impl World {
    pub fn sending(&mut self) -> Operation {
        let (now, task_id, soon) = (self.now, self.task(), self.soon());
        let (message_id, of) = self.message();
        match self.rng.random_range(0..10) {
            0..=2 => {
                let message_id = self.id();
                self.messages.push((message_id, task_id));
                let envelope = Envelope::process_task(message_id, task_id, r#"{"x":"ы"}"#);
                let claim = self.some(outbox::RelayClaim { token: message_id.0, until: soon });
                operation!(tx, [envelope, soon, claim, now], outbox::insert(tx, &envelope, soon, claim, now))
            }
            3 => {
                let (claim, limit) = (outbox::RelayClaim { token: self.id(), until: soon }, self.rng.random_range(1..6));
                operation!(tx, [claim, now, limit], async { Ok::<_, Error>(sorted(outbox::claim_due(tx, claim, now, limit).await?)) })
            }
            4 => {
                let ids = vec![message_id, self.message().0];
                operation!(tx, [ids, now], outbox::mark_published(tx, &ids, now))
            }
            5 => operation!(tx, [message_id, soon], outbox::back_off(tx, message_id, "не доставлено", soon)),
            6 => operation!(tx, [of, now], outbox::pull_forward(tx, of, now)),
            7 => operation!(tx, [of, now], async {
                inbox::insert_of_tasks(tx, &[of, task_id], now).await?;
                outbox::mark_tasks(tx, &[of, task_id], now).await
            }),
            8 => operation!(tx, [of, task_id], outbox::delete_unpublished(tx, &[of, task_id])),
            _ => {
                let messages = vec![(message_id, of), self.message(), (message_id, of)];
                operation!(tx, [messages, now], async { Ok::<_, Error>(sorted(inbox::insert(tx, &messages, now).await?)) })
            }
        }
    }

    pub fn keeping(&mut self) -> Operation {
        let (now, soon, id) = (self.now, self.soon(), self.task());
        let (step, key) = (self.text("COLLECT/вопрос", 5), self.text("key", 8));
        let keys = vec![key.clone(), self.text("key", 8)];
        let (scope, name) = (self.text("scope", 2), self.text("имя", 6));
        let other = self.task();
        match self.rng.random_range(0..11) {
            0 => operation!(tx, [id, step, key, now], checkpoint::store(tx, id, &step, &key, "{\"вывод\":1}", now)),
            1 => operation!(tx, [id, step], async {
                Ok::<_, Error>((checkpoint::of_task(tx, id).await?, step_cache::of_step(tx, id, &step).await?))
            }),
            2 => operation!(tx, [id], checkpoint::forget_from(tx, id, Phase::Collect)),
            3 => operation!(tx, [keys], async { Ok::<_, Error>(sorted(step_cache::find(tx, &keys).await?)) }),
            4 => operation!(tx, [keys, now], step_cache::touch(tx, &keys, now)),
            5 | 6 => operation!(tx, [scope, name, key, id, now], idempotency::bind(tx, &scope, &name, &key, id, now)),
            7 => operation!(tx, [scope, name], idempotency::find(tx, &scope, &name)),
            8 => operation!(tx, [scope, name, id, other], idempotency::rebind(tx, &scope, &name, id, other)),
            9 => operation!(tx, [id, other, soon], idempotency::expire(tx, &[id, other], soon)),
            _ => operation!(tx, [scope, name, id, other], async {
                idempotency::revive(tx, other).await?;
                idempotency::release(tx, &scope, &name, id).await
            }),
        }
    }

    pub fn aside(&mut self) -> Operation {
        let (now, id) = (self.now, self.task());
        let agenda = self.agenda();
        match self.rng.random_range(0..8) {
            0 => {
                let (attempt, worker): (AttemptId, WorkerId) = (self.id(), self.id());
                operation!(tx, [id, attempt, worker, now], async {
                    match task::find(tx, id).await? {
                        Some(task) => attempt::open(tx, &[(attempt, &task)], worker, now).await.map(Some),
                        None => Ok(None),
                    }
                })
            }
            1 => {
                let outcome = self.pick(&AttemptOutcome::ALL).expect("six");
                let (failure, claim_no) = (self.failure(), self.rng.random_range(0..3));
                operation!(tx, [id, claim_no, outcome, failure, now], async {
                    let (failure, phase) = (Some(&failure), Some(Phase::Publish));
                    let closing = attempt::Closing { task_id: id, claim_no, outcome, failure, phase, at: now };
                    let other = attempt::Closing { claim_no: claim_no + 1, failure: None, phase: None, ..closing.clone() };
                    attempt::close(tx, &[closing, other]).await?;
                    attempt::outcome(tx, id, claim_no).await
                })
            }
            2 => {
                let event_id: EventId = self.id();
                let body = serde_json::json!({ "id": event_id, "текст": "готово" }).to_string();
                let delivery_id: DeliveryId = self.id();
                let (soon, again) = (now + Duration::from_mins(1), Some(now + Duration::from_millis(400)));
                operation!(tx, [event_id, id, agenda, body, now, delivery_id, soon, again], async {
                    let new =
                        event::NewEvent { id: event_id, event_type: EventType::Completed, task_id: id, agenda_id: &agenda, body, at: now };
                    event::insert(tx, &[new]).await?;
                    let last = event::lock_counter(tx).await?.unwrap_or(-1);
                    let unplaced: Vec<EventId> = event::unplaced(tx, 1).await?.iter().map(|event| event.id).collect();
                    event::place(tx, &unplaced, last).await?;
                    let sink = Sink::Callback("https://e.org/хук".to_owned());
                    let new = |event_id| NewDelivery {
                        id: delivery_id,
                        event_id,
                        sink: sink.clone(),
                        lane: "https://e.org".to_owned(),
                        first_try_at: now,
                        at: now,
                    };
                    delivery::insert(tx, &unplaced.iter().copied().map(new).collect::<Vec<_>>()).await?;
                    let lanes = delivery::due_lanes(tx, now).await?;
                    let claimed: IdList = delivery::claim(tx, "https://e.org", event_id.0, soon, now, 1).await?.into_iter().collect();
                    let claimed = delivery::claimed(tx, claimed).await?;
                    let settled = claimed.iter().map(|claimed| Settled {
                        id: claimed.id,
                        token: event_id.0,
                        status: "HTTP 503 🗳".to_owned(),
                        at: now,
                        next_at: again,
                        delivered_at: None,
                    });
                    delivery::settle(tx, &settled.collect::<Vec<_>>()).await?;
                    let resent = delivery::resend_failed(tx, None, soon).await?;
                    let listed = delivery::list(tx, &DeliveryFilter { state: Some(State::Pending), ..Default::default() }, None, 5).await?;
                    let told = (lanes, claimed, resent, listed, delivery::pending(tx).await?, event::newest_placed(tx, id).await?);
                    Ok::<_, Error>((
                        told,
                        last,
                        event::last_position(tx).await?,
                        event::any_unplaced(tx).await?,
                        event::find(tx, event_id).await?,
                    ))
                })
            }
            3 => {
                let url = self.text("https://example.org/hook", 2);
                operation!(tx, [id, url, now], async {
                    callback::add(tx, id, &url, "caller", now).await?;
                    Ok::<_, Error>((callback::of_tasks(tx, &[id]).await?, callback::caller(tx, id, &url).await?))
                })
            }
            4 => {
                let register = protocol_number::Register { body: self.text("совет", 2), year: 2026 };
                let number = self.text("1", 3);
                let wanted = self.some(number);
                operation!(tx, [register, agenda, wanted, now], protocol_number::reserve(tx, &register, &agenda, wanted.as_deref(), now))
            }
            5 => {
                let (name, value) = (self.text("setting", 4), self.text("значение", 9));
                operation!(tx, [name, value], setting::put_if_absent(tx, &name, &value))
            }
            6 => {
                let (name, value) = (self.text("setting", 4), self.text("значение", 9));
                operation!(tx, [name, value], setting::put(tx, &name, &value))
            }
            _ => {
                let name = self.text("setting", 5);
                operation!(tx, [name], setting::get(tx, &name))
            }
        }
    }
}
