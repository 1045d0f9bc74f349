//! Which addresses may be asked at all, and which of them may see the token. Asked before a connection is made, for every hop of a redirect.

use reqwest::Url;
use std::net::{IpAddr, Ipv6Addr};

/// The rules.
#[derive(Debug, Clone)]
pub struct Guard {
    /// The configured source's own address.
    home: Option<Url>,
    /// `host` or `host:port`.
    allowed: Vec<String>,
}

/// What an address may be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The configured origin: the token may go with the request.
    Home,
    /// An allowed host: without the token.
    Allowed,
}

impl Guard {
    #[must_use]
    pub fn new(home: Option<Url>, allowed: &[String]) -> Self {
        Self { home, allowed: allowed.iter().map(|host| host.to_ascii_lowercase()).collect() }
    }

    /// Whether the address may be asked.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, url: &Url) -> Result<Trust, String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("{url} is neither http nor https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("an address with a user name or password in it is not followed".to_owned());
        }
        let Some(host) = url.host_str() else { return Err(format!("{url} names no host")) };
        if is_link_local(host) {
            return Err(format!("{host} is a link-local address, which is never asked"));
        }
        if self.home.as_ref().is_some_and(|home| home.origin() == url.origin()) {
            return Ok(Trust::Home);
        }
        let host = host.to_ascii_lowercase();
        let with_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
        if self.allowed.iter().any(|allowed| *allowed == host || Some(allowed) == with_port.as_ref()) {
            return Ok(Trust::Allowed);
        }
        Err(format!("{host} is neither the agenda's own host nor one of agenda.allowed_hosts"))
    }
}

/// Whether a host is written as a link-local address (a cloud's metadata service is one).
fn is_link_local(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_link_local(),
        Ok(IpAddr::V6(address)) => is_link_local_v6(address),
        Err(_) => false,
    }
}

fn is_link_local_v6(address: Ipv6Addr) -> bool {
    address.is_unicast_link_local() || address.to_ipv4_mapped().is_some_and(|address| address.is_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_home_sees_the_token_and_only_allowed_hosts_are_asked() {
        let guard =
            Guard::new(Some(Url::parse("https://agenda.example/a/").unwrap()), &["Files.example".to_owned(), "10.0.0.7:8081".to_owned()]);
        let check = |url: &str| guard.check(&Url::parse(url).unwrap());
        assert_eq!(check("https://agenda.example/b"), Ok(Trust::Home));
        assert_eq!(check("https://AGENDA.example:443/b"), Ok(Trust::Home));
        assert_eq!(check("http://files.example/b"), Ok(Trust::Allowed));
        assert_eq!(check("http://10.0.0.7:8081/b"), Ok(Trust::Allowed));
        for refused in [
            "http://agenda.example/b",
            "https://agenda.example:8443/b",
            "http://10.0.0.7/b",
            "https://elsewhere.example/",
            "https://agenda.example.evil.example/",
            "https://user:pw@agenda.example/b",
            "ftp://agenda.example/b",
            "file:///etc/passwd",
        ] {
            assert!(check(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn link_local_is_never_asked_even_if_allowed() {
        let guard = Guard::new(None, &["169.254.169.254".to_owned(), "[fe80::1]".to_owned(), "[::ffff:a9fe:a9fe]".to_owned()]);
        for url in ["http://169.254.169.254/latest", "http://2852039166/", "http://[fe80::1]/", "http://[::ffff:169.254.169.254]/"] {
            assert!(guard.check(&Url::parse(url).unwrap()).unwrap_err().contains("link-local"), "{url}");
        }
    }
}
