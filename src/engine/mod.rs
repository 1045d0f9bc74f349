//! Floor 3: moves tasks and knows no document.
//!
//! submit → outbox → relay → transport → inbox consumer → worker (lease keeper beside it) → finish → completion hub; the rescuer picks up what fell.
//! The transport is a doorbell, the database is the truth: whatever is lost in between is claimed straight from the table.

mod cancel;
mod claim;
mod consumer;
mod core;
pub mod demo;
mod dismiss;
mod endings;
pub mod events;
pub mod executor;
pub mod facade;
mod finish;
mod gauges;
mod guarded_write;
pub mod hub;
mod janitor;
mod keeper;
mod leases;
mod listener;
mod others;
mod outage;
mod pause;
mod relay;
mod replay;
mod replay_many;
mod rescuer;
pub mod submission;
mod submit;
pub mod ticks;
mod timekeeper;
pub mod transport;
pub mod waiting;
mod worker;

pub use core::Parts;
pub use demo::Demo;
pub use events::{Change, EventStream, EventsInJetStream, Follow, Follower, SubscriptionError, Telling, arrived};
pub use executor::{Decision, Done, Effect, Effected, Run, Step, Stop, TaskExecutor, effect};
pub use facade::{
    AuditFilter, Cancelled, DeadLetterFilter, DeliveryFilter, Dismissed, Engine, Message, Paused, ReplayMany, Replayed, ReplayedMany,
    Skipped, SubmitEffect, Subscription, TaskFilter, submit_effect,
};
pub use hub::Hub;
pub use submission::{Idempotency, Overload, Submission, SubmitError, Submitted, Via};
pub use ticks::Ticks;
pub use waiting::{WaitFor, Waited};
