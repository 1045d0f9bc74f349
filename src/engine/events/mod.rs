//! What is told to the outside: events get their place in the order and their deliveries (placer, fan-out), reach those who follow them here (feed), and are carried
//! to webhooks and a stream by the courier.
//!
//! An event commits with the end of its task. Everything behind that is done by claims on rows: a crash at any point costs a second telling, never one that does not
//! come.

mod courier;
pub(super) mod deliveries;
mod fan_out;
mod feed;
mod follower;
mod jetstream;
mod letter;
mod placer;
pub(super) mod subscriptions;
mod telling;
mod webhook;

pub use follower::{Follow, Follower};
pub use jetstream::EventsInJetStream;
pub use subscriptions::{Change, SubscriptionError, arrived};
pub use telling::{EventStream, Telling, ToStream};
pub(super) use {courier::Courier, fan_out::FanOut, feed::Feed, letter::callback_secret, placer::Placer};
