//! `check-config`: says what is wrong with the configuration, all of it, or "ok". What can be tried without a database is tried.

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
            // goes with v1: begin
            if let Err(error) = super::try_response::outside(&loaded.config) {
                note(&format!("The configuration cannot be used:\n  {error}"));
                return Exit::Usage;
            }
            // goes with v1: end
            say("ok");
            Exit::Done
        }
        Err(exit) => exit,
    }
}
