//! Floor 0: values and rules, no I/O. Everything here is pure, so every rule can be tested without a database or a clock.

pub mod agenda;
pub mod audit;
pub mod caller;
pub mod cursor;
pub mod dead_letter;
pub mod delivery;
pub mod envelope;
pub mod event;
pub mod failure;
pub mod ids;
pub mod protocol;
pub mod register;
pub mod retry;
pub mod stage;
pub mod task;
pub mod time;
pub mod trace;
