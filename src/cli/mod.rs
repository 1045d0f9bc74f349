//! The command line: the only part that prints.
//!
//! What was asked for goes to stdout, everything else to stderr. Exit codes: 0 done, 1 failed, 2 wrong arguments or configuration, 3 the agenda was refused,
//! 4 something was not replayed.

mod arguments;
mod check;
mod check_config;
mod doctor;
mod exit;
mod generate;
mod keys;
mod migrate;
mod output;
mod progress;
mod refusal;
mod replay;
mod serve;
mod try_response; // goes with v1

use arguments::{Arguments, Command, Keys};
use clap::Parser as _;
use exit::Exit;
use std::process::ExitCode;

/// Runs the program.
#[must_use]
pub fn run() -> ExitCode {
    let arguments = Arguments::parse();
    let exit = match &arguments.command {
        None | Some(Command::Serve) => serve::run(&arguments.settings),
        Some(Command::Generate(generate)) => generate::run(&arguments.settings, generate),
        Some(Command::Check(check)) => check::run(&arguments.settings, check),
        Some(Command::Migrate) => migrate::run(&arguments.settings),
        Some(Command::CheckConfig) => check_config::run(&arguments.settings),
        Some(Command::Doctor(doctor)) => doctor::run(&arguments.settings, doctor),
        Some(Command::Replay(replay)) => replay::run(&arguments.settings, replay),
        Some(Command::TryResponse) => try_response::run(), // goes with v1
        Some(Command::Keys(Keys::New(key))) => keys::new(key),
    };
    exit.into()
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
