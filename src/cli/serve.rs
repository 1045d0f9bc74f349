//! `serve`: the service, until SIGTERM or SIGINT.

use super::{Exit, arguments::Settings, output::note};
use crate::{
    app::{App, Ended},
    base::{chain::chain, config::Config, limits, telemetry, tls},
};
use std::{
    io::{self, IsTerminal as _},
    net::SocketAddr,
};

pub(super) fn run(settings: &Settings) -> Exit {
    let loaded = match settings.load() {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    telemetry::install(&loaded.config.telemetry);
    tls::install();
    for warning in &loaded.warnings {
        tracing::warn!(key = warning.key, "{warning}");
    }
    let open_files = limits::raise_open_files();
    tracing::debug!(openFiles = open_files, "open-files limit");
    if let Some(open_files) = open_files
        && open_files < loaded.config.legacy.max_waiters as u64
    {
        tracing::warn!(
            openFiles = open_files,
            "the open-files limit holds fewer calls than legacy.max_waiters allows; raise it (ulimit -n, LimitNOFILE=)"
        );
    }
    // goes with v1: begin
    if let Err(error) = super::try_response::outside(&loaded.config) {
        tracing::error!(error, "cannot start");
        note(&format!("protocol-bridge cannot start: {error}"));
        return Exit::Failed;
    }
    // goes with v1: end
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            note(&format!("the runtime cannot be started: {}", chain(&error)));
            return Exit::Failed;
        }
    };
    let exit = runtime.block_on(serve(loaded.config));
    // Everything that matters has ended; what is left are threads that nobody waits for, such as a typesetter's.
    runtime.shutdown_background();
    exit
}

async fn serve(config: Config) -> Exit {
    let app = match App::start(config).await {
        Ok(app) => app,
        Err(error) => {
            tracing::error!(error = chain(&error), "cannot start");
            // The log may go to a file that nobody looks at, or be filtered.
            if !io::stderr().is_terminal() || !tracing::enabled!(tracing::Level::ERROR) {
                note(&format!("protocol-bridge cannot start: {}", chain(&error)));
            }
            return Exit::Failed;
        }
    };
    if io::stdout().is_terminal() {
        greet(&app).await;
    }
    match app.run_until_shutdown().await {
        Ended::Drained => Exit::Done,
        Ended::Stopped | Ended::GaveUp(_) => Exit::Failed,
    }
}

/// What a person wants to know first: where it is, what there is to try, and one line that tries it.
async fn greet(app: &App) {
    use super::output::say;
    let address = local(app.address());
    say(&format!("protocol-bridge serves http://{address}"));
    match app.sample_ids().await {
        ids if ids.is_empty() => {}
        ids => {
            say(&format!("agendas: {}", ids.join(", ")));
            say(&format!("try:     curl -X POST http://{address}/api/v1/protocol/merge/byAgenda/{}", ids[0])); // goes with v1
        }
    }
}

/// An address a browser on this machine can use.
fn local(address: SocketAddr) -> String {
    if address.ip().is_unspecified() { format!("localhost:{}", address.port()) } else { address.to_string() }
}
