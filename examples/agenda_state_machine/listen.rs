//! Takes events: verified, known ids dropped, in the state file before they are acknowledged. As a webhook, or from NATS JetStream.

use crate::state::Store;
use async_nats::jetstream::{self, consumer::pull};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use clap::Args;
use futures::StreamExt as _;
use serde_json::Value;
use standardwebhooks::Webhook;
use std::{error::Error, net::SocketAddr, sync::Arc};
use tokio::net::TcpListener;

#[derive(Debug, Args)]
pub struct Listen {
    /// Webhooks: where to listen.
    #[arg(long = "listen", default_value = "127.0.0.1:9001")]
    address: SocketAddr,
    /// Webhooks: the secrets that are trusted; two while one is being replaced.
    #[arg(long = "secret")]
    secrets: Vec<String>,
    /// JetStream: where NATS is; no webhooks then.
    #[arg(long)]
    nats: Option<String>,
    /// JetStream: the stream.
    #[arg(long, default_value = "protocol-bridge-events")]
    stream: String,
}

pub async fn listen(store: Store, how: Listen) -> Result<(), Box<dyn Error>> {
    match &how.nats {
        Some(url) => from_jetstream(&store, url, &how.stream).await,
        None => webhooks(store, how).await,
    }
}

/// Serves until it is killed. The first line on stdout says where.
async fn webhooks(store: Store, how: Listen) -> Result<(), Box<dyn Error>> {
    let secrets = how.secrets.iter().map(|secret| Webhook::new(secret)).collect::<Result<Vec<_>, _>>()?;
    let listener = TcpListener::bind(how.address).await?;
    println!("http://{}/events", listener.local_addr()?);
    let router = Router::new().route("/events", post(hook)).with_state((store, Arc::new(secrets)));
    Ok(axum::serve(listener, router).await?)
}

async fn hook(State((store, secrets)): State<(Store, Arc<Vec<Webhook>>)>, headers: HeaderMap, body: Bytes) -> StatusCode {
    // The bytes as they came: parsed and written again they would be others.
    if !secrets.iter().any(|secret| secret.verify(&body, &headers).is_ok()) {
        println!("refused: nobody we trust has signed it");
        return StatusCode::UNAUTHORIZED;
    }
    match serde_json::from_slice(&body).map_err(|error| error.to_string()).and_then(|event| take(&store, &event)) {
        Ok(()) => StatusCode::NO_CONTENT,
        Err(error) => {
            println!("not taken: {error}");
            // It comes again.
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}

/// Reads until it is killed. The durable consumer remembers in NATS how far it came.
async fn from_jetstream(store: &Store, url: &str, stream: &str) -> Result<(), Box<dyn Error>> {
    let context = jetstream::new(async_nats::connect(url).await?);
    let stream = context.get_stream(stream).await?;
    let durable = "agenda-state-machine";
    let config = pull::Config { durable_name: Some(durable.to_owned()), ..pull::Config::default() };
    let consumer = stream.get_or_create_consumer(durable, config).await?;
    println!("{url}");
    let mut messages = consumer.messages().await?;
    while let Some(message) = messages.next().await {
        let message = message?;
        let event: Value = serde_json::from_slice(&message.payload)?;
        take(store, &event)?;
        // In the file first: a crash in between costs a duplicate, which is dropped.
        message.ack().await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn take(store: &Store, event: &Value) -> Result<(), String> {
    let new = store.change(|state| state.take(event)).map_err(|error| error.to_string())??;
    println!("{}: {} {}", if new { "taken" } else { "known already, dropped" }, event["id"], event["type"]);
    Ok(())
}
