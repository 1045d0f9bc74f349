//! Requests to addresses that somebody else has named: webhook targets, reports, linked objects.
//!
//! One [`Guard`] for all of them. It looks at an address when it is registered and again at every connection, and the address that it has looked at is the one
//! that is connected to: a name that resolves to something else a moment later gains nothing. Redirects are never followed and no proxy of the environment is
//! used, because both would connect to what nobody has looked at.

mod guard;
mod network;
mod port;
mod reach;

pub use guard::{Guard, Refused, refused};
pub use network::{MachineNetwork, Network};
pub use reach::Reach;
