//! How names become addresses, and where a connection to an address goes.

use futures::future::BoxFuture;
use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
};

/// The network that a guard stands before. Tests put their own in.
pub trait Network: fmt::Debug + Send + Sync {
    /// The addresses of a name, as they are now.
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;

    /// Where to connect for an address that the guard let pass; port 0 stands for the request's own.
    fn dial(&self, address: IpAddr) -> SocketAddr {
        SocketAddr::new(address, 0)
    }
}

/// The machine's own resolver, and connections to exactly what it says.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineNetwork;

impl Network for MachineNetwork {
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect()) })
    }
}
