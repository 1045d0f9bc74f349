//! How we connect to NATS, whatever for: the client reconnects for ever, and notices within seconds that nobody answers.

use crate::base::config::{NatsLogin, NatsServers};
use async_nats::ConnectOptions;
use std::time::Duration;

/// How long NATS may take to answer, an acknowledgement of a send included: shorter than a relay's claim on the rows it sends.
pub(in crate::engine) const ANSWER: Duration = Duration::from_secs(3);
/// A connection on which nothing comes back is given up after two of these.
const PING: Duration = Duration::from_secs(5);
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(200);
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(5);

pub(in crate::engine) fn options(servers: &NatsServers) -> ConnectOptions {
    let options = ConnectOptions::new()
        .name("protocol-bridge")
        .retry_on_initial_connect()
        .connection_timeout(ANSWER)
        .request_timeout(Some(ANSWER))
        .ping_interval(PING)
        .reconnect_delay_callback(|tries| {
            let doublings = u32::try_from(tries.saturating_sub(1)).unwrap_or(u32::MAX).min(10);
            if tries <= 1 { Duration::ZERO } else { (FIRST_WAIT / 2).saturating_mul(2_u32.pow(doublings)).min(LONGEST_WAIT) }
        });
    match servers.login.clone() {
        None => options,
        Some(NatsLogin::Token(token)) => options.token(token.expose().to_owned()),
        Some(NatsLogin::Password { user, password }) => options.user_and_password(user, password.expose().to_owned()),
    }
}
