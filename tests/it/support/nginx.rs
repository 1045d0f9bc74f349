//! A real nginx in front of the service.

use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// A running proxy; ends with the test.
pub struct Nginx {
    pub address: SocketAddr,
    child: Child,
    _folder: TempDir,
}

impl Nginx {
    /// Passes everything to `upstream` and gives up when that says nothing for `read_timeout`, as proxies do.
    pub async fn start(upstream: SocketAddr, read_timeout: &str) -> Self {
        Self::configured(upstream, &format!("proxy_read_timeout {read_timeout};")).await
    }

    /// The same with nginx's own default, which is 60 s.
    pub async fn as_it_comes(upstream: SocketAddr) -> Self {
        Self::configured(upstream, "").await
    }

    async fn configured(upstream: SocketAddr, directives: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let here = folder.path().display();
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let configuration = format!(
            "daemon off; master_process off; worker_processes 1; pid {here}/pid; error_log {here}/error.log;
             events {{ worker_connections 256; }}
             http {{
                 access_log off;
                 client_body_temp_path {here}/body; proxy_temp_path {here}/proxy;
                 fastcgi_temp_path {here}/fastcgi; uwsgi_temp_path {here}/uwsgi; scgi_temp_path {here}/scgi;
                 server {{
                     listen {address};
                     location / {{ proxy_pass http://{upstream}; {directives} }}
                 }}
             }}"
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, configuration).expect("a configuration");
        let child = Command::new("nginx")
            .arg("-p")
            .arg(folder.path())
            .arg("-e")
            .arg(folder.path().join("error.log"))
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx is installed (scripts/test.sh --install)");
        super::eventually(Duration::from_secs(20), "nginx listens", async || TcpStream::connect(address).is_ok()).await;
        Self { address, child, _folder: folder }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
