//! Whether the database answers, whether it has this program's tables, and whether its clock is this machine's.

use super::{finding::Finding, folder::obstacle};
use crate::{
    base::{
        chain::chain,
        clock::Clock,
        config::{Config, Migrate},
    },
    store::look::{Look, file_of},
};
use std::time::Duration;

const SAMPLES: u32 = 5;
/// A task costs a dozen round trips.
const SLOW: Duration = Duration::from_millis(50);
/// By how much this machine's clock may differ from the database's before somebody should look.
const CLOCK_OFF: Duration = Duration::from_secs(1);

/// How long the connection may take, for each that needs one.
const CONNECT: Duration = Duration::from_secs(5);

/// What is said of everything else that the database would have to be asked for.
pub(super) const NEEDS_DATABASE: &str = "needs the database";
const AWAY: &str = "Start the database, or correct database.url; while it is away, the service accepts nothing and loses nothing.";
const LET_US_WRITE: &str = "Let the service's user write to the file and its folder, and see whether the disk is read-only.";
const NOT_THERE_YET: &str = "The first start of the service makes it; if there should be one, data_dir or database.url points elsewhere.";

/// The session, or the finding of everyone who needs one.
pub(super) async fn open(config: &Config) -> Result<Look, Finding> {
    let url = config.database_url();
    if let Some(file) = file_of(&url)
        && !file.exists()
    {
        if let Some(obstacle) = obstacle(&file) {
            return Err(Finding::failed(obstacle, LET_US_WRITE));
        }
        return Err(Finding::warning(format!("there is no database at {} yet", file.display()), NOT_THERE_YET));
    }
    match tokio::time::timeout(CONNECT, Look::open(&url)).await {
        Ok(opened) => opened.map_err(|error| Finding::failed(chain(&error), AWAY)),
        Err(_elapsed) => Err(Finding::failed(format!("no answer within {} s", CONNECT.as_secs()), AWAY)),
    }
}

/// Reachable, version, latency.
pub(super) async fn reached(config: &Config, clock: &Clock) -> Finding {
    let mut look = match open(config).await {
        Ok(look) => look,
        Err(finding) => return finding,
    };
    let mut best = Duration::MAX;
    let mut version = String::new();
    for _ in 0..SAMPLES {
        let asked = clock.monotonic();
        match look.version().await {
            Ok(answer) => version = answer,
            Err(error) => return Finding::failed(chain(&error), "The database took the connection and cannot be read: see its own log."),
        }
        best = best.min(clock.monotonic().since(asked));
    }
    look.close().await;
    if let Some(obstacle) = cannot_be_written(config) {
        return Finding::failed(obstacle, LET_US_WRITE);
    }
    let found = format!("{version}{}, answers in {:.1} ms", place(config), best.as_secs_f64() * 1000.0);
    if best > SLOW {
        return Finding::warning(found, "Each task takes a dozen round trips: bring the service and its database closer together.");
    }
    Finding::ok(found)
}

/// SQLite writes its log beside the file.
fn cannot_be_written(config: &Config) -> Option<String> {
    let file = file_of(&config.database_url())?;
    obstacle(&file).or_else(|| obstacle(file.parent()?))
}

fn place(config: &Config) -> String {
    file_of(&config.database_url()).map(|file| format!(" at {}", file.display())).unwrap_or_default()
}

/// Migrations applied, pending, unknown.
pub(super) async fn schema(config: &Config) -> Finding {
    let mut look = match open(config).await {
        Ok(look) => look,
        Err(_see_database) => return Finding::skipped(NEEDS_DATABASE),
    };
    let schema = match look.schema().await {
        Ok(schema) => schema,
        Err(error) => return Finding::failed(chain(&error), "The list of migrations cannot be read: see the database's own log."),
    };
    look.close().await;
    if let Some(version) = schema.unknown.first() {
        let found = format!("the database has migration {version}, which this program does not know: a newer one was here");
        return Finding::failed(found, "Run the newer program, or restore the backup made before it.");
    }
    if let Some(version) = schema.altered.first() {
        let found = format!("migration {version} of the database is not this program's");
        return Finding::failed(found, "They come from different builds: run the one that made the database.");
    }
    if schema.pending.is_empty() {
        return Finding::ok(format!("all {} migrations are applied", schema.applied));
    }
    let names: Vec<String> = schema.pending.iter().map(|(version, name)| format!("{version} {name}")).collect();
    let found = format!("{} migrations are applied, pending: {}", schema.applied, names.join(", "));
    match config.database.migrate {
        Migrate::Auto => Finding::warning(found, "The next start applies them."),
        Migrate::Off => {
            Finding::failed(found, "Run `protocol-bridge migrate`: database.migrate is off, and the service does not start without them.")
        }
    }
}

/// The database's clock against this machine's.
pub(super) async fn clock(config: &Config, clock: &Clock) -> Finding {
    if file_of(&config.database_url()).is_some() {
        return Finding::ok("SQLite goes by this machine's clock");
    }
    let mut look = match open(config).await {
        Ok(look) => look,
        Err(_see_database) => return Finding::skipped(NEEDS_DATABASE),
    };
    let (before, asked) = (clock.now(), clock.monotonic());
    let answer = look.time().await;
    let halfway = before + clock.monotonic().since(asked) / 2;
    look.close().await;
    match answer {
        Ok(Some(theirs)) => {
            let off = if theirs > halfway { theirs.since(halfway) } else { halfway.since(theirs) };
            let found = format!("this machine's clock and the database's differ by {:.3} s", off.as_secs_f64());
            if off > CLOCK_OFF {
                return Finding::warning(found, "The database's clock is what counts; set both by NTP so that logs can be compared.");
            }
            Finding::ok(found)
        }
        Ok(None) => Finding::ok("the database goes by this machine's clock"),
        Err(error) => Finding::failed(chain(&error), "The database does not say what time it is: see its own log."),
    }
}
