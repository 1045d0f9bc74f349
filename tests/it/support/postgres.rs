//! One real PostgreSQL cluster per test run, shared by all its processes (nextest runs each test in a process of its own).
//!
//! The first process that needs it takes a lock in a folder named after the runner, makes the cluster and leaves it running; the others find it. A watchdog
//! outlives them all and clears everything away when the runner is gone, however it went.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

/// The shared cluster's URL, without a database's name.
pub fn shared() -> &'static str {
    static URL: OnceLock<String> = OnceLock::new();
    URL.get_or_init(|| {
        let runner = std::os::unix::process::parent_id();
        let folder = std::env::temp_dir().join(format!("protocol-bridge-tests-{runner}-{}", start_of(runner)));
        fs::create_dir_all(&folder).expect("the folder of the run");
        let mut lock = File::options().create(true).truncate(false).read(true).write(true).open(folder.join("lock")).expect("the lock");
        lock.lock().expect("the lock of the run");
        let mut port = String::new();
        lock.read_to_string(&mut port).expect("the port noted in the lock");
        let port = match port.parse() {
            Ok(port) if TcpStream::connect(("127.0.0.1", port)).is_ok() => port,
            _ => {
                let cluster = Cluster::start_in(folder.join("cluster"), Survives::Nothing);
                watch(runner, &cluster, &folder);
                let port = cluster.port;
                std::mem::forget(cluster); // the watchdog's from now on
                lock.set_len(0).expect("the lock can be written");
                std::io::Seek::rewind(&mut lock).expect("the lock can be written");
                lock.write_all(port.to_string().as_bytes()).expect("the lock can be written");
                port
            }
        };
        format!("postgres://postgres@127.0.0.1:{port}")
    })
}

/// What a cluster's commits survive. Each costs time, so a cluster promises no more than its tests ask about.
#[derive(Debug, Clone, Copy)]
enum Survives {
    /// Nothing: for tests that leave the server alone.
    Nothing,
    /// The server's own end, however hard.
    Crash,
    PowerCut,
}

/// A PostgreSQL cluster; stopped and removed when dropped.
#[derive(Debug)]
pub struct Cluster {
    folder: PathBuf,
    bin: PathBuf,
    survives: Survives,
    pub port: u16,
}

