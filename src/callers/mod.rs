//! Floor 4: who calls, what that may do, and the stored account of it.
//!
//! [`Callers`] names a request and says which roles it has; [`Ledger`] keeps the account of v1 and v2 use that decides when v1 can go; [`RateLimit`] keeps one caller
//! from taking the task API for itself.

pub mod directory;
pub mod ledger;
mod ledger_metrics;
pub mod network;
pub mod rate_limit;
pub mod report;
pub mod roles;
pub mod verdict;

pub use directory::{Callers, Configured, Evidence, Identity, KeyShown};
pub use ledger::Ledger;
pub use network::Network;
pub use rate_limit::RateLimit;
pub use report::Report;
pub use roles::Roles;
