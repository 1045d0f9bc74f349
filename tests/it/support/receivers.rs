//! Receivers of webhooks on this machine, well-behaved and otherwise, on bare sockets so that each can do exactly as it likes.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use protocol_bridge::base::shutdown::Shutdown;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    io::Write as _,
    net::SocketAddr,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

/// What a receiver does with a request that it has read.
#[derive(Debug, Clone)]
pub enum Manner {
    /// Answers so at once.
    Answers(u16),
    /// The first so many requests get this status, the rest 204.
    FailsFirst(usize, u16),
    /// 503 with this Retry-After.
    AsksFor(String),
    /// Takes the request and never answers.
    Hangs,
    /// Writes its answer a byte at a time, for ever.
    Drips,
    /// Answers 200 with a body that never ends.
    Endless,
    /// 307 to somewhere else.
    Redirects(String),
    /// 200, and this in the body.
    Says(&'static str),
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Taken {
    pub path: String,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Taken {
    pub fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("an event is JSON")
    }
}

/// A receiver; gone with the test.
pub struct Receiver {
    pub address: SocketAddr,
    taken: Arc<Mutex<Vec<Taken>>>,
    connections: Arc<AtomicUsize>,
    shutdown: Shutdown,
}

impl Receiver {
    pub async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (taken, connections) = (Arc::<Mutex<Vec<Taken>>>::default(), Arc::<AtomicUsize>::default());
        let shutdown = Shutdown::new();
        let (all, count, accepting) = (Arc::clone(&taken), Arc::clone(&connections), shutdown.clone());
        shutdown.spawn("receiver", async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = accepting.hard().cancelled() => return,
                };
                let Ok((stream, _)) = accepted else { continue };
                count.fetch_add(1, Ordering::SeqCst);
                let (all, manner, hard) = (Arc::clone(&all), manner.clone(), accepting.hard().clone());
                accepting.spawn("connection", async move {
                    tokio::select! {
                        _ = serve(stream, manner, &all) => {}
                        () = hard.cancelled() => {}
                    }
                });
            }
        });
        Self { address, taken, connections, shutdown }
    }

    /// A port on which nobody listens.
    pub async fn refusing() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").await.expect("a free port").local_addr().expect("an address")
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Everything that came, in order.
    pub fn taken(&self) -> Vec<Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn count(&self) -> usize {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shutdown.force();
    }
}

async fn serve(stream: TcpStream, manner: Manner, all: &Mutex<Vec<Taken>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(taken) = read(&mut stream).await? {
        let before = {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(taken);
            all.len() - 1
        };
        let answer = |status: u16, headers: &str, body: &str| {
            format!("HTTP/1.1 {status} Said\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
        };
        let text = match &manner {
            Manner::Answers(status) => answer(*status, "", ""),
            Manner::FailsFirst(count, status) => answer(if before < *count { *status } else { 204 }, "", ""),
            Manner::AsksFor(wait) => answer(503, &format!("retry-after: {wait}\r\n"), ""),
            Manner::Redirects(to) => answer(307, &format!("location: {to}\r\n"), ""),
            Manner::Says(body) => answer(200, "", body),
            Manner::Hangs => std::future::pending().await,
            Manner::Drips => loop {
                stream.write_all(b"H").await?;
                tokio::time::sleep(Duration::from_millis(50)).await;
            },
            Manner::Endless => {
                stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
                loop {
                    stream.write_all(b"400\r\n").await?;
                    stream.write_all(&[b'x'; 0x400]).await?;
                    stream.write_all(b"\r\n").await?;
                }
            }
        };
        stream.write_all(text.as_bytes()).await?;
    }
    Ok(())
}

async fn read(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Taken>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return Ok(None),
        }
    }
    let head = String::from_utf8(head).expect("heads are ASCII");
    let mut lines = head.lines();
    let path = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
    let headers: HashMap<String, String> =
        lines.filter_map(|line| line.split_once(':')).map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(Taken { path, headers, body }))
}

/// Has Python verify each request with the code that docs/migration.md shows; answers how many it found good under one of the secrets.
pub async fn verified_by_python(taken: Vec<Taken>, secrets: &[&str]) -> usize {
    let page = include_str!("../../../docs/migration.md");
    let begin = page.find("import base64\nimport hashlib").expect("the page shows how Python verifies");
    let shown = page[begin..].split("```").next().expect("and the block ends").to_owned();
    let secrets: Vec<String> = secrets.iter().map(|&secret| secret.to_owned()).collect();
    let work = move || {
        let trial = "\n\nimport sys\ngood = 0\nfor line in sys.stdin:\n    said = json.loads(line)\n    body = base64.b64decode(said['body'])\n    \
            verify(said['headers'], body, said['secrets'], tolerance=10 ** 10)\n    json.loads(body)\n    \
            try:\n        verify(said['headers'], body + b' ', said['secrets'], tolerance=10 ** 10)\n    except ValueError:\n        good += 1\nprint(good)\n";
        let mut python = Command::new("python3")
            .args(["-c", &(shown + trial)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is installed");
        let mut input = python.stdin.take().expect("it is piped");
        for taken in &taken {
            let line = json!({ "headers": taken.headers, "body": BASE64_STANDARD.encode(&taken.body), "secrets": secrets });
            writeln!(input, "{line}").expect("Python reads");
        }
        drop(input);
        let output = python.wait_with_output().expect("Python ends");
        assert!(output.status.success(), "Python refuses one");
        String::from_utf8(output.stdout).expect("a number").trim().parse().expect("a number")
    };
    tokio::task::spawn_blocking(work).await.expect("it ran")
}
