//! The server: accepts connections, serves HTTP/1.1 on each, and drains them one by one.
//!
//! A connection's limits: 75 s for a head to arrive (a request of which only a part came is answered 408), which is also how long an idle keep-alive connection stays (above the 60 s of common balancers, so that they
//! close first); TCP keepalive probes under 350 s, so that a NAT does not forget a call that is held for minutes and a vanished client is noticed. When a client
//! hangs up, hyper drops the handler's future: that removes a waiter and nothing else.

use super::late_head;
use crate::base::{chain::chain, clock::Clock, shutdown::Shutdown};
use axum::{Router, body::Body};
use hyper::{Request, body::Incoming, server::conn::http1};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use socket2::{SockRef, TcpKeepalive};
use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::net::{TcpListener, TcpStream};
use tower::Service as _;

/// The client's socket address, attached to every request.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

const HEAD_PATIENCE: Duration = Duration::from_secs(75);
/// Common balancers keep an idle connection for this long and must be the first to close it: a request sent on a connection that we are just closing is lost.
const BALANCERS_PATIENCE: Duration = Duration::from_mins(1);
const _: () = assert!(HEAD_PATIENCE.as_secs() >= BALANCERS_PATIENCE.as_secs() + 10);
const KEEPALIVE_AFTER: Duration = Duration::from_mins(1);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEPALIVE_PROBES: u32 = 4;
/// Above the gate's own limits, so that what is a little too large gets a proper problem.
const MAX_HEAD_BYTES: usize = 128 * 1024;
const MAX_HEADERS: usize = 256;
/// After a failed accept, such as for want of open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a draining connection that serves nothing may stay: one with half a request head would otherwise stay for [`HEAD_PATIENCE`].
const IDLE_GRACE: Duration = Duration::from_secs(1);

/// Serves `router` on `listener` until `shutdown` is soft, then drains: no new connections, idle ones are closed, running requests are answered. Returns when
/// the last connection is closed, at once when `shutdown` is hard.
///
/// # Errors
/// When the listener cannot be used at all.
pub async fn serve(listener: TcpListener, router: Router, clock: Clock, shutdown: Shutdown) -> io::Result<()> {
    serve_patiently(listener, router, clock, shutdown, HEAD_PATIENCE).await
}

/// As [`serve`], with another patience for heads.
///
/// # Errors
/// As [`serve`].
pub async fn serve_patiently(
    listener: TcpListener,
    router: Router,
    clock: Clock,
    shutdown: Shutdown,
    head_patience: Duration,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let connections = Arc::new(AtomicUsize::new(0));
    let (closed, mut all_closed) = tokio::sync::mpsc::channel::<()>(1);
    tracing::info!(%address, "listening");
    loop {
        let accepted = tokio::select! {
            () = shutdown.soft().cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                prepare(&stream);
                let connection = Connection {
                    router: router.clone(),
                    peer,
                    clock: clock.clone(),
                    shutdown: shutdown.clone(),
                    running: Arc::default(),
                    head_patience,
                    _closed: closed.clone(),
                };
                connections.fetch_add(1, Ordering::Relaxed);
                let connections = Arc::clone(&connections);
                shutdown.spawn("connection", async move {
                    connection.serve(stream).await;
                    connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
            Err(error) => {
                // The listener is fine; this one connection, or the process's open files, are not.
                tracing::warn!(error = chain(&error), "a connection could not be accepted");
                clock.sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    drop(closed);
    tracing::info!(connections = connections.load(Ordering::Relaxed), "draining connections");
    // Ends when the last connection has dropped its sender.
    let _ = all_closed.recv().await;
    Ok(())
}

fn prepare(stream: &TcpStream) {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER).with_interval(KEEPALIVE_INTERVAL).with_retries(KEEPALIVE_PROBES);
    let set = SockRef::from(stream).set_tcp_keepalive(&keepalive).and_then(|()| stream.set_nodelay(true));
    if let Err(error) = set {
        tracing::debug!(error = chain(&error), "socket options could not be set");
    }
}

struct Connection {
    router: Router,
    peer: SocketAddr,
    clock: Clock,
    shutdown: Shutdown,
    /// Requests being answered: none or one, as HTTP/1.1 has it.
    running: Arc<AtomicUsize>,
    head_patience: Duration,
    _closed: tokio::sync::mpsc::Sender<()>,
}

/// A request being answered; counted down when its body has gone out too.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn begin(running: &Arc<AtomicUsize>) -> Self {
        running.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(running))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connection {
    async fn serve(self, stream: TcpStream) {
        let (router, peer, running) = (self.router.clone(), self.peer, Arc::clone(&self.running));
        let service = tower::service_fn(move |request: Request<Incoming>| {
            // A router is always ready.
            let (mut router, running) = (router.clone(), Running::begin(&running));
            async move {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(Peer(peer));
                let Ok(response) = router.call(request).await;
                Ok::<_, std::convert::Infallible>(response.map(|body| Body::new(Counted { body, _running: running })))
            }
        });
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.head_patience)
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD_BYTES)
            .keep_alive(true);
        let mut connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        let ended = tokio::select! {
            ended = &mut connection => ended,
            () = self.shutdown.hard().cancelled() => return,
            () = self.shutdown.soft().cancelled() => {
                std::pin::Pin::new(&mut connection).graceful_shutdown();
                loop {
                    tokio::select! {
                        ended = &mut connection => break ended,
                        () = self.shutdown.hard().cancelled() => return,
                        () = self.clock.sleep(IDLE_GRACE) => {
                            if self.running.load(Ordering::Relaxed) == 0 {
                                return;
                            }
                        }
                    }
                }
            }
        };
        if let Err(error) = ended {
            let parts = connection.into_parts();
            if error.is_timeout() && !parts.read_buf.is_empty() {
                let (mut router, mut stream) = (self.router.clone(), parts.io.into_inner());
                // Boxed, so that not every open connection keeps room for it.
                Box::pin(late_head::answer(&mut router, peer, &parts.read_buf, &mut stream)).await;
            }
            // A client that hung up, or sent what is no HTTP; hyper has answered what could be answered.
            tracing::debug!(error = chain(&error), peer = %self.peer, "connection ended");
        }
    }
}

/// A body that keeps its request counted while it goes out.
struct Counted {
    body: Body,
    _running: Running,
}

impl http_body::Body for Counted {
    type Data = bytes::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        std::pin::Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
