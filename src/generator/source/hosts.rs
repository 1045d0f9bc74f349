//! Which hosts an agenda's links may lead to, and which of them may see the token. What an address is, wherever it leads, is for [`crate::base::outgoing`].

use reqwest::Url;

/// The configured hosts.
#[derive(Debug, Clone)]
pub struct Hosts {
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

impl Hosts {
    #[must_use]
    pub fn new(home: Option<Url>, allowed: &[String]) -> Self {
        Self { home, allowed: allowed.iter().map(|host| host.to_ascii_lowercase()).collect() }
    }

    /// Whether the address's host may be asked; `None` if not.
    #[must_use]
    pub fn trust(&self, url: &Url) -> Option<Trust> {
        if self.home.as_ref().is_some_and(|home| home.origin() == url.origin()) {
            return Some(Trust::Home);
        }
        let host = url.host_str()?.to_ascii_lowercase();
        let with_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
        let is_allowed = self.allowed.iter().any(|allowed| *allowed == host || Some(allowed) == with_port.as_ref());
        is_allowed.then_some(Trust::Allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_home_sees_the_token_and_only_allowed_hosts_are_asked() {
        let home = Some(Url::parse("https://agenda.example/a/").unwrap());
        let hosts = Hosts::new(home, &["Files.example".to_owned(), "10.0.0.7:8081".to_owned()]);
        let trust = |url: &str| hosts.trust(&Url::parse(url).unwrap());
        assert_eq!(trust("https://agenda.example/b"), Some(Trust::Home));
        assert_eq!(trust("https://AGENDA.example:443/b"), Some(Trust::Home));
        assert_eq!(trust("http://files.example/b"), Some(Trust::Allowed));
        assert_eq!(trust("http://10.0.0.7:8081/b"), Some(Trust::Allowed));
        for refused in [
            "http://agenda.example/b",
            "https://agenda.example:8443/b",
            "http://10.0.0.7/b",
            "https://elsewhere.example/",
            "https://agenda.example.evil.example/",
            "ftp://agenda.example/b",
            "file:///etc/passwd",
        ] {
            assert_eq!(trust(refused), None, "{refused}");
        }
    }
}
