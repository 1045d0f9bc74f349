//! Stands between the service and PostgreSQL and spoils connections in the ways that networks do.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_util::sync::CancellationToken;

/// The proxy; ends with the test.
pub struct PostgresProxy {
    address: SocketAddr,
    state: Arc<State>,
    end: CancellationToken,
}

struct State {
    server: SocketAddr,
    /// Connections with a smaller number pass nothing on any more, and are not closed.
    stalled_below: watch::Sender<u64>,
    cut: Mutex<CancellationToken>,
    delay: watch::Sender<Duration>,
    /// A text in what clients send, what becomes of it, and how often.
    spoil: Mutex<Option<(&'static str, Spoil, u32)>>,
    accepted: AtomicU64,
    spoiled: AtomicU64,
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoil {
    /// It does not arrive; the connection is cut.
    Request,
    /// It arrives and is carried out; the answer does not arrive, and the connection is cut.
    Answer,
}

impl PostgresProxy {
    /// Stands before the server of `url`, a URL on 127.0.0.1.
    pub async fn start(url: &str) -> Self {
        let place = url.rsplit_once('@').expect("user@host").1;
        let server = place.split('/').next().expect("a host").parse().expect("an address");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State {
            server,
            stalled_below: watch::Sender::new(0),
            cut: Mutex::default(),
            delay: watch::Sender::new(Duration::ZERO),
            spoil: Mutex::default(),
            accepted: AtomicU64::new(0),
            spoiled: AtomicU64::new(0),
        });
        let end = CancellationToken::new();
        let (accepting, ended) = (Arc::clone(&state), end.clone());
        tokio::spawn(async move {
            loop {
                let client = tokio::select! {
                    accepted = listener.accept() => accepted.expect("it can accept").0,
                    () = ended.cancelled() => return,
                };
                let number = accepting.accepted.fetch_add(1, Ordering::SeqCst);
                let cut = accepting.cut.lock().expect("nobody panics").child_token();
                let (state, ended) = (Arc::clone(&accepting), ended.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = state.pass(client, number) => {}
                        () = cut.cancelled() => {}
                        () = ended.cancelled() => {}
                    }
                });
            }
        });
        Self { address, state, end }
    }

    /// The same database, by way of the proxy.
    pub fn url(&self, url: &str) -> String {
        let (user, place) = url.rsplit_once('@').expect("user@host");
        let (_, database) = place.split_once('/').expect("a database");
        format!("{user}@{}/{database}", self.address)
    }

    /// Closes every connection that is open.
    pub fn cut(&self) {
        let mut cut = self.state.cut.lock().expect("nobody panics");
        std::mem::take(&mut *cut).cancel();
    }

    /// Every connection that is open passes nothing on any more, and neither side is told; new ones work.
    pub fn half_open(&self) {
        self.state.stalled_below.send_replace(self.state.accepted.load(Ordering::SeqCst));
    }

    /// Nothing gets through, new connections included.
    pub fn black_hole(&self) {
        self.state.stalled_below.send_replace(u64::MAX);
    }

    /// New connections work; what was stalled stays so.
    pub fn lift(&self) {
        self.half_open();
    }

    /// Each piece waits for so long on its way, in both directions.
    pub fn delay(&self, delay: Duration) {
        self.state.delay.send_replace(delay);
    }

    /// Spoils the next `times` messages of clients that hold `text`.
    pub fn spoil(&self, text: &'static str, spoil: Spoil, times: u32) {
        *self.state.spoil.lock().expect("nobody panics") = Some((text, spoil, times));
    }

    /// How many messages were spoiled.
    pub fn spoiled(&self) -> u64 {
        self.state.spoiled.load(Ordering::SeqCst)
    }

    /// How many connections were opened.
    pub fn accepted(&self) -> u64 {
        self.state.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for PostgresProxy {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl State {
    async fn pass(&self, mut client: TcpStream, number: u64) {
        self.unless_stalled(number).await;
        let Ok(mut server) = TcpStream::connect(self.server).await else { return };
        let (mut from_client, mut from_server) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
        loop {
            let passed = tokio::select! {
                read = client.read(&mut from_client) => match read {
                    Ok(read) if read > 0 => {
                        self.unless_stalled(number).await;
                        match self.spoils(&from_client[..read]) {
                            Some(Spoil::Request) => return,
                            Some(Spoil::Answer) => {
                                let _ = server.write_all(&from_client[..read]).await;
                                let _ = server.read(&mut from_server).await;
                                return;
                            }
                            None => self.write(&mut server, &from_client[..read]).await,
                        }
                    }
                    _ => return,
                },
                read = server.read(&mut from_server) => match read {
                    Ok(read) if read > 0 => {
                        self.unless_stalled(number).await;
                        self.write(&mut client, &from_server[..read]).await
                    }
                    _ => {
                        // A half-open connection is one of whose end nobody hears.
                        self.unless_stalled(number).await;
                        return;
                    }
                },
            };
            if passed.is_err() {
                return;
            }
        }
    }

    async fn write(&self, to: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
        let delay = *self.delay.borrow();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        to.write_all(bytes).await
    }

    /// Returns at once, or never.
    async fn unless_stalled(&self, number: u64) {
        if number < *self.stalled_below.borrow() {
            std::future::pending::<()>().await;
        }
    }

    fn spoils(&self, bytes: &[u8]) -> Option<Spoil> {
        let mut armed = self.spoil.lock().expect("nobody panics");
        let (text, spoil, times) = armed.as_mut()?;
        if *times == 0 || !bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
            return None;
        }
        *times -= 1;
        self.spoiled.fetch_add(1, Ordering::SeqCst);
        Some(*spoil)
    }
}
