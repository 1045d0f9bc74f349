//! Operations on tasks: submitted, claimed, ended, looked at and listed.

use crate::store_agree_world::{Operation, Work, World, answer, operation, sorted};
use protocol_bridge::{
    domain::{
        cursor::Cursor,
        failure::FailureCode,
        ids::{DeadLetterId, LeaseToken, ProtocolId, TaskId},
        task::{Kind, Phase, Progress, Status},
        trace::TraceContext,
    },
    store::{Error, IdList, Tx, attempt, dead_letter, event, outbox, task},
};
use rand::RngExt as _;
use std::{sync::Arc, time::Duration};
use uuid::Uuid;

impl World {
    pub fn submitting(&mut self) -> Operation {
        let (now, id) = (self.now, self.task());
        match self.rng.random_range(0..5) {
            0..=2 => {
                let id = self.id();
                self.tasks.push(id);
                let kind = self.pick(&Kind::ALL).expect("two");
                let new = task::NewTask {
                    id,
                    kind,
                    agenda_id: if kind == Kind::Protocol { Some(self.agenda()) } else { None },
                    payload: r#"{"agendaId":"повестка","n":1.50}"#.to_owned(),
                    client_reference: self.some("п-17/2".to_owned()),
                    max_attempts: 3,
                    run_at: self.soon(),
                    caller: self.text("caller", 3),
                    trace: self.some(
                        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
                            .parse::<TraceContext>()
                            .expect("a place")
                            .with_state(Some("a=1")),
                    ),
                    created_at: now,
                };
                operation!(tx, [new], task::insert(tx, &new))
            }
            3 => operation!(tx, [id, now], task::pull_forward(tx, id, now)),
            _ => {
                let agenda = self.agenda();
                operation!(tx, [agenda], task::active_of_agenda(tx, &agenda))
            }
        }
    }

    pub fn claiming(&mut self) -> Operation {
        let (now, until) = (self.now, self.soon());
        match self.rng.random_range(0..6) {
            0..=2 => {
                // Not the same one twice: which of two tokens it then gets is nobody's promise.
                let mut wanted: Vec<(TaskId, LeaseToken)> = vec![(self.task(), self.id()), (self.task(), self.id())];
                wanted.dedup_by_key(|(id, _)| *id);
                let kinds = self.pick(&[[Kind::Protocol, Kind::Demo], [Kind::Demo, Kind::Demo]]).expect("two");
                let claim = task::Claim { now: now + Duration::from_mins(1), until, worker_id: self.id(), kinds };
                self.leases.extend(&wanted);
                operation!(tx, [wanted, claim], async { Ok::<_, Error>(sorted(task::claim(tx, &wanted, &claim).await?)) })
            }
            3 => {
                let leases = vec![self.lease(), self.lease(), self.lease()];
                operation!(tx, [leases, until], async { Ok::<_, Error>(sorted(task::renew(tx, &leases, until).await?)) })
            }
            4 => {
                let leases = vec![self.lease(), self.lease()];
                operation!(tx, [leases], async { Ok::<_, Error>(sorted(task::held(tx, &leases).await?)) })
            }
            _ => {
                let limit = self.rng.random_range(1..5);
                let later = now + Duration::from_secs(30);
                operation!(tx, [later, limit], async {
                    let first = task::expired(tx, later, None, limit).await?;
                    let then = task::expired(tx, later, first.last(), limit).await?;
                    Ok::<_, Error>((first, then))
                })
            }
        }
    }

    pub fn ending(&mut self) -> Operation {
        let (now, (id, token)) = (self.now, self.lease());
        let failure = self.failure();
        let reached = self.some((Phase::Check, Progress { done: 3, known: 7 }));
        match self.rng.random_range(0..7) {
            0 => operation!(tx, [id, token], task::progress(tx, id, token, Phase::Collect, Progress { done: 1, known: 9 })),
            1 | 2 => {
                let status = self.pick(&[Status::Completed, Status::Failed, Status::Failed]).expect("three");
                let failure = (status == Status::Failed).then_some(failure);
                let mut endings = vec![task::Ending { id, token, status, failure, reached, at: now }];
                let (other, token) = self.lease();
                if other != id {
                    endings.push(task::Ending {
                        id: other,
                        token,
                        status: Status::Completed,
                        failure: None,
                        reached: None,
                        at: self.soon(),
                    });
                }
                let dead_letter: DeadLetterId = self.id();
                self.dead_letters.push(dead_letter);
                operation!(tx, [endings, dead_letter, now], async {
                    let ended = task::end(tx, &endings).await?;
                    let failed = ended.iter().find_map(|task| Some((task, task.failure.as_ref()?)));
                    if let Some((task, failure)) = failed {
                        let letter = dead_letter::NewDeadLetter { id: dead_letter, task, failure, at: now };
                        dead_letter::insert(tx, &[letter]).await?;
                    }
                    Ok::<_, Error>(sorted(ended))
                })
            }
            3 => {
                let put_back = task::PutBack {
                    give_back_attempt: self.rng.random_bool(0.5),
                    next_attempt_at: self.soon(),
                    failure: self.some(failure),
                    reached,
                };
                operation!(tx, [id, token, put_back], task::put_back(tx, id, token, &put_back))
            }
            4 => operation!(tx, [id, failure, now], task::cancel(tx, id, &failure, now)),
            5 => {
                let recent = self.dead_letters[self.dead_letters.len().saturating_sub(4)..].to_vec();
                let dead_letter = self.pick(&recent).unwrap_or_else(|| self.id());
                operation!(tx, [id, dead_letter, now], async {
                    let dismissed = id.0.as_bytes()[15] % 4 == 0 && dead_letter::dismiss(tx, dead_letter, now).await?;
                    let replayed = !dismissed && dead_letter::mark_replayed(tx, dead_letter, now).await?;
                    Ok::<_, Error>((dismissed, replayed, task::replay(tx, id, now).await?))
                })
            }
            _ => {
                let protocol: ProtocolId = self.id();
                operation!(tx, [id, protocol], task::set_protocol(tx, id, protocol))
            }
        }
    }

