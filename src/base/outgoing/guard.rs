//! Which addresses may be asked, and a client that asks no others.

use super::{MachineNetwork, Network, Reach, port};
use reqwest::{
    Request, Response, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect,
};
use reqwest_middleware::{ClientBuilder, Middleware, Next};
use reqwest_retry::RetryError;
use std::{io, net::IpAddr, sync::Arc};
use url::Host;

/// The rules; cheap to clone.
#[derive(Debug, Clone)]
pub struct Guard {
    allow_private: bool,
    network: Arc<dyn Network>,
}

/// Why an address is not asked. The texts name no more of it than its host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("it begins neither with https:// nor with http://")]
    Scheme,
    #[error("it is not encrypted: only https:// is allowed")]
    Plain,
    #[error("a user name or password stands in it")]
    Credentials,
    #[error("it names no host")]
    Host,
    #[error("no HTTP server has port {0}")]
    Port(u16),
    #[error("{host} is a private address")]
    Private { host: String },
    #[error("{host} is a link-local, metadata, multicast or reserved address, which is never asked")]
    Never { host: String },
}

impl Guard {
    /// For addresses that strangers name: https, and hosts of the public internet only.
    #[must_use]
    pub fn public() -> Self {
        Self { allow_private: false, network: Arc::new(MachineNetwork) }
    }

    /// For addresses that the operator has allowed, and for networks without strangers: private ones and http, too.
    #[must_use]
    pub fn closed() -> Self {
        Self { allow_private: true, ..Self::public() }
    }

    /// Over another network than the machine's.
    #[must_use]
    pub fn over(self, network: Arc<dyn Network>) -> Self {
        Self { network, ..self }
    }

    /// Looks at an address as it is written. A host that is written as a number in any base, or as an IPv6 address, is judged here; a name when it is resolved.
    ///
    /// # Errors
    /// Why it is not asked.
    pub fn check(&self, url: &Url) -> Result<(), Refused> {
        match url.scheme() {
            "https" => {}
            "http" if self.allow_private => {}
            "http" => return Err(Refused::Plain),
            _ => return Err(Refused::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::Credentials);
        }
        let port = url.port_or_known_default().unwrap_or(0);
        if !port::is_usable(port) {
            return Err(Refused::Port(port));
        }
        // URLs of the web are parsed to the letter of their standard: 2130706433, 0x7f.1 and 017700000001 are the IPv4 address 127.0.0.1 by now.
        match url.host() {
            Some(Host::Ipv4(address)) => self.admit(&address.to_string(), address.into()),
            Some(Host::Ipv6(address)) => self.admit(&address.to_string(), address.into()),
            Some(Host::Domain(name)) if !name.is_empty() => Ok(()),
            _ => Err(Refused::Host),
        }
    }

    /// Looks at an address and at what its name resolves to now. For registration: a refusal then is told to whoever registers. It replaces no later look.
    ///
    /// # Errors
    /// An [`io::Error`] around [`Refused`], or what the resolver says.
    pub async fn look(&self, url: &Url) -> io::Result<()> {
        self.check(url).map_err(io::Error::other)?;
        if let Some(Host::Domain(name)) = url.host() {
            self.resolve(name.to_owned()).await?;
        }
        Ok(())
    }

    /// A client that looks at each request's address and at each address that it connects to, follows no redirect and uses no proxy. Time-outs and the like are
    /// set in `builder` beforehand; what is added to the result (repeats) lies within the look at the request. A user or password in an address is no longer there
    /// when the client looks: [`Guard::check`] finds them.
    ///
    /// # Errors
    /// When the client cannot be built.
    pub fn client(&self, builder: reqwest::ClientBuilder) -> reqwest::Result<ClientBuilder> {
        super::super::tls::install();
        let resolver = Arc::new(GuardedResolver(self.clone()));
        let client = builder.redirect(redirect::Policy::none()).no_proxy().dns_resolver(resolver).build()?;
        Ok(ClientBuilder::new(client).with(self.clone()))
    }

    /// All addresses of a name, if each of them may be asked: one that may not makes the whole answer suspect.
    async fn resolve(&self, name: String) -> io::Result<Vec<IpAddr>> {
        let addresses = self.network.resolve(name.clone()).await?;
        if addresses.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        for address in &addresses {
            self.admit(&name, *address).map_err(io::Error::other)?;
        }
        Ok(addresses)
    }

    fn admit(&self, host: &str, address: IpAddr) -> Result<(), Refused> {
        match Reach::of(address) {
            Reach::Public => Ok(()),
            Reach::Private if self.allow_private => Ok(()),
            Reach::Private => Err(Refused::Private { host: host.to_owned() }),
            Reach::Never => Err(Refused::Never { host: host.to_owned() }),
        }
    }
}

/// The refusal in an error of a guarded client, if it is one.
#[must_use]
pub fn refused<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Refused> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(refused) = error.downcast_ref() {
            return Some(refused);
        }
        if let Some(reqwest_middleware::Error::Middleware(held)) = error.downcast_ref() {
            next = Some(held.as_ref());
            continue;
        }
        if let Some(RetryError::WithRetries { err: held, .. } | RetryError::Error(held)) = error.downcast_ref() {
            next = Some(held);
            continue;
        }
        // An io::Error hands on the source of what it holds, not what it holds.
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref).map(|held| held as &(dyn std::error::Error + 'static));
        next = held.or_else(|| error.source());
    }
    None
}

#[async_trait::async_trait]
impl Middleware for Guard {
    async fn handle(&self, request: Request, extensions: &mut http::Extensions, next: Next<'_>) -> reqwest_middleware::Result<Response> {
        self.check(request.url()).map_err(reqwest_middleware::Error::middleware)?;
        next.run(request, extensions).await
    }
}

/// What the client asks for addresses before it connects.
#[derive(Debug)]
struct GuardedResolver(Guard);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.0.clone();
        Box::pin(async move {
            let addresses = guard.resolve(name.as_str().to_owned()).await?;
            let dialled: Vec<_> = addresses.into_iter().map(|address| guard.network.dial(address)).collect();
            Ok(Box::new(dialled.into_iter()) as Addrs)
        })
    }
}
