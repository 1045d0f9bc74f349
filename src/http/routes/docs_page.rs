//! `GET /docs`: the API to read and to try, by Swagger UI; everything it needs is in the program.

use crate::http::{Problem, RequestProblem, parameters::PathParameter, shapes::ProblemDetails};
use axum::{
    http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};
use std::sync::Arc;
use utoipa_swagger_ui::Config;

/// Swagger UI sets style attributes by itself; scripts come from us only, and requests go to us only.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const PAGE: &str = include_str!("docs_page.html");
const START: &str = include_str!("docs_page.js");

/// The API to read and to try.
#[utoipa::path(get, path = "/docs", tag = "health", operation_id = "docsPage",
    responses((status = 200, description = "The page.", body = String, content_type = "text/html")))]
pub async fn docs_page() -> Response {
    ([(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY)], PAGE).into_response()
}

/// What that page is made of.
#[utoipa::path(get, path = "/docs/ui/{file}", tag = "health", operation_id = "docsFile",
    params(("file" = String, Path, description = "Its name.", example = "swagger-ui.css")),
    responses(
        (status = 200, description = "The file.", content((String = "text/css"), (String = "text/javascript"), (String = "image/png"))),
        (status = 404, description = "There is no such file.", body = ProblemDetails, content_type = "application/problem+json"),
    ))]
pub async fn docs_file(PathParameter(file): PathParameter<String>) -> Result<Response, Problem> {
    let kind = match file.as_str() {
        "start.js" => return Ok(([(CONTENT_TYPE, "text/javascript; charset=utf-8")], START).into_response()),
        "swagger-ui.css" => "text/css; charset=utf-8",
        "swagger-ui-bundle.js" => "text/javascript; charset=utf-8",
        "favicon-32x32.png" => "image/png",
        _ => return Err(Problem::request(RequestProblem::NotFound, "There is no such file.")),
    };
    let found = utoipa_swagger_ui::serve(&file, Arc::new(Config::new([""]))).ok().flatten();
    let found = found.ok_or_else(|| Problem::request(RequestProblem::NotFound, "There is no such file."))?;
    Ok(([(CONTENT_TYPE, kind), (CACHE_CONTROL, "public, max-age=3600")], found.bytes.into_owned()).into_response())
}
