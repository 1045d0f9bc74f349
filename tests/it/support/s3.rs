//! A real S3 server in the test process (`s3s-fs`), which can be stopped and started again on its port.

use hyper::server::conn::http1::Builder;
use hyper_util::rt::TokioIo;
use protocol_bridge::base::{
    config::{Config, Documents},
    shutdown::Shutdown,
};
use s3s::{auth::SimpleAuth, service::S3ServiceBuilder};
use s3s_fs::FileSystem;
use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

const BUCKET: &str = "protocols";
pub const KEY: &str = "bridge";
pub const SECRET: &str = "hunter2hunter2";

/// The server; ends with the test.
pub struct S3Server {
    pub address: SocketAddr,
    folder: tempfile::TempDir,
    connections: Arc<AtomicUsize>,
    running: Option<Shutdown>,
}

impl S3Server {
    /// With an empty bucket.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join(BUCKET)).expect("our own folder");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut server = Self { address: listener.local_addr().expect("an address"), folder, connections: Arc::default(), running: None };
        server.serve(listener);
        server
    }

    fn serve(&mut self, listener: TcpListener) {
        listener.set_nonblocking(true).expect("an option of sockets");
        let listener = tokio::net::TcpListener::from_std(listener).expect("within a runtime");
        let mut service = S3ServiceBuilder::new(FileSystem::new(self.folder.path()).expect("our own folder"));
        service.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let service = service.build();
        let shutdown = Shutdown::new();
        let (tracker, connections) = (shutdown.clone(), Arc::clone(&self.connections));
        shutdown.spawn("s3", async move {
            loop {
                let accepted = tokio::select! {
                    () = tracker.hard().cancelled() => return,
                    accepted = listener.accept() => accepted,
                };
                let (client, _) = accepted.expect("a connection");
                connections.fetch_add(1, Ordering::SeqCst);
                let (service, hard) = (service.clone(), tracker.hard().clone());
                tracker.spawn("s3 connection", async move {
                    let http = Builder::new();
                    tokio::select! {
                        () = hard.cancelled() => {}
                        _ = http.serve_connection(TokioIo::new(client), service) => {}
                    }
                });
            }
        });
        self.running = Some(shutdown);
    }

    /// Breaks every connection off and answers no more.
    pub async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.force();
            running.finished().await;
        }
    }

    /// Answers again, on the same port, with what was stored.
    pub fn start_again(&mut self) {
        let listener = TcpListener::bind(self.address).expect("its port is free again");
        self.serve(listener);
    }

    /// What a store under a prefix of the bucket is configured with.
    pub fn documents(&self, prefix: &str) -> Documents {
        Documents {
            store: format!("s3://{BUCKET}/{prefix}"),
            s3_endpoint: format!("http://{}", self.address),
            s3_region: String::new(),
            s3_access_key_id: KEY.to_owned(),
            s3_secret_access_key: SECRET.into(),
            s3_allow_http: true,
        }
    }

    pub fn configure(&self, config: &mut Config) {
        config.documents = self.documents("council");
    }

    /// Where the server keeps an object.
    pub fn file(&self, prefix: &str, key: &str) -> PathBuf {
        self.folder.path().join(BUCKET).join(prefix).join(key)
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.force();
        }
    }
}
