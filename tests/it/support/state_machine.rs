//! The example `agenda_state_machine` as a process: the caller, as real as it gets.

use super::eventually;
use serde_json::Value;
use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Output, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// The state machine with a state file of its own, and its agenda service.
pub struct StateMachine {
    folder: TempDir,
    documents: Child,
    /// For `agenda.source`.
    pub source: String,
}

impl StateMachine {
    /// Its agenda service takes `delay` for every answer.
    pub fn start(delay: Duration) -> Self {
        let folder = TempDir::new().expect("a folder");
        let mut command = command(&folder, &["serve", "--listen", "127.0.0.1:0", "--delay", &delay.as_secs_f64().to_string()]);
        let mut documents = command.stdout(Stdio::piped()).spawn().expect("the example can be started");
        let mut source = String::new();
        BufReader::new(documents.stdout.as_mut().expect("it is piped")).read_line(&mut source).expect("it says where it listens");
        Self { folder, documents, source: source.trim().to_owned() }
    }

    pub fn add(&self, agenda: &Value) {
        let file = self.folder.path().join("agenda.json");
        fs::write(&file, agenda.to_string()).expect("a file");
        self.succeeds(&["add", &file.display().to_string()]);
    }

    pub fn sign(&self, agenda: &str, question: &str) {
        self.succeeds(&["sign", agenda, question]);
    }

    /// Runs it against `service` to its end; the exit code and what it said.
    pub async fn run(&self, service: &str, arguments: &[&str]) -> (i32, String) {
        let mut command = self.run_command(service, arguments);
        let output = tokio::task::spawn_blocking(move || command.output()).await.expect("it ran").expect("the example can be started");
        (output.status.code().expect("not killed"), told(&output))
    }

    /// Starts it and waits for nothing.
    pub fn launch(&self, service: &str, arguments: &[&str]) -> Child {
        self.run_command(service, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the example can be started")
    }

    /// Starts its listener for events.
    pub fn listen(&self, arguments: &[&str]) -> Listener {
        let mut command = command(&self.folder, &[&["listen"], arguments].concat());
        let mut program = command.stdout(Stdio::piped()).spawn().expect("the example can be started");
        let said = BufReader::new(program.stdout.take().expect("it is piped"));
        Listener { program, said }
    }

    fn run_command(&self, service: &str, arguments: &[&str]) -> Command {
        command(&self.folder, &[&["run", "--service", service, "--pause", "0.1"], arguments].concat())
    }

    /// What the state file says of an agenda.
    pub fn agenda(&self, id: &str) -> Value {
        let state: Value = serde_json::from_slice(&fs::read(self.state_file()).expect("the state file")).expect("whole JSON");
        state["agendas"][id].clone()
    }

    /// Waits until the state file says so of an agenda's generation.
    pub async fn reaches(&self, id: &str, state: &str) -> Value {
        eventually(Duration::from_secs(30), &format!("{id} is {state}"), async || self.agenda(id)["generation"]["state"] == state).await;
        self.agenda(id)["generation"].clone()
    }

    /// The questions' statuses.
    pub fn statuses(&self, id: &str) -> Vec<String> {
        let agenda = self.agenda(id);
        let questions = agenda["document"]["questions"].as_array().expect("questions");
        questions.iter().map(|question| question["status"].as_str().expect("a status").to_owned()).collect()
    }

    /// Changes an agenda's generation behind its back, as a crash at another moment would have left it.
    pub fn rewrite(&self, id: &str, generation: Value) {
        let mut state: Value = serde_json::from_slice(&fs::read(self.state_file()).expect("the state file")).expect("whole JSON");
        state["agendas"][id]["generation"] = generation;
        fs::write(self.state_file(), state.to_string()).expect("a file");
    }

    fn state_file(&self) -> PathBuf {
        self.folder.path().join("state.json")
    }

    fn succeeds(&self, arguments: &[&str]) {
        let output = command(&self.folder, arguments).output().expect("the example can be started");
        assert!(output.status.success(), "{}", told(&output));
    }
}

/// A running listener; killed with the test.
pub struct Listener {
    program: Child,
    said: BufReader<ChildStdout>,
}

impl Listener {
    /// The next line that it prints.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("it says something");
        line.trim().to_owned()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

impl Drop for StateMachine {
    fn drop(&mut self) {
        let _ = self.documents.kill();
        let _ = self.documents.wait();
    }
}

fn command(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.arg("--state").arg(folder.path().join("state.json")).args(arguments).env_clear().stdin(Stdio::null());
    command
}

/// Beside the tests' own folder; `cargo test` and `cargo nextest run` build examples before they run tests.
fn program() -> PathBuf {
    let tests = std::env::current_exe().expect("our own path");
    let folder = tests.parent().and_then(|deps| deps.parent()).expect("target/PROFILE/deps");
    let program = folder.join("examples").join("agenda_state_machine");
    assert!(program.exists(), "build it first: cargo build --example agenda_state_machine");
    program
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
