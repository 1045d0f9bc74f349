//! The task table. Every status change is guarded by the status and, for a task in progress, by the lease token; callers look at what came back.
//!
//! On a crash in the middle of any of these the transaction has not happened, and the row is as it was.

pub mod claim;
pub mod count;
pub mod ending;
pub mod list;
pub mod row;
pub mod submit;

pub use claim::{Claim, Due, Expired, claim, due, expired, held, lock_expired, renew};
pub use count::{Active, active, finished, pending_reaches};
pub use ending::{Ending, PutBack, cancel, end, progress, put_back, replay, set_protocol};
pub use list::{TaskFilter, list};
pub use row::{find, find_many, revisions};
pub use submit::{NewTask, active_of_agenda, insert, pull_forward};

use super::Sql;

/// Every text of this noun.
pub const ALL: &[&[(&str, Sql)]] = &[row::ALL, submit::ALL, claim::ALL, ending::ALL, list::ALL, count::ALL];
