//! Whether messages can go: nothing to look at within one process, stream and consumer in NATS.

use super::finding::Finding;
use crate::{
    base::{
        chain::chain,
        config::{Config, NatsServers},
    },
    engine::transport::jetstream::{Error, look},
};

pub(super) async fn check(config: &Config) -> Finding {
    if !config.engine.uses_nats() {
        return Finding::ok("local: messages stay within the process");
    }
    let servers = match NatsServers::parse(config.engine.transport.expose()) {
        Ok(servers) => servers,
        Err(error) => return Finding::failed(format!("engine.transport {error}"), "Correct engine.transport."),
    };
    match look(&servers, &config.engine.nats_prefix).await {
        Ok(looked) if looked.to_do.is_empty() => Finding::ok(format!("NATS {}, {} messages wait", looked.server, looked.messages)),
        Ok(looked) => {
            Finding::warning(format!("NATS {}: {}", looked.server, looked.to_do.join("; ")), "The next start of the service sees to it.")
        }
        Err(error @ Error::Unfit { .. }) => Finding::failed(chain(&error), "The service does not start like this."),
        Err(error) => Finding::failed(
            chain(&error),
            "Start NATS, or correct engine.transport; until then tasks are taken from the database, a second later.",
        ),
    }
}
