//! Why the service does not start, in words for who started it.

use super::belonging::Stranger;
use crate::{
    base::otlp,
    engine::{SubscriptionError, transport::jetstream},
    generator::documents,
    store,
};
use std::{io, net::SocketAddr, path::PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{0} is taken by another program; stop it or choose --listen")]
    Taken(SocketAddr),
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the data folder {} cannot be made", path.display())]
    DataDir { path: PathBuf, source: io::Error },
    #[error("the database cannot be opened")]
    Database(#[source] store::Error),
    #[error("the transport cannot be used")]
    Transport(#[from] jetstream::Error),
    #[error("the document store cannot be opened")]
    Documents(#[from] documents::StoreError),
    #[error(transparent)]
    Strangers(#[from] Stranger),
    #[error("the generator cannot be set up: {0}")]
    Generator(String),
    #[error("the callers cannot be set up: {0}")]
    Callers(String),
    #[error("legacy.response {0}")] // goes with v1
    Response(String), // goes with v1
    #[error("spans cannot be sent to telemetry.otlp_endpoint")]
    Otlp(#[from] otlp::Error),
    #[error("the secret key in the data folder cannot be read or made")]
    SecretKey(#[source] io::Error),
    #[error("the subscriptions of the configuration cannot be used")]
    Subscriptions(#[from] SubscriptionError),
    #[error("the metrics cannot be set up")]
    Metrics(#[from] metrics_exporter_prometheus::BuildError),
}
