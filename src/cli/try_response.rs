//! Tries `legacy.response` on a sample in a process of its own, before the service runs it in its own: a program that recurses without end, or asks for endless
//! memory, brings its process down, and this way the operator is told which setting it was.
//!
//! The child is this program with a hidden command; it gets the program as text on its standard input.

use super::{Exit, output::note};
use crate::{
    app,
    base::{chain::chain, clock::Clock, config::Config, limits},
};
use std::{
    env,
    io::{self, Read as _, Write as _},
    process::{Command, Stdio},
};

pub(super) const NAME: &str = "try-response";
/// What the trial may take, the program's own code and the interpreter's reserved stack included.
const MEMORY_BYTES: u64 = 1024 * 1024 * 1024;

/// Says what is wrong with the configured program.
///
/// # Errors
/// When it cannot be used.
pub(super) fn outside(config: &Config) -> Result<(), String> {
    let Some(program) = &config.legacy.response else { return Ok(()) };
    let tried = in_a_child(program).map_err(|error| format!("legacy.response cannot be tried: {error}"))?;
    match tried {
        (Some(0), _) => Ok(()),
        (Some(_), said) => Err(said.trim().to_owned()),
        (None, _) => Err(format!(
            "legacy.response fails on a sample protocol: it brings its process down; it recurses without end, or needs over {} MiB of memory",
            MEMORY_BYTES / 1024 / 1024
        )),
    }
}

fn in_a_child(program: &str) -> io::Result<(Option<i32>, String)> {
    let mut command = Command::new(env::current_exe()?);
    let mut child = command.arg(NAME).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    input.write_all(program.as_bytes())?;
    drop(input);
    // It ends by itself: a run may take 2 s.
    let output = child.wait_with_output()?;
    Ok((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// The child.
pub(super) fn run() -> Exit {
    limits::bound_memory(MEMORY_BYTES);
    match tried() {
        Ok(()) => Exit::Done,
        Err(error) => {
            note(&error);
            Exit::Failed
        }
    }
}

fn tried() -> Result<(), String> {
    let mut config = Config::default();
    let mut program = String::new();
    io::stdin().read_to_string(&mut program).map_err(|error| chain(&error))?;
    config.legacy.response = Some(program);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| chain(&error))?;
    let outcome = runtime.block_on(app::present(&config, &Clock::system()));
    // A run that does not end keeps its thread.
    runtime.shutdown_background();
    outcome.map(drop).map_err(|error| chain(&error))
}
