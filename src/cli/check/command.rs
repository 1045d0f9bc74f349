//! Runs COLLECT and CHECK on what is named: an agenda of any kind that `generate` takes, standard input, or every agenda of a folder.

use super::report::{Outcome, Report};
use crate::{
    base::{
        chain::chain,
        clock::Clock,
        config::{Config, Telemetry},
        telemetry, tls,
    },
    cli::{
        Exit,
        arguments::{Check, Settings},
        output::{note, say},
        refusal::{exit_of, explain},
    },
    domain::failure::{Failure, FailureCode},
    generator::{
        once::{GenerateInput, check_once, map_once},
        source::agenda_source::MAX_AGENDA_BYTES,
    },
};
use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
};
use tokio_util::sync::CancellationToken;

/// How standard input is called.
const STDIN: &str = "-";

pub(crate) fn run(settings: &Settings, arguments: &Check) -> Exit {
    let mut config = match settings.load() {
        Ok(loaded) => loaded.config,
        Err(exit) => return exit,
    };
    if arguments.language.is_some() {
        config.generator.language = arguments.language;
    }
    let log = if config.telemetry.log == "info" { "warn".to_owned() } else { config.telemetry.log.clone() };
    telemetry::install(&Telemetry { log, format: config.telemetry.format, otlp_endpoint: None });
    tls::install();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            note(&format!("the runtime cannot be started: {error}"));
            return Exit::Failed;
        }
    };
    if arguments.show_mapped {
        return match runtime.block_on(Box::pin(map_once(input(&arguments.agenda, &config)))) {
            Ok(mapped) => {
                say(&format!("{mapped:#}"));
                Exit::Done
            }
            Err(failure) => {
                explain(&failure);
                exit_of(failure.code)
            }
        };
    }
    let report = runtime.block_on(look(&arguments.agenda, &config));
    let report = match report {
        Ok(report) => report,
        Err(reason) => {
            note(&reason);
            return Exit::Failed;
        }
    };
    report.print(arguments.json);
    report.exit()
}

async fn look(named: &str, config: &Config) -> Result<Report, String> {
    if named == STDIN {
        let folder = tempfile::tempdir().map_err(|error| format!("there is no temporary folder: {}", chain(&error)))?;
        let file = folder.path().join("agenda.json");
        std::fs::write(&file, read(io::stdin())?).map_err(|error| format!("standard input cannot be kept: {}", chain(&error)))?;
        return Ok(Report::one(outcome(STDIN, &file.to_string_lossy(), config).await));
    }
    if !Path::new(named).is_dir() {
        return Ok(Report::one(outcome(named, named, config).await));
    }
    let mut outcomes = Vec::new();
    for file in agendas_in(Path::new(named)).map_err(|error| format!("the folder {named} cannot be read: {}", chain(&error)))? {
        let name = file.to_string_lossy();
        outcomes.push(outcome(&name, &name, config).await);
    }
    Ok(Report::many(outcomes))
}

async fn outcome(shown: &str, agenda: &str, config: &Config) -> Outcome {
    Outcome { named: shown.to_owned(), result: Box::pin(check_once(input(agenda, config))).await }
}

fn input(agenda: &str, config: &Config) -> GenerateInput {
    GenerateInput {
        agenda: agenda.to_owned(),
        formats: Vec::new(),
        config: config.clone(),
        clock: Clock::system(),
        cancelled: CancellationToken::new(),
    }
}

/// All of it, unless it is longer than any agenda.
fn read(input: impl io::Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = input.take(MAX_AGENDA_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("standard input cannot be read: {}", chain(&error)))?;
    if bytes.len() as u64 > MAX_AGENDA_BYTES {
        let failure = Failure::new(FailureCode::AgendaTooLarge, format!("No agenda has more than {MAX_AGENDA_BYTES} bytes."));
        return Err(failure.message);
    }
    Ok(bytes)
}

/// The JSON files of a folder, in order.
fn agendas_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_file() && !is_hidden && path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
