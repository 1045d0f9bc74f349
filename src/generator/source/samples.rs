//! The bundled sample agendas: in the binary, with invented people, self-contained. Their `sampleDelay` is honoured by COLLECT; listing never waits for it.

use super::{Fetched, SourceError, agenda_source::Address};
use crate::domain::ids::AgendaId;
use bytes::Bytes;

/// By agenda id, in order. A test compares the list with the folder.
const SAMPLES: &[(&str, &str)] = &[
    ("allotments-2026", include_str!("../../../samples/agendas/allotments-2026.json")),
    ("contradictory-council", include_str!("../../../samples/agendas/contradictory-council.json")),
    ("council-2026-11", include_str!("../../../samples/agendas/council-2026-11.json")),
    ("large-council", include_str!("../../../samples/agendas/large-council.json")),
    ("slow-council", include_str!("../../../samples/agendas/slow-council.json")),
    ("unsigned-council", include_str!("../../../samples/agendas/unsigned-council.json")),
];

/// # Errors
/// When there is no sample of this id.
pub fn fetch(id: &AgendaId) -> Result<Fetched, SourceError> {
    let (_, text) = SAMPLES.iter().find(|(name, _)| *name == id.as_str()).ok_or_else(|| SourceError::NotFound(id.to_string()))?;
    Ok(Fetched { bytes: Bytes::from_static(text.as_bytes()), etag: None, address: Address::Sample })
}

/// Ids after `after`, in order; at most `limit`.
#[must_use]
pub fn list(after: Option<&AgendaId>, limit: usize) -> Vec<AgendaId> {
    ids().filter(|id| after.is_none_or(|after| id > after)).take(limit).collect()
}

/// Every sample's id.
pub fn ids() -> impl Iterator<Item = AgendaId> {
    SAMPLES.iter().map(|(name, _)| name.parse().expect("the names of bundled samples are agenda ids; a test reads them all"))
}
