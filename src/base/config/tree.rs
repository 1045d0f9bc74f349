//! The root of the tree, and what its sections mean together.

use super::{
    AgendaConfig, Auth, CallerConfig, Database, Documents, Engine, Events, Generator, Http, Legacy, Problem, ShutdownConfig, Sources,
    Telemetry, auth, duration, load,
};
use serde::Deserialize;
use std::path::PathBuf;

/// The whole configuration, validated.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the embedded database, documents and the lock live.
    pub data_dir: PathBuf,
    pub http: Http,
    pub database: Database,
    #[serde(default)]
    pub callers: Vec<CallerConfig>,
    pub legacy: Legacy,
    pub engine: Engine,
    pub agenda: AgendaConfig,
    pub generator: Generator,
    pub documents: Documents,
    pub events: Events,
    pub auth: Auth,
    pub shutdown: ShutdownConfig,
    pub telemetry: Telemetry,
}

impl Default for Config {
    /// The embedded defaults alone.
    fn default() -> Self {
        load(&Sources::default()).expect("the embedded defaults are valid; a test loads them").config
    }
}

impl Config {
    /// Where the database is: the configured URL, or a SQLite file in `data_dir`.
    #[must_use]
    pub fn database_url(&self) -> String {
        if self.database.url.is_empty() {
            format!("sqlite:{}", self.data_dir.join("protocol-bridge.db").display())
        } else {
            self.database.url.expose().to_owned()
        }
    }

    /// Everything that makes this configuration unusable.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.data_dir.as_os_str().is_empty() {
            problems.push(Problem::new("data_dir", "is empty; name a folder, such as ./data"));
        }
        self.http.validate(&mut problems);
        self.database.validate(&mut problems);
        auth::validate_callers(&self.callers, &mut problems);
        self.legacy.validate(&mut problems);
        self.engine.validate(&mut problems);
        self.agenda.validate(&mut problems);
        self.generator.validate(&mut problems);
        self.documents.validate(&mut problems);
        self.events.validate(&mut problems);
        self.auth.validate(&mut problems);
        self.telemetry.validate(&mut problems);
        if self.engine.uses_nats() && self.database_url().starts_with("sqlite:") {
            problems.push(Problem::new(
                "engine.transport",
                "is NATS, which carries messages between machines, and a SQLite database is on one machine only; \
                 write local, or a postgres:// URL in database.url",
            ));
        }
        if !self.events.subscriptions.is_empty() && self.auth.secret_key.is_empty() && !self.database_url().starts_with("sqlite:") {
            problems.push(Problem::new(
                "auth.secret_key",
                "is not set, and on PostgreSQL the secrets of events.subscriptions are sealed with it; make one with: openssl rand -base64 32",
            ));
        }
        if self.is_open() && !self.auth.disabled {
            problems.push(Problem::new(
                "http.listen",
                format!(
                    "{} can be reached from other machines, and without callers anyone there could do everything; \
                     configure [[callers]], or listen on 127.0.0.1, or write auth.disabled = true if that is what you want",
                    self.http.listen
                ),
            ));
        }
        problems
    }

    /// What is allowed and yet dangerous.
    #[must_use]
    pub fn warnings(&self) -> Vec<Problem> {
        let mut warnings = Vec::new();
        let wanted = self.engine.attempt_deadline.mul_f64(1.2);
        if self.legacy.timeout < wanted {
            warnings.push(Problem::new(
                "legacy.timeout",
                format!(
                    "{} is less than 1.2 times engine.attempt_deadline ({}): a v1 call may get its 504 while its attempt still runs; \
                     raise it to {} or lower the deadline",
                    duration::words(self.legacy.timeout),
                    duration::words(self.engine.attempt_deadline),
                    duration::words(wanted)
                ),
            ));
        }
        self.legacy.warn(&mut warnings);
        self.engine.warn(&mut warnings);
        self.agenda.warn(&mut warnings);
        self.events.warn(&mut warnings);
        if self.events.nats_subject.is_some() && !self.engine.uses_nats() {
            warnings.push(Problem::new(
                "events.nats_subject",
                "does nothing: engine.transport is local, and events go to the NATS that is named there",
            ));
        }
        if self.is_open() && self.auth.disabled {
            warnings.push(Problem::new(
                "auth.disabled",
                format!("anyone who reaches {} may do everything, replay and cancel included", self.http.listen),
            ));
        }
        warnings
    }

    /// Other machines can reach it, and nothing tells callers apart.
    fn is_open(&self) -> bool {
        !self.http.is_loopback() && self.callers.is_empty()
    }
}
