//! Floor 1: what every part stands on: clock, entropy, configuration, free space, metrics, outgoing requests, telemetry, shutdown.

pub mod build;
mod carried;
pub mod chain;
pub mod clock;
pub mod config;
pub mod disk;
pub mod entropy;
pub mod jq;
pub mod limits;
pub mod metric;
pub mod metrics;
pub mod otlp;
pub mod outgoing;
pub mod secret_key;
pub mod shutdown;
pub mod spans;
pub mod supervisor;
pub mod telemetry;
pub mod tls;