    pub fn looking(&mut self) -> Operation {
        let (now, id, (_, of)) = (self.now, self.task(), self.message());
        let several: Vec<Uuid> = (0..4).map(|_| self.task().0).collect();
        let limit = self.rng.random_range(1..6);
        match self.rng.random_range(0..8) {
            0 => operation!(tx, [id], task::find(tx, id)),
            1 => operation!(tx, [several], async {
                Ok::<_, Error>(sorted(task::find_many(tx, several.iter().copied().collect::<IdList>()).await?))
            }),
            2 => operation!(tx, [several], async {
                Ok::<_, Error>(sorted(task::revisions(tx, several.iter().copied().collect::<IdList>()).await?))
            }),
            3 => operation!(tx, [now, limit], async {
                let first = task::due(tx, now, None, Kind::ALL, limit).await?;
                let then = task::due(tx, now, first.last().copied(), Kind::ALL, limit).await?;
                Ok::<_, Error>((first, then))
            }),
            4 => operation!(tx, [of], outbox::of_task(tx, of)),
            5 => operation!(tx, [now], async { Ok::<_, Error>((outbox::next_due(tx, now).await?, outbox::unpublished(tx, now).await?)) }),
            6 => operation!(tx, [id], async { Ok::<_, Error>((attempt::of_task(tx, id).await?, event::after(tx, 0, None, 10).await?)) }),
            _ => operation!(tx, [limit], async {
                let exceeds = task::pending_reaches(tx, limit as u64).await?;
                Ok::<_, Error>((task::active(tx).await?, exceeds, sorted(task::finished(tx).await?)))
            }),
        }
    }

    pub fn listing(&mut self) -> Operation {
        let limit = self.rng.random_range(1..6);
        let status = self.pick(&Status::ALL).expect("five");
        let (agenda, caller, kind) = (self.agenda(), self.text("caller", 3), self.pick(&Kind::ALL).expect("two"));
        let filter = task::TaskFilter {
            status: self.some(status),
            kind: self.some(kind),
            agenda_id: self.some(agenda.clone()),
            caller: self.some(caller),
            from: self.rng.random_bool(0.2).then_some(self.now - Duration::from_mins(5)),
            to: self.rng.random_bool(0.2).then_some(self.now - Duration::from_mins(1)),
        };
        let reason = self.pick(&FailureCode::ALL).expect("there are some");
        let dead = dead_letter::DeadLetterFilter {
            reason: self.rng.random_bool(0.3).then_some(reason),
            agenda_id: self.rng.random_bool(0.3).then_some(agenda),
            open_only: self.rng.random_bool(0.5),
            from: self.rng.random_bool(0.2).then_some(self.now - Duration::from_mins(5)),
            to: self.rng.random_bool(0.2).then_some(self.now - Duration::from_mins(1)),
            task_id: None,
        };
        if self.rng.random_bool(0.6) {
            operation!(tx, [filter, limit], async {
                let first = task::list(tx, &filter, None, limit).await?;
                let cursor = first.last().map(|task| Cursor { at: task.created_at, id: task.id.0 });
                Ok::<_, Error>((task::list(tx, &filter, cursor, limit).await?, first))
            })
        } else {
            operation!(tx, [dead, limit], async {
                let first = dead_letter::list(tx, &dead, None, limit).await?;
                let cursor = first.last().map(|letter| Cursor { at: letter.failed_at, id: letter.id.0 });
                let then = dead_letter::list(tx, &dead, cursor, limit).await?;
                let count = dead_letter::count(tx, &dead).await?;
                Ok::<_, Error>((first, then, count, sorted(dead_letter::open_by_reason(tx).await?)))
            })
        }
    }
}
