//! Both databases give the same answers: seeded random operations, each run on both, and the tables compared at the end.
//!
//! Every operation has its inputs made once, ids and times included. Times are unique, so that "the first ten by time" are the same ten.

use crate::support::TestDatabase;
use futures::future::BoxFuture;
use protocol_bridge::{
    base::{clock::Clock, entropy::Entropy},
    domain::{
        cursor::Cursor,
        envelope::Envelope,
        event::EventType,
        failure::{Failure, FailureCode},
        ids::{AgendaId, AttemptId, DeadLetterId, EventId, LeaseToken, MessageId, ProtocolId, TaskId, WorkerId},
        task::{AttemptOutcome, Kind, Phase, Progress, Status},
        time::Timestamp,
        trace::TraceContext,
    },
    store::{
        Db, Error, IdList, Result, Tx, attempt, callback, checkpoint, dead_letter, event, idempotency, inbox, outbox, protocol_number,
        setting, step_cache, task,
    },
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use std::{fmt::Debug, sync::Arc, time::Duration};
use uuid::Uuid;

const STEPS: usize = 500;

type Work = Arc<dyn for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<String>> + Send + Sync>;

/// An operation: what it is, and how it runs.
struct Operation {
    text: String,
    work: Work,
}

/// `operation!(tx, [captured by clone], expression)`: answers what the expression answers, as text.
macro_rules! operation {
    ($tx:ident, [$($captured:ident),*], $body:expr) => {{
        let text = [stringify!($body).to_owned() $(, format!("{} = {:?}", stringify!($captured), $captured))*].join("\n    ");
        let work: Work = Arc::new(move |$tx: &mut Tx<'_>| {
            $(let $captured = $captured.clone();)*
            Box::pin(async move { Ok(answer($body.await?)) })
        });
        Operation { text, work }
    }};
}

fn answer(value: impl Debug) -> String {
    format!("{value:?}")
}

