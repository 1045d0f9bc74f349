//! The arguments, and the configuration that they lead to.

use super::{Exit, exit, output};
use crate::{
    base::{
        build::{COMMIT, VERSION},
        config::{self, Loaded, Role, Sources},
    },
    domain::{agenda::Language, failure::FailureCode, ids::AgendaId, task::Phase, time::Timestamp},
};
use clap::{Args, Parser, Subcommand};
use std::{env, path::PathBuf, sync::LazyLock};
use uuid::Uuid;

static VERSION_LINE: LazyLock<String> = LazyLock::new(|| format!("{VERSION} ({COMMIT})"));

/// Generates the protocols of meetings from their agendas, as durable background tasks behind HTTP.
#[derive(Debug, Parser)]
#[command(name = "protocol-bridge", version = VERSION_LINE.as_str(), after_help = exit::HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub settings: Settings,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve HTTP until SIGTERM or SIGINT (the default).
    Serve,
    /// Make one protocol, without a server.
    Generate(Generate),
    /// Say everything that is wrong with an agenda, or with every agenda of a folder; makes nothing.
    Check(Check),
    /// Bring the database's schema up to date.
    Migrate,
    /// Say what is wrong with the configuration, or "ok".
    CheckConfig,
    /// Look at everything the service needs, and say what is wrong and what to do; changes nothing, whether or not a server runs.
    Doctor(Doctor),
    /// Try legacy.response, read from standard input; how the other commands try it first.
    #[command(hide = true, name = super::try_response::NAME)] // goes with v1
    TryResponse, // goes with v1
    /// Put failed tasks back into the queue; works on the database, whether or not a server runs.
    Replay(Replay),
    /// Callers' keys.
    #[command(subcommand)]
    Keys(Keys),
}

#[derive(Debug, Subcommand)]
pub(super) enum Keys {
    /// Make a key for a caller: shown once, with what to write into the configuration.
    New(NewKey),
}

#[derive(Debug, Args)]
pub(super) struct NewKey {
    /// What the caller is called in logs, metrics and the ledger.
    pub name: String,
    /// What it may do: legacy (v1 and its tasks), submit, read, admin. May be given several times.
    #[arg(long, required = true, value_name = "ROLE", value_parser = role)]
    pub role: Vec<Role>,
}

fn role(text: &str) -> Result<Role, String> {
    let known = Role::ALL.map(Role::as_str).join(", ");
    Role::ALL.into_iter().find(|role| role.as_str() == text).ok_or_else(|| format!("there is no such role; there are {known}"))
}

/// Where the configuration comes from, and what overrides it.
#[derive(Debug, Args)]
pub(super) struct Settings {
    /// Configuration file (TOML); config.default.toml in the source lists all keys.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address and port to listen on [default: 127.0.0.1:8080].
    #[arg(long, global = true, value_name = "ADDRESS")]
    listen: Option<String>,
    /// postgres://… or sqlite:PATH [default: a SQLite file in the data folder].
    #[arg(long, global = true, value_name = "URL")]
    database_url: Option<String>,
    /// Folder for the database, documents and the lock [default: ./data].
    #[arg(long, global = true, value_name = "FOLDER")]
    data_dir: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Generate {
    /// The agenda: a file, a URL, or the id of a bundled sample or of an agenda of the configured source.
    pub agenda: String,
    /// Where to write; the extension (pdf, docx, html, json) chooses the format. May be given several times [default: AGENDA.pdf].
    #[arg(short, long, value_name = "FILE")]
    pub output: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Check {
    /// The agenda: a file, a URL, the id of a bundled sample or of an agenda of the configured source, or - for standard input; or a folder with one JSON file
    /// per agenda.
    pub agenda: String,
    /// Print JSON: what GET /api/agendas/{id}/check answers, for a folder {"items": […]}.
    #[arg(long)]
    pub json: bool,
    /// Print what an agenda of a foreign format becomes in ours, and check nothing: faults point into this.
    #[arg(long, conflicts_with = "json")]
    pub show_mapped: bool,
    /// Tell it in this language: ru, en or de [default: the agenda's].
    #[arg(long, value_name = "LANGUAGE", value_parser = language)]
    pub language: Option<Language>,
}

fn language(text: &str) -> Result<Language, String> {
    text.parse().map_err(|_| "there is no such language; there are ru, en, de".to_owned())
}

#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Read every document, too, and name those that are missing or altered.
    #[arg(long)]
    pub documents: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true).args(["id", "reason", "agenda", "from", "to", "all"]))]
