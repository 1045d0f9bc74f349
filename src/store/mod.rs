//! Floor 2: every SQL text of the crate; two databases, one text where they agree.
//!
//! [`Db`] runs named, repeatable transactions; one file per noun holds the data functions `noun::verb(tx, …)`. On a crash in the middle a transaction has not
//! happened; a request that is dropped never leaves one half done, because it runs on the store's own task.

#![allow(clippy::disallowed_methods, reason = "the one floor that may speak SQL")]

pub mod db;
pub mod error;
pub mod faults;
pub mod lock;
pub mod look;
mod measure;
mod migrate;
mod postgres;
pub mod queries;
mod repeat;
mod sessions;
pub mod sql;
mod sqlite;
mod sqlite_job;
mod sqlite_writer;
mod statements;
mod tasks;
pub mod tx;
mod wakeups;

// One noun a file; each floor above adds its own, and names it in `queries`.
pub mod attempt;
pub mod audit;
pub mod callback;
pub mod caller;
pub mod checkpoint;
pub mod database_time;
pub mod dead_letter;
pub mod delivery;
pub mod document;
pub mod event;
mod field;
pub mod id_list;
pub mod idempotency;
pub mod inbox;
pub mod legacy_call;
pub mod outbox;
pub mod owed_answer;
pub mod protocol;
pub mod protocol_number;
pub mod retention;
mod rows;
pub mod setting;
pub mod step_cache;
pub mod subscription;
pub mod task;
pub mod task_follower;

pub use db::{Db, Dialect, Options};
pub use error::{Error, Result};
pub use faults::{Fault, Faults};
pub use id_list::IdList;
pub use migrate::is_current;
pub use queries::queries;
pub use sql::Sql;
pub use statements::Statements;
pub(crate) use tx::with_tx;
pub use tx::{Tx, work};
pub use wakeups::{Hints, Wakeups};