fn sorted<T: Debug>(rows: impl IntoIterator<Item = T>) -> Vec<String> {
    let mut rows: Vec<_> = rows.into_iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

/// What the operations so far have made, for the next to use.
struct World {
    rng: StdRng,
    entropy: Entropy,
    now: Timestamp,
    unique: u64,
    tasks: Vec<TaskId>,
    leases: Vec<(TaskId, LeaseToken)>,
    messages: Vec<(MessageId, TaskId)>,
    dead_letters: Vec<DeadLetterId>,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            rng: StdRng::seed_from_u64(seed),
            entropy: Entropy::seeded(seed),
            now: "2026-11-30T12:00:00Z".parse().expect("a time"),
            unique: 0,
            tasks: Vec::new(),
            leases: Vec::new(),
            messages: Vec::new(),
            dead_letters: Vec::new(),
        }
    }

    fn id<Id: From<Uuid>>(&self) -> Id {
        self.entropy.id(self.now)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.rng.random_range(0..from.len())]) }
    }

    /// One of the last few, mostly; sometimes one that does not exist.
    fn task(&mut self) -> TaskId {
        let recent = self.tasks[self.tasks.len().saturating_sub(12)..].to_vec();
        if self.rng.random_bool(0.05) { self.id() } else { self.pick(&recent).unwrap_or_else(|| self.id()) }
    }

    fn lease(&mut self) -> (TaskId, LeaseToken) {
        let recent = self.leases[self.leases.len().saturating_sub(8)..].to_vec();
        if self.rng.random_bool(0.1) { (self.task(), self.id()) } else { self.pick(&recent).unwrap_or_else(|| (self.id(), self.id())) }
    }

    fn message(&mut self) -> (MessageId, TaskId) {
        let recent = self.messages[self.messages.len().saturating_sub(20)..].to_vec();
        self.pick(&recent).unwrap_or_else(|| (self.id(), self.id()))
    }

    /// A time that no other operation has, up to a minute from now.
    fn soon(&mut self) -> Timestamp {
        self.unique += 1;
        self.now + Duration::from_millis(self.rng.random_range(0..60_000)) + Duration::from_micros(self.unique)
    }

    fn agenda(&mut self) -> AgendaId {
        format!("agenda-{}", self.rng.random_range(0..10)).parse().expect("an agenda id")
    }

    fn failure(&mut self) -> Failure {
        let code = self.pick(&FailureCode::ALL).expect("there are some");
        Failure::new(code, "Ошибка: \"кавычки\" и \u{1F4C4}\nвторая строка").in_phase(Phase::Merge).with_detail("c'est ça")
    }

    fn some<T>(&mut self, value: T) -> Option<T> {
        self.rng.random_bool(0.5).then_some(value)
    }

    fn text(&mut self, of: &str, count: u32) -> String {
        format!("{of}-{}", self.rng.random_range(0..count))
    }

    fn next(&mut self) -> Operation {
        self.unique += 1;
        self.now = self.now + Duration::from_millis(self.rng.random_range(1..5_000)) + Duration::from_micros(self.unique);
        match self.rng.random_range(0..10) {
            0 | 1 => self.submitting(),
            2 | 3 => self.claiming(),
            4 => self.ending(),
            5 => self.sending(),
            6 => self.looking(),
            7 => self.listing(),
            8 => self.keeping(),
            _ => self.aside(),
        }
    }

    fn submitting(&mut self) -> Operation {
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

    fn claiming(&mut self) -> Operation {
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

    fn ending(&mut self) -> Operation {
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

    fn sending(&mut self) -> Operation {
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

    fn looking(&mut self) -> Operation {
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
            6 => operation!(tx, [id], async { Ok::<_, Error>((attempt::of_task(tx, id).await?, event::of_task(tx, id).await?)) }),
            _ => operation!(tx, [limit], async {
                let exceeds = task::pending_reaches(tx, limit as u64).await?;
                Ok::<_, Error>((task::active(tx).await?, exceeds, sorted(task::finished(tx).await?)))
            }),
        }
    }

    fn listing(&mut self) -> Operation {
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

    fn keeping(&mut self) -> Operation {
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

    fn aside(&mut self) -> Operation {
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
                let body = serde_json::json!({ "id": event_id, "текст": "готово" });
                operation!(tx, [event_id, id, agenda, body, now], async {
                    let new =
                        event::NewEvent { id: event_id, event_type: EventType::Completed, task_id: id, agenda_id: &agenda, body, at: now };
                    event::insert(tx, &[new]).await
                })
            }
            3 => {
                let url = self.text("https://example.org/hook", 2);
                operation!(tx, [id, url, now], async {
                    callback::add(tx, id, &url, now).await?;
                    callback::of_task(tx, id).await
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

/// The answer of one database; of an error only what both can say alike.
async fn run(db: &Db, work: Work) -> String {
    match db.transaction("test", move |tx| work(tx)).await {
        Ok(answer) => answer,
        Err(Error::Sql(sqlx::Error::Database(error))) if !matches!(error.kind(), sqlx::error::ErrorKind::Other) => {
            format!("refused: {:?}", error.kind())
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// The tables that the operations write to.
const USED: [&str; 12] = [
    "attempt",
    "checkpoint",
    "dead_letter",
    "event",
    "idempotency_key",
    "inbox",
    "outbox",
    "protocol_number",
    "setting",
    "step_cache",
    "task",
    "task_callback",
];

async fn tables(database: &TestDatabase) -> Vec<String> {
    let mut rows = Vec::new();
    for table in USED {
        let found = database.fetch(&format!("SELECT * FROM {table}")).await;
        rows.extend(sorted(found).into_iter().map(|row| format!("{table}: {row}")));
    }
    rows
}

async fn agree(seed: u64) {
    let (sqlite, postgres) = (TestDatabase::sqlite().await, TestDatabase::postgres().await);
    let (one, other) = (sqlite.open(Clock::system(), Entropy::seeded(1)).await, postgres.open(Clock::system(), Entropy::seeded(1)).await);
    let mut world = World::new(seed);
    for step in 0..STEPS {
        let Operation { text, work } = world.next();
        let (on_sqlite, on_postgres) = tokio::join!(run(&one, work.clone()), run(&other, work));
        assert_eq!(on_sqlite, on_postgres, "seed {seed}, step {step}: SQLite and PostgreSQL differ on\n{text}");
    }
    let (on_sqlite, on_postgres) = (tables(&sqlite).await, tables(&postgres).await);
    for (row, other) in on_sqlite.iter().zip(&on_postgres) {
        assert_eq!(row, other, "seed {seed}: the tables differ at the end");
    }
    assert_eq!(on_sqlite.len(), on_postgres.len(), "seed {seed}: the tables differ at the end");
    // Agreeing that nothing happens would prove nothing.
    for table in USED {
        assert!(on_sqlite.iter().any(|row| row.starts_with(&format!("{table}: "))), "seed {seed} left nothing in {table}");
    }
    assert_eq!(sqlite.number("SELECT count(DISTINCT status) FROM task").await, 5, "seed {seed} did not bring tasks into every status");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_databases_agree_on_seed_1() {
    agree(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_databases_agree_on_seed_2() {
    agree(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_databases_agree_on_seed_3() {
    agree(3).await;
}
