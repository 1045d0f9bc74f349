//! What all tests share: databases of their own, and waiting for a condition.

pub mod agenda_server;
pub mod agendas;
pub mod breaking_proxy;
pub mod certificates;
pub mod collector;
#[allow(dead_code, reason = "a kit: not every test needs every tool")]
pub mod dashboards;
pub mod databases;
#[allow(dead_code, reason = "a kit: not every test needs every tool")]
pub mod nats;
pub mod networks;
pub mod nginx;
pub mod pgbouncer;
pub mod postgres;
#[allow(dead_code, reason = "a kit: not every test needs every tool")]
pub mod postgres_proxy;
#[allow(dead_code, reason = "a kit: not every test needs every tool")]
pub mod process;
#[allow(dead_code, reason = "a kit: not every test needs every tool")]
pub mod prometheus;
pub mod public_apis;
#[allow(dead_code, reason = "a kit: not every test needs every tool")]
pub mod receivers;
pub mod reconcile;
#[allow(dead_code, reason = "a kit: not every test needs every tool")]
pub mod s3;
pub mod server;
pub mod service;
pub mod state_machine;

pub use databases::TestDatabase;
pub(crate) use databases::on_both_databases;
pub use process::Process;
pub use server::TestServer;
pub use service::Service;

use std::{
    future::Future,
    time::{Duration, Instant},
};

/// Waits until `condition` holds; fails after `limit` with `what` did not happen. The one place where a test sleeps: between two looks.
pub async fn eventually<C, F>(limit: Duration, what: &str, mut condition: C)
where
    C: FnMut() -> F,
    F: Future<Output = bool>,
{
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < limit, "after {limit:?} still not: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Fails with `what` if `future` takes longer than `limit`.
pub async fn within<F: Future>(limit: Duration, what: &str, future: F) -> F::Output {
    tokio::time::timeout(limit, future).await.unwrap_or_else(|_| panic!("after {limit:?} still not: {what}"))
}

/// The configuration's defaults.
pub fn config() -> protocol_bridge::base::config::Config {
    protocol_bridge::base::config::load(&protocol_bridge::base::config::Sources::default()).expect("the defaults are valid").config
}
