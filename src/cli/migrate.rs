//! `migrate`: brings the schema up to date, for where `database.migrate = "off"` keeps serving processes from doing it.

use super::{
    Exit,
    arguments::Settings,
    output::{note, say},
};
use crate::{
    app,
    base::{chain::chain, clock::Clock, entropy::Entropy, telemetry, tls},
};

pub(super) fn run(settings: &Settings) -> Exit {
    let config = match settings.load() {
        Ok(loaded) => loaded.config,
        Err(exit) => return exit,
    };
    telemetry::install(&config.telemetry);
    tls::install();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            note(&chain(&error));
            return Exit::Failed;
        }
    };
    let migrated = runtime.block_on(async {
        let db = app::open_database(&config, true, &Clock::system(), &Entropy::system()).await?;
        db.close().await;
        Ok::<_, app::StartError>(())
    });
    match migrated {
        Ok(()) => {
            say("the schema is up to date");
            Exit::Done
        }
        Err(error) => {
            note(&chain(&error));
            Exit::Failed
        }
    }
}
