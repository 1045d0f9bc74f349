//! Agendas as clients see them: what the source lists, and what COLLECT and CHECK say.

use super::FaultShape;
use crate::{
    domain::{failure::Fault, ids::AgendaId},
    generator::facade::{CheckReport, ListedAgenda},
};
use serde::Serialize;
use utoipa::ToSchema;

/// An agenda in the list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgendaItem {
    #[schema(value_type = String)]
    pub agenda_id: AgendaId,
    pub title: String,
    pub date: String,
    /// COLLECT and CHECK find no error.
    pub ready: bool,
    #[schema(value_type = Vec<FaultShape>)]
    pub errors: Vec<Fault>,
}

impl From<ListedAgenda> for AgendaItem {
    fn from(listed: ListedAgenda) -> Self {
        let ListedAgenda { agenda_id, title, date, ready, errors } = listed;
        Self { agenda_id, title, date, ready, errors }
    }
}

/// Every error and warning of an agenda at once.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgendaCheck {
    #[schema(value_type = String)]
    pub agenda_id: AgendaId,
    /// There is no error.
    pub ready: bool,
    #[schema(value_type = Vec<FaultShape>)]
    pub errors: Vec<Fault>,
    #[schema(value_type = Vec<FaultShape>)]
    pub warnings: Vec<Fault>,
    /// Codes of the rules that the agenda's format gives nothing to look at.
    pub not_applicable: Vec<&'static str>,
}

impl From<CheckReport> for AgendaCheck {
    fn from(report: CheckReport) -> Self {
        let CheckReport { agenda_id, language: _, errors, warnings, not_applicable } = report;
        Self { agenda_id, ready: errors.is_empty(), errors, warnings, not_applicable }
    }
}
