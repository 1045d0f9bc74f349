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
            if let Err(error) = try_response(&loaded.config) {
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

// goes with v1: begin
pub(super) fn try_response(config: &crate::base::config::Config) -> Result<(), String> {
    use crate::{app, base::chain::chain, base::clock::Clock};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| chain(&error))?;
    runtime.block_on(app::present(config, &Clock::system())).map(drop).map_err(|error| chain(&error))
}
// goes with v1: end
