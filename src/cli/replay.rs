//! `replay`: puts failed tasks back into the queue, straight in the database of the configuration. That works with the service up, which picks them up within a
//! second or two, and with it down, when they wait for it; and it needs no key.

use super::{
    Exit,
    arguments::{Replay, Settings},
    output::{note, say},
};
use crate::{
    app,
    base::{chain::chain, clock::Clock, entropy::Entropy, telemetry, tls},
    domain::{
        audit::Author,
        ids::{DeadLetterId, TaskId},
    },
    engine::{DeadLetterFilter, Engine, ReplayMany, Replayed, ReplayedMany, Skipped},
    store,
};
use serde_json::json;
use std::env;

/// How many are looked at between two looks at the list.
const PAGE: usize = 200;

pub(super) fn run(settings: &Settings, arguments: &Replay) -> Exit {
    let mut config = match settings.load() {
        Ok(loaded) => loaded.config,
        Err(exit) => return exit,
    };
    if config.telemetry.log == "info" {
        // What was replayed is printed; a line of the log for each would only say it twice.
        "warn".clone_into(&mut config.telemetry.log);
    }
    telemetry::install(&config.telemetry);
    tls::install();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            note(&chain(&error));
            return Exit::Failed;
        }
    };
    runtime.block_on(async {
        let (clock, entropy) = (Clock::system(), Entropy::system());
        let db = match app::open_database(&config, false, &clock, &entropy).await {
            Ok(db) => db,
            Err(error) => {
                note(&chain(&error));
                return Exit::Failed;
            }
        };
        let author = Author { name: format!("cli:{}", user()), address: "local".to_owned(), request_id: entropy.id(clock.now()) };
        let engine = app::engine_at_rest(&config, &db, &clock, &entropy);
        let replayed = match arguments.id {
            Some(id) => one(&engine, DeadLetterId(id), arguments, &author).await,
            None => many(&engine, arguments, &author).await,
        };
        db.close().await;
        match replayed {
            Ok(replayed) => tell(&replayed, arguments),
            Err(error) => {
                note(&chain(&error));
                Exit::Failed
            }
        }
    })
}

/// Who sits at the terminal, as far as the environment says.
fn user() -> String {
    let named = ["SUDO_USER", "USER", "LOGNAME"].into_iter().find_map(|name| env::var(name).ok().filter(|user| !user.is_empty()));
    crate::domain::caller::Caller::claimed(&named.unwrap_or_default()).name
}

/// The dead letter with this id, or the open one of the task with this id: people have the one or the other at hand.
async fn one(engine: &Engine, id: DeadLetterId, arguments: &Replay, author: &Author) -> store::Result<ReplayedMany> {
    let mut replayed = engine.replay(id, arguments.from_phase, author).await?;
    let mut found = id;
    if matches!(replayed, Replayed::Unknown) {
        let of_task = DeadLetterFilter { task_id: Some(TaskId(id.0)), ..DeadLetterFilter::default() };
        if let Some(letter) = engine.dead_letters(of_task, None, 1).await?.items.pop() {
            found = letter.id;
            replayed = engine.replay(letter.id, arguments.from_phase, author).await?;
        }
    }
    let skipped = |reason| ReplayedMany { matching: 1, skipped: vec![Skipped { id: found, reason }], ..ReplayedMany::default() };
    Ok(match replayed {
        Replayed::Queued(_) => ReplayedMany { matching: 1, replayed: 1, ..ReplayedMany::default() },
        Replayed::AlreadyReplayed => skipped("already-replayed"),
        Replayed::AgendaBusy(_) => skipped("agenda-busy"),
        Replayed::Unknown => ReplayedMany { matching: 0, ..skipped("not-found") },
    })
}

/// Everything that matches, page by page.
async fn many(engine: &Engine, arguments: &Replay, author: &Author) -> store::Result<ReplayedMany> {
    let filter = DeadLetterFilter {
        reason: arguments.reason,
        agenda_id: arguments.agenda.clone(),
        from: arguments.from,
        to: arguments.to,
        ..DeadLetterFilter::default()
    };
    let mut ask = ReplayMany { filter, from_phase: arguments.from_phase, cursor: None, limit: PAGE, dry_run: arguments.dry_run };
    let mut total = engine.replay_many(&ask, author).await?;
    while let Some(cursor) = total.next_cursor.take() {
        ask.cursor = Some(cursor);
        let mut page = engine.replay_many(&ask, author).await?;
        total.replayed += page.replayed;
        total.skipped.append(&mut page.skipped);
        total.next_cursor = page.next_cursor;
    }
    Ok(total)
}

fn tell(replayed: &ReplayedMany, arguments: &Replay) -> Exit {
    let ReplayedMany { matching, replayed, skipped, .. } = replayed;
    if arguments.json {
        let skipped: Vec<_> = skipped.iter().map(|Skipped { id, reason }| json!({ "id": id, "reason": reason })).collect();
        say(&json!({ "dryRun": arguments.dry_run, "matching": matching, "replayed": replayed, "skipped": skipped }).to_string());
    } else if arguments.dry_run {
        say(&format!("{matching} would be replayed"));
    } else {
        say(&format!("{replayed} replayed, {} skipped", skipped.len()));
        for Skipped { id, reason } in skipped {
            note(&format!("  {id}: {}", in_words(reason)));
        }
    }
    if skipped.is_empty() { Exit::Done } else { Exit::NotReplayed }
}

fn in_words(reason: &str) -> &str {
    match reason {
        "agenda-busy" => "another task of its agenda is active; wait until it has ended, or cancel it",
        "already-replayed" => "it was replayed before",
        "not-found" => "there is no such dead letter, nor a failed task with this id",
        _ => "something is wrong with it; the log says more",
    }
}
