//! Where NATS is: the servers of one cluster, and who we are to them.
//!
//! The login is taken out of the addresses, because the client writes addresses into its log.

use super::Secret;
use async_nats::ServerAddr;
use percent_encoding::percent_decode_str;

/// Servers and login; `Debug` shows no password.
#[derive(Debug, Clone)]
pub struct NatsServers {
    pub servers: Vec<ServerAddr>,
    pub login: Option<NatsLogin>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NatsLogin {
    Token(Secret),
    Password { user: String, password: Secret },
}

impl NatsServers {
    /// Whether a transport is meant to be NATS.
    #[must_use]
    pub fn are_meant(transport: &str) -> bool {
        ["nats://", "tls://"].iter().any(|scheme| transport.starts_with(scheme))
    }

    /// Reads `nats://[user:password@|token@]host[:port]`, or `tls://…`; several servers of one cluster are separated by commas.
    ///
    /// # Errors
    /// What is wrong, in words that hold nothing of the text: it may hold a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut servers, mut login) = (Vec::new(), None);
        for part in text.split(',').map(str::trim) {
            if !Self::are_meant(part) {
                return Err("holds an address that begins with neither nats:// nor tls://".to_owned());
            }
            let unusable = || "is not an address; write it like nats://nats.example.org:4222".to_owned();
            let mut url = part.parse::<ServerAddr>().map_err(|_| unusable())?.into_inner();
            if !url.has_host() {
                return Err(unusable());
            }
            let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
            let here = match (url.username(), url.password()) {
                ("", _) => None,
                (token, None) => Some(NatsLogin::Token(decoded(token).into())),
                (user, Some(password)) => Some(NatsLogin::Password { user: decoded(user), password: decoded(password).into() }),
            };
            if let (Some(here), Some(before)) = (&here, &login)
                && here != before
            {
                return Err("names two logins; the servers of a cluster share one".to_owned());
            }
            login = login.or(here);
            url.set_password(None).and_then(|()| url.set_username("")).map_err(|()| unusable())?;
            servers.push(ServerAddr::from_url(url).map_err(|_| unusable())?);
        }
        Ok(Self { servers, login })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_is_kept_apart_from_the_addresses() {
        let nats = NatsServers::parse("nats://bridge:p%40ss@one:4222, tls://two").expect("two servers");
        assert_eq!(nats.servers.iter().map(ServerAddr::as_url_str).collect::<Vec<_>>(), ["nats://one:4222", "tls://two"]);
        assert_eq!(nats.login, Some(NatsLogin::Password { user: "bridge".to_owned(), password: "p@ss".into() }));
        assert!(!format!("{nats:?}").contains("p@ss"));
        let token = NatsServers::parse("nats://s3cret@one").expect("a server").login;
        assert_eq!(token, Some(NatsLogin::Token("s3cret".into())));
        assert!(NatsServers::parse("nats://one:4222").expect("a server").login.is_none());
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_repeating_it() {
        for text in ["http://one", "nats://", "nats://a:s3cret@one,nats://b:s3cret@two", "nats://a:s3cret@one:port", "nats://one,,"] {
            let reason = NatsServers::parse(text).expect_err(text);
            assert!(!reason.contains("s3cret"), "{reason}");
        }
    }
}
