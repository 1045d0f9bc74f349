//! The real program as a process of its own, for what only a process can show: signals, `kill -9`, logs, exit codes.

use super::{TestDatabase, server::client};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// Generous, because all tests of a run share two cores.
const START: Duration = Duration::from_mins(1);

/// A running program; killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Such as `http://127.0.0.1:41234`.
    pub url: String,
    pub client: reqwest::Client,
    log: Arc<Mutex<Vec<String>>>,
}

/// The program with its surroundings fixed: an empty environment but for `environment`, started in `folder`.
pub fn command(arguments: &[&str], environment: &[(&str, &str)], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_protocol-bridge"));
    command.args(arguments).env_clear().envs(environment.iter().copied()).current_dir(folder).stdin(Stdio::null());
    command
}

/// Runs the program to its end.
pub fn run(arguments: &[&str], environment: &[(&str, &str)], folder: &Path) -> Output {
    command(arguments, environment, folder).output().expect("the program can be started")
}

impl Process {
    /// Starts `serve` on a free port and waits until it is ready.
    pub async fn start(arguments: &[&str], environment: &[(&str, &str)], folder: &Path) -> Self {
        let mut process = Self::launch(arguments, environment, folder);
        let start = Instant::now();
        loop {
            if process.url.is_empty()
                && let Some(address) = process.address()
            {
                process.url = format!("http://{address}");
            }
            if !process.url.is_empty()
                && let Ok(answer) = process.client.get(format!("{}/readyz", process.url)).send().await
                && answer.status().is_success()
            {
                return process;
            }
            let ended = process.child.try_wait().expect("our child");
            assert!(ended.is_none(), "the program ended with {ended:?}:\n{}", process.log());
            assert!(start.elapsed() < START, "not ready after {START:?}:\n{}", process.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Starts `serve` on `database`, with documents beside it and the demo kind on, and waits until it is ready.
    pub async fn serve(database: &TestDatabase, environment: &[(&str, &str)]) -> Self {
        let data_dir = database.data_dir.path().join("data").display().to_string();
        let fixed = [
            ("PROTOCOL_BRIDGE__DATA_DIR", data_dir.as_str()),
            ("PROTOCOL_BRIDGE__DATABASE__URL", &database.url),
            ("PROTOCOL_BRIDGE__ENGINE__DEMO", "true"),
        ];
        Self::start(&[], &[&fixed, environment].concat(), database.data_dir.path()).await
    }

    /// The JSON at `path`, whatever its status.
    pub async fn json(&self, path: &str) -> serde_json::Value {
        super::server::json(self.client.get(format!("{}{path}", self.url)).send().await.expect("an answer")).await
    }

    /// Posts JSON; the answer's status and body.
    pub async fn post(&self, path: &str, body: &serde_json::Value) -> (u16, serde_json::Value) {
        let answer = self.client.post(format!("{}{path}", self.url)).json(body).send().await.expect("an answer");
        (answer.status().as_u16(), super::server::json(answer).await)
    }

    /// Starts `serve` on a free port and waits for nothing.
    pub fn launch(arguments: &[&str], environment: &[(&str, &str)], folder: &Path) -> Self {
        let mut command = command(arguments, &[("PROTOCOL_BRIDGE__HTTP__LISTEN", "127.0.0.1:0")], folder);
        command.envs(environment.iter().copied()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program can be started");
        let log = Arc::<Mutex<Vec<String>>>::default();
        let (lines, written) = (BufReader::new(child.stderr.take().expect("it is piped")).lines(), Arc::clone(&log));
        thread::spawn(move || lines.map_while(Result::ok).for_each(|line| written.lock().expect("no reader panics").push(line)));
        Self { child, url: String::new(), client: client(), log }
    }

    /// The address in the line that says so.
    fn address(&self) -> Option<SocketAddr> {
        self.events("listening").first().and_then(|line| line["address"].as_str()?.parse().ok())
    }

    /// The operating system's number for it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Everything logged until now.
    pub fn log(&self) -> String {
        self.log.lock().expect("no writer panics").join("\n")
    }

    /// The JSON lines with this message.
    pub fn events(&self, message: &str) -> Vec<serde_json::Value> {
        let log = self.log.lock().expect("no writer panics");
        log.iter()
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(|line: &serde_json::Value| line["message"] == message)
            .collect()
    }

    /// As a power cut would.
    pub fn kill(&mut self) {
        self.child.kill().expect("our child");
        self.child.wait().expect("our child");
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// It stays there and does nothing, as on a machine that is paused.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let id = Pid::from_raw(i32::try_from(self.child.id()).expect("process ids are small")).expect("and not zero");
        kill_process(id, signal).expect("our child");
    }

    /// Waits for its end.
    pub async fn ended(&mut self, limit: Duration) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("our child") {
                return status;
            }
            assert!(start.elapsed() < limit, "still running after {limit:?}:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
