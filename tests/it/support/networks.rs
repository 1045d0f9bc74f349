//! A network whose names mean what a test says, and whose connections all end at one server of the test.

use futures::future::BoxFuture;
use protocol_bridge::base::outgoing::Network;
use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Mutex, MutexGuard, PoisonError},
};

#[derive(Debug, Default)]
pub struct ToyNetwork {
    server: Option<SocketAddr>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The answers of a name, one after the other; the last one stays.
    names: HashMap<String, Vec<Vec<IpAddr>>>,
    looked_up: usize,
    dialled: Vec<String>,
}

impl ToyNetwork {
    pub fn leading_to(server: SocketAddr) -> Self {
        Self { server: Some(server), ..Self::default() }
    }

    /// What the name resolves to next, and then for good unless more is said.
    pub fn say(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|address| address.parse().expect("an address")).collect();
        self.state().names.entry(name.to_owned()).or_default().push(addresses);
    }

    /// How many names were looked up.
    pub fn looked_up(&self) -> usize {
        self.state().looked_up
    }

    /// The addresses that connections were made to, in order.
    pub fn dialled(&self) -> Vec<String> {
        self.state().dialled.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Network for ToyNetwork {
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let mut state = self.state();
        state.looked_up += 1;
        let answer = match state.names.get_mut(&host) {
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers[0].clone()),
            None => Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
        };
        Box::pin(async move { answer })
    }

    fn dial(&self, address: IpAddr) -> SocketAddr {
        self.state().dialled.push(address.to_string());
        self.server.unwrap_or(SocketAddr::new(address, 0))
    }
}
