//! `check-config`: says what is wrong with the configuration, all of it, or "ok".

use super::{
    Exit,
    arguments::Settings,
    output::{note, say},
};

pub(super) fn run(settings: &Settings) -> Exit {
    match settings.load() {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                note(&format!("warning: {warning}"));
            }
            say("ok");
            Exit::Done
        }
        Err(exit) => exit,
    }
}
