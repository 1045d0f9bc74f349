//! The operations of the differential test, made of one seed: every operation has its inputs made once, ids and times included. Times are unique, so that "the first
//! ten by time" are the same ten.

use futures::future::BoxFuture;
use protocol_bridge::{
    base::entropy::Entropy,
    domain::{
        failure::{Failure, FailureCode},
        ids::{AgendaId, DeadLetterId, LeaseToken, MessageId, TaskId},
        task::Phase,
        time::Timestamp,
    },
    store::{Result, Tx},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use std::{fmt::Debug, sync::Arc, time::Duration};
use uuid::Uuid;

pub type Work = Arc<dyn for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<String>> + Send + Sync>;

/// An operation: what it is, and how it runs.
pub struct Operation {
    pub text: String,
    pub work: Work,
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

pub(crate) use operation;

pub fn answer(value: impl Debug) -> String {
    format!("{value:?}")
}

pub fn sorted<T: Debug>(rows: impl IntoIterator<Item = T>) -> Vec<String> {
    let mut rows: Vec<_> = rows.into_iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

/// What the operations so far have made, for the next to use.
pub struct World {
    pub rng: StdRng,
    pub entropy: Entropy,
    pub now: Timestamp,
    pub unique: u64,
    pub tasks: Vec<TaskId>,
    pub leases: Vec<(TaskId, LeaseToken)>,
    pub messages: Vec<(MessageId, TaskId)>,
    pub dead_letters: Vec<DeadLetterId>,
}

impl World {
    pub fn new(seed: u64) -> Self {
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

    pub fn id<Id: From<Uuid>>(&self) -> Id {
        self.entropy.id(self.now)
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.rng.random_range(0..from.len())]) }
    }

    /// One of the last few, mostly; sometimes one that does not exist.
    pub fn task(&mut self) -> TaskId {
        let recent = self.tasks[self.tasks.len().saturating_sub(12)..].to_vec();
        if self.rng.random_bool(0.05) { self.id() } else { self.pick(&recent).unwrap_or_else(|| self.id()) }
    }

    pub fn lease(&mut self) -> (TaskId, LeaseToken) {
        let recent = self.leases[self.leases.len().saturating_sub(8)..].to_vec();
        if self.rng.random_bool(0.1) { (self.task(), self.id()) } else { self.pick(&recent).unwrap_or_else(|| (self.id(), self.id())) }
    }

    pub fn message(&mut self) -> (MessageId, TaskId) {
        let recent = self.messages[self.messages.len().saturating_sub(20)..].to_vec();
        self.pick(&recent).unwrap_or_else(|| (self.id(), self.id()))
    }

    /// A time that no other operation has, up to a minute from now.
    pub fn soon(&mut self) -> Timestamp {
        self.unique += 1;
        self.now + Duration::from_millis(self.rng.random_range(0..60_000)) + Duration::from_micros(self.unique)
    }

    pub fn agenda(&mut self) -> AgendaId {
        format!("agenda-{}", self.rng.random_range(0..10)).parse().expect("an agenda id")
    }

    pub fn failure(&mut self) -> Failure {
        let code = self.pick(&FailureCode::ALL).expect("there are some");
        Failure::new(code, "Ошибка: \"кавычки\" и \u{1F4C4}\nвторая строка").in_phase(Phase::Merge).with_detail("c'est ça")
    }

    pub fn some<T>(&mut self, value: T) -> Option<T> {
        self.rng.random_bool(0.5).then_some(value)
    }

    pub fn text(&mut self, of: &str, count: u32) -> String {
        format!("{of}-{}", self.rng.random_range(0..count))
    }

    pub fn next(&mut self) -> Operation {
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
}
