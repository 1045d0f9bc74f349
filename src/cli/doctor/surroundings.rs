//! What else a protocol needs: room on the disk, fonts, agendas.

use super::{finding::Finding, folder::nearest, store};
use crate::{
    base::{clock::Clock, config::Config, disk::FreeSpace},
    domain::{failure::FailureCode, ids::AgendaId, protocol::Format},
    generator::{
        GenerateInput, InProcessRenderer, generate_once,
        source::{Source, SourceError},
    },
};
use bytesize::ByteSize;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// A sample that uses everything: tables, ballots, several hands of Cyrillic.
const SAMPLE: &str = "council-2026-11";
/// No agenda is called like that, so that nobody's is read.
const NO_AGENDA: &str = "protocol-bridge-doctor";

/// Room where the database and the documents are.
pub(super) fn disk(config: &Config) -> Finding {
    let floor = config.engine.min_free_space.as_u64();
    let folders: Vec<PathBuf> = [Some(config.data_dir.clone()), store::folder(config)].into_iter().flatten().collect();
    let mut said = Vec::new();
    let mut least = u64::MAX;
    for folder in &folders {
        // One that is not there yet will be made on the disk of the nearest that is.
        let Some(there) = nearest(folder) else { continue };
        let Some(free) = FreeSpace::new(there.to_owned(), floor).bytes() else { continue };
        least = least.min(free);
        said.push(format!("{} free at {}", ByteSize::b(free), folder.display()));
    }
    said.dedup();
    let found = said.join(", ");
    if said.is_empty() {
        return Finding::warning("free space cannot be read", "Let the service's user look at data_dir.");
    }
    if least < floor {
        let advice = format!("Make room: below engine.min_free_space ({}) nothing new is accepted.", ByteSize::b(floor));
        return Finding::failed(found, advice);
    }
    if least < floor.saturating_mul(2) {
        return Finding::warning(
            found,
            format!("Make room soon: below engine.min_free_space ({}) nothing new is accepted.", ByteSize::b(floor)),
        );
    }
    Finding::ok(found)
}

/// Whether a whole document typesets with the fonts that are compiled in.
pub(super) async fn fonts(config: &Config, clock: &Clock) -> Finding {
    let input = GenerateInput {
        agenda: SAMPLE.to_owned(),
        formats: vec![Format::Pdf],
        config: config.clone(),
        clock: clock.clone(),
        cancelled: CancellationToken::new(),
    };
    let since = clock.monotonic();
    match generate_once(input, &InProcessRenderer::new(Some(1)), &|_, _| {}).await {
        Ok(generated) => {
            let pages = generated.documents.first().and_then(|document| document.pages).unwrap_or(0);
            Finding::ok(format!("a sample of {pages} pages typesets in {:.1} s", clock.monotonic().since(since).as_secs_f64()))
        }
        Err(failure) if failure.code == FailureCode::StorageUnavailable => {
            Finding::failed(failure.message, "Let the service's user write temporary files (TMPDIR), and see whether the disk is full.")
        }
        Err(failure) => Finding::failed(failure.detail.unwrap_or(failure.message), "The program is damaged: install it again."),
    }
}

/// Whether the source of agendas answers.
pub(super) async fn agendas(config: &Config) -> Finding {
    let source = match Source::open(&config.agenda) {
        Ok(source) => source,
        Err(error) => return Finding::failed(error, "Correct agenda.source."),
    };
    let setting = without_query(&config.agenda.source);
    if !source.is_remote() {
        return match source.list(None, usize::MAX).await {
            Ok(ids) if ids.is_empty() => {
                Finding::warning(format!("{setting} holds no agenda"), "Put agendas into the folder, or correct agenda.source.")
            }
            Ok(ids) => Finding::ok(format!("{setting}: {} agendas", ids.len())),
            Err(error) => Finding::failed(error.to_string(), "Let the service's user read the folder."),
        };
    }
    let id: AgendaId = NO_AGENDA.parse().expect("a constant that is an agenda id");
    match source.fetch(&id).await {
        Err(SourceError::NotFound(_)) => Finding::ok(format!("{setting} answers")),
        Ok(_) => Finding::warning(
            format!("{setting} has an agenda for every id, even for {NO_AGENDA}"),
            "See whether agenda.source is the agenda service's address: a page to sign in, or somebody else's service, answers like this.",
        ),
        Err(error) => Finding::failed(
            error.to_string(),
            "Start the agenda service, or correct agenda.source and agenda.token; tasks are tried again until their attempts are used up.",
        ),
    }
}

/// A query may hold what only its host is to know.
fn without_query(source: &str) -> &str {
    source.split('?').next().unwrap_or(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_are_what_they_have_to_be() {
        assert!(NO_AGENDA.parse::<AgendaId>().is_ok());
        assert!(crate::generator::source::samples::ids().any(|id| id.as_str() == SAMPLE));
    }
}