pub(super) struct Replay {
    /// A dead letter, or a task that failed.
    #[arg(value_name = "ID", conflicts_with_all = ["reason", "agenda", "from", "to", "all", "dry_run"])]
    pub id: Option<Uuid>,
    /// Only those with this reason, such as agenda-source-unavailable.
    #[arg(long, value_name = "CODE", value_parser = reason)]
    pub reason: Option<FailureCode>,
    /// Only those of this agenda.
    #[arg(long, value_name = "AGENDA")]
    pub agenda: Option<AgendaId>,
    /// Only those that failed at this time or later, such as 2026-11-30T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub from: Option<Timestamp>,
    /// Only those that failed before this time.
    #[arg(long, value_name = "TIME")]
    pub to: Option<Timestamp>,
    /// Everything that is open.
    #[arg(long, conflicts_with_all = ["reason", "agenda", "from", "to"])]
    pub all: bool,
    /// Only count.
    #[arg(long)]
    pub dry_run: bool,
    /// Forget what this phase and the later ones did: COLLECT, CHECK, MERGE or PUBLISH.
    #[arg(long, value_name = "PHASE")]
    pub from_phase: Option<Phase>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

fn reason(text: &str) -> Result<FailureCode, String> {
    FailureCode::ALL.into_iter().find(|code| code.as_str() == text).ok_or_else(|| {
        let known: Vec<&str> = FailureCode::ALL.iter().map(|code| code.as_str()).collect();
        format!("there is no such reason; there are {}", known.join(", "))
    })
}

impl Settings {
    /// The configuration, or its problems printed.
    pub(super) fn load(&self) -> Result<Loaded, Exit> {
        self.read().map_err(|error| {
            output::refuse_configuration(&error);
            Exit::Usage
        })
    }

    /// The configuration, or its problems.
    pub(super) fn read(&self) -> Result<Loaded, config::Error> {
        let mut flags = Vec::new();
        let mut flag = |path: &[&'static str], value: &Option<String>| {
            flags.extend(value.iter().map(|value| (path.to_vec(), value.clone())));
        };
        flag(&["http", "listen"], &self.listen);
        flag(&["database", "url"], &self.database_url);
        flag(&["data_dir"], &self.data_dir);
        // A variable that is not UTF-8 is none of ours: all our values are texts.
        let environment = env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect();
        config::load(&Sources { file: self.config.clone(), environment, flags })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_well_formed() {
        Arguments::command().debug_assert();
        let arguments =
            Arguments::try_parse_from(["protocol-bridge", "generate", "council", "-o", "a.pdf", "-o", "a.json", "--data-dir", "x"])
                .unwrap();
        assert_eq!(arguments.settings.data_dir.as_deref(), Some("x"));
        let Some(Command::Generate(generate)) = arguments.command else { panic!("generate was asked for") };
        assert_eq!(generate.output.len(), 2);
    }

    #[test]
    fn a_replay_names_what_it_wants() {
        let parse =
            |arguments: &str| Arguments::try_parse_from(["protocol-bridge", "replay"].into_iter().chain(arguments.split_whitespace()));
        let id = "0198c0de-0000-7000-8000-000000000000";
        for good in [id, "--all", "--all --dry-run", "--reason internal --agenda 42 --from-phase MERGE --json", "--to 2026-11-30T12:00:00Z"]
        {
            assert!(parse(good).is_ok(), "{good}: {:?}", parse(good).err());
        }
        for bad in ["", "x", "--dry-run", "--from-phase MERGE", "--reason made-up", "--all --reason internal", &format!("{id} --all")] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
