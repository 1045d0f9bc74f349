//! Floor 4: v1. Names the caller, joins or submits, waits, answers; knows nothing of HTTP, and nothing but `app.rs` and v1's route knows it, so that it can be
//! deleted when its last caller is gone.
//!
//! A call holds no thread and no database connection while it waits. If the process dies in the middle, or the client hangs up, the task goes on and the answer
//! stays owed: the caller's next call finds it.

pub mod answer;
pub mod call;
pub mod owed;
pub mod presentation;
mod record;
pub mod stage;
pub mod waiters;

pub use answer::{Answer, HandedOut, Refusal};
pub use call::{Admitted, Bridge, Call, Parts};
pub use presentation::Presentation;
