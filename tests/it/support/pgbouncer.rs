//! A real PgBouncer in transaction mode in front of PostgreSQL.

use super::postgres::server_user;
use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// A running pooler; ends with the test.
pub struct PgBouncer {
    pub address: SocketAddr,
    child: Child,
    folder: TempDir,
}

impl PgBouncer {
    /// Stands before the server of `url`, with few sessions there, so that transactions of one client do get different ones.
    pub async fn start(url: &str) -> Self {
        let place = url.rsplit_once('@').expect("user@host").1;
        let server: SocketAddr = place.split('/').next().expect("a host").parse().expect("an address");
        let folder = TempDir::new().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("our own folder");
        let here = folder.path().display();
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        fs::write(folder.path().join("users"), "\"postgres\" \"\"\n").expect("a list of users");
        let configuration = format!(
            "[databases]\n* = host={} port={}\n[pgbouncer]\nlisten_addr = {}\nlisten_port = {}\nunix_socket_dir =\n\
             auth_type = trust\nauth_file = {here}/users\npool_mode = transaction\ndefault_pool_size = 6\nmax_client_conn = 200\n",
            server.ip(),
            server.port(),
            address.ip(),
            address.port()
        );
        let file = folder.path().join("pgbouncer.ini");
        fs::write(&file, configuration).expect("a configuration");
        let log = fs::File::create(folder.path().join("log")).expect("a log");
        let mut command = Command::new("pgbouncer");
        command.arg(&file).current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // It refuses to run as root, as PostgreSQL does.
        if let Some((user, group)) = server_user() {
            command.uid(user).gid(group);
        }
        let child = command.spawn().expect("pgbouncer is installed (scripts/test.sh --install)");
        super::eventually(Duration::from_secs(20), "pgbouncer listens", async || TcpStream::connect(address).is_ok()).await;
        Self { address, child, folder }
    }

    /// The same database, by way of the pooler.
    pub fn url(&self, url: &str) -> String {
        let (user, place) = url.rsplit_once('@').expect("user@host");
        let (_, database) = place.split_once('/').expect("a database");
        format!("{user}@{}/{database}", self.address)
    }

    /// What it has said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
