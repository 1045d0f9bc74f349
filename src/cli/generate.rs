//! `generate`: one protocol from one agenda, without a server. Files appear whole or not at all: they are written beside their place and moved there.

use super::{
    Exit,
    arguments::{Generate, Settings},
    output::{note, say},
    progress::Bar,
    refusal::{exit_of, explain},
};
use crate::{
    base::{
        chain::chain,
        clock::Clock,
        config::{Config, Telemetry},
        telemetry, tls,
    },
    domain::{
        failure::{Failure, FailureCode},
        protocol::Format,
    },
    generator::{
        once::{GenerateInput, Generated, generate_once},
        renderer_in_process::InProcessRenderer,
    },
};
use std::{
    io::Write as _,
    path::{Path, PathBuf},
};
use tokio_util::sync::CancellationToken;

pub(super) fn run(settings: &Settings, arguments: &Generate) -> Exit {
    let config = match settings.load() {
        Ok(loaded) => loaded.config,
        Err(exit) => return exit,
    };
    let formats = match arguments.output.iter().map(|path| format_of(path)).collect::<Result<Vec<_>, _>>() {
        Ok(formats) if formats.is_empty() => vec![Format::Pdf],
        Ok(formats) => formats,
        Err(reason) => {
            note(&reason);
            return Exit::Usage;
        }
    };
    // The bar tells what goes on; a log of it would only break the bar's line.
    let log = if config.telemetry.log == "info" { "warn".to_owned() } else { config.telemetry.log.clone() };
    telemetry::install(&Telemetry { log, format: config.telemetry.format, otlp_endpoint: None });
    tls::install();
    let bar = Bar::new();
    let generated = match generate(&arguments.agenda, formats, &config, &bar) {
        Ok(generated) => generated,
        Err(failure) => {
            bar.clear();
            explain(&failure);
            return exit_of(failure.code);
        }
    };
    bar.clear();
    for warning in &generated.warnings {
        note(&format!("warning: {} ({})", warning.detail, warning.pointer));
    }
    write(&generated, &arguments.output)
}

fn generate(agenda: &str, mut formats: Vec<Format>, config: &Config, bar: &Bar) -> Result<Generated, Failure> {
    formats.sort_unstable();
    formats.dedup();
    let cancelled = CancellationToken::new();
    let input =
        GenerateInput { agenda: agenda.to_owned(), formats, config: config.clone(), clock: Clock::system(), cancelled: cancelled.clone() };
    let renderer = InProcessRenderer::new(None);
    let show = |phase, progress| bar.show(phase, progress);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(FailureCode::Internal, format!("the runtime cannot be started: {error}")))?;
    let generated = runtime.block_on(async {
        let generating = generate_once(input, &renderer, &show);
        tokio::pin!(generating);
        tokio::select! {
            generated = &mut generating => generated,
            _ = tokio::signal::ctrl_c() => {
                cancelled.cancel();
                generating.await
            }
        }
    });
    // A typesetter that was told to stop runs out by itself; nobody waits for it.
    runtime.shutdown_background();
    generated
}

fn format_of(path: &Path) -> Result<Format, String> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_lowercase();
    extension.parse().map_err(|_| {
        let known = Format::ALL.map(Format::as_str).join(", ");
        format!("{}: the extension chooses the format; there are {known}", path.display())
    })
}

fn write(generated: &Generated, outputs: &[PathBuf]) -> Exit {
    let default = [PathBuf::from(format!("{}.pdf", generated.agenda_id))];
    for path in if outputs.is_empty() { &default } else { outputs } {
        let format = format_of(path).unwrap_or(Format::Pdf);
        let Some(document) = generated.documents.iter().find(|document| document.format == format) else {
            note(&format!("{}: no {format} was made", path.display()));
            return Exit::Failed;
        };
        if let Err(error) = write_whole(path, &document.bytes) {
            note(&format!("{} cannot be written: {}", path.display(), chain(&error)));
            return Exit::Failed;
        }
        let pages = document.pages.map(|pages| format!(", {pages} pages")).unwrap_or_default();
        say(&format!("{} ({} bytes{pages})", path.display(), document.bytes.len()));
    }
    Exit::Done
}

fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    // Readable for others, as a file made in the ordinary way is.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(mode)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
