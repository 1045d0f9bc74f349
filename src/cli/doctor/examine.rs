//! All checks, side by side.

use super::{
    database, documents,
    finding::{Finding, within},
    report::Report,
    store, surroundings, transport,
};
use crate::{
    base::{
        chain::chain,
        clock::Clock,
        config::{self, Config, LogFormat, Telemetry},
        entropy::Entropy,
        telemetry, tls,
    },
    cli::{
        Exit,
        arguments::{Doctor, Settings},
        output::note,
    },
};
use std::time::Duration;

/// How long anything may take to answer.
const ANSWER: Duration = Duration::from_secs(15);
/// Typesetting on a machine that is busy takes longer.
const TYPESETTING: Duration = Duration::from_mins(2);
const NAMES: [&str; 8] = ["database", "schema", "transport", "store", "clock", "disk", "fonts", "agendas"];

pub(in crate::cli) fn run(settings: &Settings, arguments: &Doctor) -> Exit {
    let report = match settings.read() {
        Ok(loaded) => {
            // What is wrong is in the findings; a log of it would say it twice.
            let log = if loaded.config.telemetry.log == "info" { "off".to_owned() } else { loaded.config.telemetry.log.clone() };
            telemetry::install(&Telemetry { log, format: LogFormat::Auto, otlp_endpoint: None });
            tls::install();
            let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
            let configured = configured(&loaded.config, &warnings);
            // A typesetter that takes too long must not keep the others from answering, nor the program from ending.
            let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    note(&chain(&error));
                    return Exit::Failed;
                }
            };
            let report = runtime.block_on(examine(&loaded.config, arguments, configured));
            runtime.shutdown_background();
            report
        }
        Err(error) => without_configuration(&error),
    };
    report.print(arguments.json);
    if report.is_healthy() { Exit::Done } else { Exit::Failed }
}

fn configured(config: &Config, warnings: &[String]) -> Finding {
    // goes with v1: begin
    if let Err(error) = crate::cli::try_response::outside(config) {
        return Finding::failed(error, "Correct legacy.response; `protocol-bridge check-config` tries it again.");
    }
    // goes with v1: end
    if warnings.is_empty() {
        return Finding::ok(format!("data_dir is {}", config.data_dir.display()));
    }
    Finding::warning(warnings.join("; "), "It is allowed, and may not be what you want.")
}

fn without_configuration(error: &config::Error) -> Report {
    let found = match error {
        config::Error::Invalid(problems) => problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        other => chain(other),
    };
    let mut findings = vec![("config", Finding::failed(found, "Correct it; `protocol-bridge check-config` looks at it alone."))];
    findings.extend(NAMES.map(|name| (name, Finding::skipped("without a configuration nobody knows where to look"))));
    Report { findings, documents: None }
}

async fn examine(config: &Config, arguments: &Doctor, configured: Finding) -> Report {
    let (clock, entropy) = (Clock::system(), Entropy::system());
    let (database, schema, transport, store, time, fonts, agendas) = tokio::join!(
        within(ANSWER, database::reached(config, &clock)),
        within(ANSWER, database::schema(config)),
        within(ANSWER, transport::check(config)),
        within(ANSWER, store::check(config, &clock, &entropy)),
        within(ANSWER, database::clock(config, &clock)),
        within(TYPESETTING, surroundings::fonts(config, &clock)),
        within(ANSWER, surroundings::agendas(config)),
    );
    let disk = surroundings::disk(config);
    let findings = NAMES.into_iter().zip([database, schema, transport, store, time, disk, fonts, agendas]);
    let mut report = Report { findings: [("config", configured)].into_iter().chain(findings).collect(), documents: None };
    if arguments.documents {
        // As long as it takes: there may be terabytes, and it shows how far it is.
        let (finding, looked) = documents::check(config).await;
        report.findings.push(("documents", finding));
        report.documents = looked;
    }
    report
}