impl Cluster {
    /// A cluster of the test's own, for tests that break it.
    pub fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("protocol-bridge-cluster-").tempdir().expect("a folder").keep();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("our own folder");
        let cluster = Self::start_in(folder.join("cluster"), Survives::Crash);
        watch(std::process::id(), &cluster, &folder);
        cluster
    }

    /// One that survives a power cut, for measurements.
    #[allow(dead_code, reason = "for the benches, which share this kit")]
    pub fn durable() -> Self {
        let folder = tempfile::Builder::new().prefix("protocol-bridge-cluster-").tempdir().expect("a folder").keep();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("our own folder");
        let cluster = Self::start_in(folder.join("cluster"), Survives::PowerCut);
        watch(std::process::id(), &cluster, &folder);
        cluster
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}", self.port)
    }

    fn start_in(folder: PathBuf, survives: Survives) -> Self {
        let bin = installed();
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder for the cluster");
        if let Some((user, group)) = server_user() {
            std::os::unix::fs::chown(&folder, Some(user), Some(group)).expect("root may give folders away");
        }
        let mut cluster = Self { folder, bin, survives, port: 0 };
        let data = cluster.data();
        cluster.run("initdb", &["-D", &data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]);
        // A port found free may be taken by the time the server asks for it.
        for _ in 0..5 {
            cluster.port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port();
            if cluster.try_start_server() {
                return cluster;
            }
        }
        panic!("PostgreSQL does not start: {}", fs::read_to_string(cluster.folder.join("log")).unwrap_or_default());
    }

    /// From now on it talks to those only who come by TLS.
    pub fn require_tls(&self, certificate: &Path, key: &Path) {
        let data = PathBuf::from(self.data());
        for (from, name) in [(certificate, "server.crt"), (key, "server.key")] {
            let to = data.join(name);
            fs::copy(from, &to).expect("a copy in the cluster's folder");
            fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).expect("our own file");
            if let Some((user, group)) = server_user() {
                std::os::unix::fs::chown(&to, Some(user), Some(group)).expect("root may give files away");
            }
        }
        let mut settings = File::options().append(true).open(data.join("postgresql.conf")).expect("the cluster's settings");
        settings.write_all(b"ssl = on\n").expect("the settings can be written");
        fs::write(data.join("pg_hba.conf"), "hostssl all all 127.0.0.1/32 trust\n").expect("the cluster's rules");
        self.stop_server();
        self.start_server();
    }

    /// Starts the server again on the same port.
    pub fn start_server(&self) {
        assert!(self.try_start_server(), "PostgreSQL does not start again");
    }

    /// Stops the server as a power cut would, as far as clients can tell.
    pub fn stop_server(&self) {
        let _ = self.command("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"]).status();
    }

    fn try_start_server(&self) -> bool {
        let kind = match self.survives {
            // Connections for all tests of a run at once.
            Survives::Nothing => {
                "-c fsync=off -c full_page_writes=off -c synchronous_commit=off -c max_connections=400 -c shared_buffers=48MB -c max_wal_size=256MB"
            }
            // The operating system lives on and has what was written; but with synchronous_commit=off the last commits would be in the dead server's memory only.
            Survives::Crash => "-c fsync=off -c full_page_writes=off -c shared_buffers=48MB -c max_wal_size=256MB",
            Survives::PowerCut => "-c shared_buffers=256MB -c max_wal_size=1GB",
        };
        let options = format!("-p {} -k {} -c listen_addresses=127.0.0.1 {kind}", self.port, self.folder.display());
        let log = self.folder.join("log");
        let log = log.to_str().expect("a UTF-8 path");
        self.command("pg_ctl", &["-D", &self.data(), "-l", log, "-o", &options, "-w", "-t", "60", "start"])
            .status()
            .is_ok_and(|status| status.success())
    }

    fn data(&self) -> String {
        self.folder.join("data").to_str().expect("a UTF-8 path").to_owned()
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let output = self.command(program, arguments).stderr(Stdio::piped()).spawn().and_then(std::process::Child::wait_with_output);
        let output = output.unwrap_or_else(|error| panic!("{program} cannot be run: {error}"));
        assert!(output.status.success(), "{program} failed: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// PostgreSQL refuses to run as root, so for root it is run as the user `postgres`.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some((user, group)) = server_user() {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop_server();
        let _ = fs::remove_dir_all(self.folder.parent().unwrap_or(&self.folder));
    }
}

/// Leaves a process behind that waits for `runner` to be gone, then stops the cluster and removes `folder`.
fn watch(runner: u32, cluster: &Cluster, folder: &Path) {
    let script = r#"tail --pid="$1" -f /dev/null; kill -QUIT "$(head -n 1 "$2/data/postmaster.pid")" 2>/dev/null; sleep 0.5; rm -rf "$3""#;
    Command::new("setsid")
        .args(["--fork", "sh", "-c", script, "watchdog", &runner.to_string()])
        .args([&cluster.folder, folder])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("setsid and sh are there");
}

/// Where the programs of the newest PostgreSQL are.
pub fn installed() -> PathBuf {
    let version = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let folders = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|entry| entry.path());
    let newest = folders.filter(|path| path.join("bin/initdb").exists()).max_by_key(version);
    newest.expect("tests need PostgreSQL's programs in /usr/lib/postgresql/*/bin (Debian: apt-get install postgresql)").join("bin")
}

/// User and group to run the server as when we are root.
pub fn server_user() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("a list of users");
    let fields: Vec<_> = users.lines().find(|line| line.starts_with("postgres:")).expect("a user named postgres").split(':').collect();
    Some((fields[2].parse().expect("a number"), fields[3].parse().expect("a number")))
}

/// When a process started, in ticks since the machine did: a process id alone is used again.
fn start_of(process: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in brackets, may hold spaces; the start is the 22nd field.
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)).unwrap_or("0").to_owned()
}
