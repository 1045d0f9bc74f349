//! A hop that passes requests on but no answers, and then resets every connection: what a balancer does that cuts, or a network that breaks, after the request was
//! read and before the answer came.

use protocol_bridge::base::shutdown::Shutdown;
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncWriteExt as _, copy, copy_bidirectional, sink},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// The hop; ends with the test.
pub struct BreakingProxy {
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
    healed: watch::Sender<bool>,
    shutdown: Shutdown,
}

impl BreakingProxy {
    pub async fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (connections, healed, shutdown) = (Arc::<AtomicUsize>::default(), watch::Sender::new(false), Shutdown::new());
        let (counted, watched, tracker) = (Arc::clone(&connections), healed.clone(), shutdown.clone());
        shutdown.spawn("breaking-proxy", async move {
            loop {
                let accepted = tokio::select! {
                    () = tracker.hard().cancelled() => return,
                    accepted = listener.accept() => accepted,
                };
                let (client, _) = accepted.expect("a connection");
                counted.fetch_add(1, Ordering::SeqCst);
                tracker.spawn("connection", pass(client, upstream, watched.subscribe()));
            }
        });
        Self { address, connections, healed, shutdown }
    }

    /// Resets every connection; those that come afterwards are passed on both ways.
    pub fn break_once(&self) {
        self.healed.send_replace(true);
    }

    /// How many connections came.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for BreakingProxy {
    fn drop(&mut self) {
        self.shutdown.force();
    }
}

async fn pass(mut client: TcpStream, upstream: SocketAddr, mut healed: watch::Receiver<bool>) {
    let mut server = TcpStream::connect(upstream).await.expect("the service listens");
    if *healed.borrow() {
        let _ = copy_bidirectional(&mut client, &mut server).await;
        return;
    }
    let (mut from_server, mut to_server) = server.split();
    let (mut from_client, _) = client.split();
    let mut nowhere = sink();
    tokio::select! {
        _ = healed.wait_for(|healed| *healed) => {}
        _ = async { tokio::join!(copy(&mut from_client, &mut to_server), copy(&mut from_server, &mut nowhere)) } => {}
    }
    let _ = to_server.shutdown().await;
    socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).expect("an option of TCP");
}
