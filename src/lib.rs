//! `protocol-bridge` generates the protocol (minutes, протокол) of a meeting from its agenda as a durable background task, and keeps an old synchronous endpoint
//! alive on top of that while its callers move away from it.
//!
//! Floors, from the ground up; a file imports only from its own floor or below, and a test keeps it so:
//! [`domain`] values and rules · [`base`] clock, config, metrics · [`store`] all SQL · [`engine`] moves tasks · [`generator`], [`callers`], [`bridge`] · [`http`] · `web`.

pub mod app;
pub mod base;
pub mod bridge; // goes with v1
pub mod callers;
pub mod cli;
pub mod domain;
pub mod engine;
pub mod generator;
pub mod http;
pub mod store;
