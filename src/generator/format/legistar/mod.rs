//! Legistar: an `Event` with its items, and for each item its votes and roll call, of the Web API or of an export.
//!
//! The Web API needs four calls: the event, its items, and for each item votes and roll call. It is known to answer for an item of a consent agenda with another
//! item's votes: those are left out and told.

mod api;
mod event;
mod item;
mod names;
mod roll;

pub use event::{is_event, translate};

/// Under these names votes and roll calls stand in an item.
const VOTES: [&str; 2] = ["Votes", "EventItemVoteInfo"];
const ROLLS: [&str; 3] = ["RollCalls", "RollCall", "EventItemRollCallInfo"];
