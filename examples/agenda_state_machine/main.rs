//! The other side of the bridge: the agenda state machine, which calls v1 today and moves to the task API.
//!
//! It keeps agendas and the states of their questions in one file. When all questions of an agenda are `REPORT_SIGNED` or `PROTECTED` it has the protocol
//! generated, and on success moves the questions from `REPORT_SIGNED` to `PROTECTED`.
//!
//! ```text
//! cargo run --example agenda_state_machine -- --state state.json serve --listen 127.0.0.1:9000      # our agendas, for the service's agenda.source
//! cargo run --example agenda_state_machine -- --state state.json add agenda.json
//! cargo run --example agenda_state_machine -- --state state.json sign AGENDA QUESTION               # its report is signed
//! cargo run --example agenda_state_machine -- --state state.json listen --listen 127.0.0.1:9001 --secret whsec_…                # webhooks
//! cargo run --example agenda_state_machine -- --state state.json run --service http://127.0.0.1:8080 --mode v1
//! ```
//!
//! `v1.rs` is stage M1 (the call that waits), `v2.rs` is stage M2 (submit, remember the task, poll), `told.rs` is M2 with events (submit, be told; poll rarely). Killed at any moment, the next `run` goes on where this one was.
//!
//! Exit codes: 0 every agenda that was ready is protected; 1 a protocol could not be had; 2 wrong usage; 3 v1 is closed (410): move to `--mode v2`;
//! 4 the state file or the network of this machine is at fault.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people to look at")]
#![allow(clippy::disallowed_methods, reason = "a client of its own: it waits on the machine's clock")]

mod documents;
mod listen;
mod machine;
mod service;
mod state;
mod told;
mod v1;
mod v2;

use clap::{Parser, Subcommand};
use listen::Listen;
use machine::{Machine, Run};
use state::Store;
use std::{error::Error, net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

#[derive(Debug, Parser)]
struct Arguments {
    /// The file that keeps everything this program knows.
    #[arg(long)]
    state: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Takes an agenda from a file in the bridge's own format.
    Add { file: PathBuf },
    /// The report of a question has been signed.
    Sign { agenda: String, question: String },
    /// Prints the state file.
    Show,
    /// Answers `GET /agendas/{agendaId}`, so that the bridge can collect what it needs.
    Serve {
        #[arg(long, default_value = "127.0.0.1:9000")]
        listen: SocketAddr,
        /// Seconds that every answer takes: meetings are long, and so are their agendas.
        #[arg(long, default_value = "0", value_parser = seconds)]
        delay: Duration,
    },
    /// Takes the bridge's events into the state file, for `run --mode events`.
    Listen(Listen),
    /// Has the protocol of every agenda that is ready generated.
    Run(Run),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments).await {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("agenda-state-machine: {error}");
            ExitCode::from(4)
        }
    }
}

async fn run(arguments: Arguments) -> Result<u8, Box<dyn Error>> {
    let store = Store::at(arguments.state);
    match arguments.command {
        Command::Add { file } => {
            let document = serde_json::from_slice(&std::fs::read(file)?)?;
            store.change(|state| state.add(document))??;
            Ok(0)
        }
        Command::Sign { agenda, question } => {
            store.change(|state| state.sign(&agenda, &question))??;
            Ok(0)
        }
        Command::Show => {
            println!("{}", serde_json::to_string_pretty(&store.read()?)?);
            Ok(0)
        }
        Command::Serve { listen, delay } => documents::serve(store, listen, delay).await.map(|()| 0).map_err(Into::into),
        Command::Listen(how) => listen::listen(store, how).await.map(|()| 0),
        Command::Run(how) => Machine::new(store, how).run().await,
    }
}

/// Seconds on the command line, such as `60` or `0.5`.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}
