//! A real nats-server with JetStream, on a port and in a folder of the test's own; gone with the test, however it went.

use async_nats::jetstream::{self, Context, consumer, stream};
use protocol_bridge::{
    base::{clock::Clock, config::NatsServers, shutdown::Shutdown},
    engine::transport::{
        JetStream,
        jetstream::{Error, Names},
    },
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(20);

/// A server that can be stopped and started again on the same port.
#[derive(Debug)]
pub struct Nats {
    pub port: u16,
    folder: TempDir,
    arguments: Vec<String>,
    server: Option<Child>,
}

impl Nats {
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// With more of the server's own arguments, such as a user and a password.
    pub async fn start_with(arguments: &[&str]) -> Self {
        let mut nats = Self::absent();
        nats.arguments.extend(arguments.iter().map(|&argument| argument.to_owned()));
        nats.start_again().await;
        nats
    }

    /// A server that is not there yet.
    pub fn absent() -> Self {
        let folder = TempDir::new().expect("a folder");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port();
        watch(folder.path().to_owned());
        Self { port, folder, arguments: Vec::new(), server: None }
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Starts it on its port, with what it had stored.
    pub async fn start_again(&mut self) {
        let store = self.folder.path().join("store");
        let server = Command::new("nats-server")
            .args(["-js", "-a", "127.0.0.1", "-p", &self.port.to_string(), "-sd"])
            .arg(&store)
            .arg("-l")
            .arg(self.folder.path().join("log"))
            .arg("-P")
            .arg(self.folder.path().join("pid"))
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nats-server is installed (scripts/test.sh --install)");
        self.server = Some(server);
        super::eventually(LIMIT, "nats-server listens", async || TcpStream::connect(("127.0.0.1", self.port)).is_ok()).await;
    }

    /// As a power cut would.
    pub fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    /// Everything it had stored is gone; it has to be stopped.
    pub fn forget(&self) {
        assert!(self.server.is_none(), "it is stopped first");
        let _ = std::fs::remove_dir_all(self.folder.path().join("store"));
    }

    /// It stays there and says nothing.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let id = self.server.as_ref().expect("it runs").id();
        kill_process(Pid::from_raw(i32::try_from(id).expect("process ids are small")).expect("and not zero"), signal).expect("our child");
    }

    /// A look from outside, without what the service knows.
    pub async fn context(&self) -> Context {
        jetstream::new(async_nats::connect(self.url()).await.expect("nats-server answers"))
    }

    pub async fn stream(&self) -> stream::Stream {
        self.context().await.get_stream(names().stream).await.expect("the stream is there")
    }

    /// How many messages lie in the stream; -1: there is no stream.
    pub async fn stored(&self) -> i64 {
        match self.context().await.get_stream(names().stream).await {
            Ok(stream) => i64::try_from(stream.cached_info().state.messages).expect("few"),
            Err(_) => -1,
        }
    }

    pub async fn consumer(&self) -> consumer::Info {
        self.stream().await.consumer_info(names().consumer).await.expect("the consumer is there")
    }

    /// Our transport over it; its loop ends with `shutdown`.
    pub async fn transport(&self, shutdown: &Shutdown) -> Arc<JetStream> {
        Arc::new(self.try_transport(shutdown).await.expect("the transport starts"))
    }

    pub async fn try_transport(&self, shutdown: &Shutdown) -> Result<JetStream, Error> {
        JetStream::start(&NatsServers::parse(&self.url()).expect("an address"), PREFIX, Clock::system(), shutdown).await
    }
}

/// The configuration's default.
pub const PREFIX: &str = "protocol-bridge";

pub fn names() -> Names {
    Names::new(PREFIX)
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Leaves a process behind that waits for this one to be gone, then ends the server, if it still runs, and removes the folder.
fn watch(folder: PathBuf) {
    let script = r#"tail --pid="$1" -f /dev/null; [ -e "$2/pid" ] && kill -KILL "$(cat "$2/pid")" 2>/dev/null; rm -rf "$2""#;
    Command::new("setsid")
        .args(["--fork", "sh", "-c", script, "watchdog", &std::process::id().to_string()])
        .arg(folder)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("setsid and sh are there");
}
