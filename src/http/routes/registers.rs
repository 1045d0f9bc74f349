//! `GET /api/registers`: which numbers were given out, and which are missing.

use crate::http::{
    Api, Problem,
    parameters::Query,
    shapes::{List, ProblemDetails, RegisterShape},
};
use axum::{Json, extract::State};

/// The registers of protocol numbers of a year, one per body, with their gaps.
#[utoipa::path(
    get,
    path = "/api/registers",
    tag = "protocols",
    operation_id = "listRegisters",
    params(
        ("year" = i16, Query, description = "The year of the meetings.", minimum = 1, maximum = 9999, example = 2026),
        ("cursor" = Option<String>, Query, description = "The last page's nextCursor."),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 if left out.", minimum = 1, maximum = 200),
    ),
    responses(
        (status = 200, description = "The page, by body.", body = List<RegisterShape>),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn registers(State(api): State<Api>, mut query: Query) -> Result<Json<List<RegisterShape>>, Problem> {
    let year = query.required::<Year>("year");
    let (after, limit) = (query.position::<String>(), query.limit());
    query.finish()?;
    let year = year.map_or(0, |Year(year)| year);
    let (registers, next_cursor) = api.within_patience(api.generator.registers(year, after, limit)).await?;
    Ok(Json(List { items: registers.iter().map(RegisterShape::from).collect(), next_cursor }))
}

/// A year of four digits at most.
struct Year(i16);

impl std::str::FromStr for Year {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(year @ 1..=9999) => Ok(Self(year)),
            _ => Err("has to be a year from 1 to 9999"),
        }
    }
}
