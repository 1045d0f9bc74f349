//! `GET /problems/{code}`: what a problem means and what to do about it.

use crate::http::{Problem, ProblemType, RequestProblem, parameters::PathParameter, shapes::ProblemDetails};
use axum::{
    http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};

/// What a problem type means; the `type` of every problem is one of these pages.
#[utoipa::path(get, path = "/problems/{code}", tag = "health", operation_id = "problemPage",
    params(("code" = String, Path, description = "The type's code.", example = "bridge-timeout")),
    responses(
        (status = 200, description = "The page.", body = String, content_type = "text/html"),
        (status = 404, description = "There is no such type.", body = ProblemDetails, content_type = "application/problem+json"),
    ))]
pub async fn problem_page(PathParameter(code): PathParameter<String>) -> Result<Response, Problem> {
    let Some(kind) = ProblemType::of_code(&code) else {
        return Err(Problem::request(RequestProblem::NotFound, "There is no such problem type."));
    };
    let entry = kind.entry();
    // Every text is from our own table, so there is nothing to escape but what it says itself.
    let [title, meaning, what_to_do] = [entry.title, entry.meaning, entry.what_to_do].map(escape);
    let page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<h1>{title}</h1>\n<p><code>{}</code>, HTTP {}</p>\n\
         <h2>What it means</h2>\n<p>{meaning}</p>\n<h2>What to do</h2>\n<p>{what_to_do}</p>\n</html>\n",
        entry.code, entry.status
    );
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, "default-src 'none'")];
    Ok((headers, page).into_response())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
