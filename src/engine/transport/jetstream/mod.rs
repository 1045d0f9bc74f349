//! NATS JetStream: the doorbell between machines.
//!
//! One work-queue stream, one durable pull consumer that all processes share. Whatever is lost here (a purge, a lost disk, an acknowledgement that did not
//! arrive) loses no task: workers look into the table. So nothing waits for NATS: while it is away nothing is sent, and nothing is held back.
//!
//! - A message is stored under its own id (`Nats-Msg-Id`), so that what a relay sends twice is usually stored once; a retry and a replay have ids of their own.
//! - It is asked for only by a process that has a permit for it, and acknowledged after the claim. A process that dies in between costs the acknowledgement's
//!   wait at most, and usually the second after which an idle worker looks into the table.
//! - Deliveries are unlimited: a message is never parked by the broker. What cannot be read is ended; what could not be looked at comes back later each time.

mod carrier;
pub(in crate::engine) mod connection;
mod link;
mod look;
mod pull;
mod receipt;
mod setup;

pub use carrier::JetStream;
pub use look::{Looked, look};
pub use setup::{Error, Names};
