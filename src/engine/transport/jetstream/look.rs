//! A look at the stream and the consumer, for who only wants to know how they are: nothing is made or changed.

use super::setup::{Error, Names, unfit, wanted_consumer, wanted_stream};
use crate::base::{
    chain::chain,
    config::{NatsLogin, NatsServers},
};
use async_nats::{
    ConnectOptions,
    jetstream::{
        consumer::{FromConsumer as _, pull},
        context::{ContextBuilder, GetStreamErrorKind},
    },
};
use std::time::Duration;

const ANSWER: Duration = Duration::from_secs(3);

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// The server's version.
    pub server: String,
    /// What the next start makes or changes, in words.
    pub to_do: Vec<String>,
    /// Messages that wait.
    pub messages: u64,
}

/// # Errors
/// When NATS does not answer, or what is there cannot be used.
pub async fn look(servers: &NatsServers, prefix: &str) -> Result<Looked, Error> {
    let options =
        ConnectOptions::new().name("protocol-bridge doctor").connection_timeout(ANSWER).request_timeout(Some(ANSWER)).max_reconnects(1);
    let options = match servers.login.clone() {
        None => options,
        Some(NatsLogin::Token(token)) => options.token(token.expose().to_owned()),
        Some(NatsLogin::Password { user, password }) => options.user_and_password(user, password.expose().to_owned()),
    };
    let client = options.connect(servers.servers.as_slice()).await.map_err(|error| Error::Away(chain(&error)))?;
    let server = client.server_info().version;
    let names = Names::new(prefix);
    let context = ContextBuilder::new().timeout(ANSWER).build(client);
    let stream = match context.get_stream(&names.stream).await {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), GetStreamErrorKind::JetStream(answer) if answer.code() == 404) => {
            return Ok(Looked { server, to_do: vec![format!("the stream {} is not there yet", names.stream)], messages: 0 });
        }
        Err(error) => return Err(Error::Away(chain(&error))),
    };
    let there = &stream.cached_info().config;
    if let Some(reason) = unfit(there) {
        return Err(Error::Unfit { what: format!("the stream {}", names.stream), reason });
    }
    let mut to_do = Vec::new();
    if wanted_stream(there.clone(), &names) != *there {
        to_do.push(format!("the stream {} has other settings", names.stream));
    }
    match stream.consumer_info(&names.consumer).await {
        Ok(info) => {
            let fits =
                pull::Config::try_from_consumer_config(info.config).is_ok_and(|there| wanted_consumer(there.clone(), &names) == there);
            if !fits {
                to_do.push(format!("the consumer {} has other settings", names.consumer));
            }
        }
        Err(_) => to_do.push(format!("the consumer {} is not there yet", names.consumer)),
    }
    Ok(Looked { server, to_do, messages: stream.cached_info().state.messages })
}
