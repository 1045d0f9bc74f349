//! `GET /problems/{code}`: what a problem means and what to do about it; `GET /problems`: all of them.

use crate::http::{
    Problem, ProblemType, RequestProblem,
    page::{escape, linked, page},
    parameters::PathParameter,
    problem_advice::advice,
    shapes::ProblemDetails,
};
use axum::response::Response;

/// What a problem type means; the `type` of every problem is one of these pages.
#[utoipa::path(get, path = "/problems/{code}", tag = "health", operation_id = "problemPage",
    params(("code" = String, Path, description = "The type's code.", example = "bridge-timeout")),
    responses(
        (status = 200, description = "The page.", body = String, content_type = "text/html"),
        (status = 404, description = "There is no such type.", body = ProblemDetails, content_type = "application/problem+json"),
    ))]
pub async fn problem_page(PathParameter(code): PathParameter<String>) -> Result<Response, Problem> {
    let Some(kind) = ProblemType::of_code(&code) else {
        return Err(Problem::request(RequestProblem::NotFound, "There is no such problem type; GET /problems lists them."));
    };
    let (entry, advice) = (kind.entry(), advice(kind));
    let kind_of = match kind {
        ProblemType::Request(_) => "answer to a request",
        ProblemType::Failure(_) => "failure of a task; the answer of v1 and of /task/{taskId}/result",
    };
    let main = format!(
        "<h1>{}</h1>\n<p class=\"quiet\"><code>{}</code> · HTTP {} · {}</p>\n<h2>What it means</h2>\n<p>{}</p>\n\
         <h2>What to do</h2>\n<h3>If you call this service</h3>\n<p>{}</p>\n<h3>If you run it</h3>\n<p>{}</p>\n\
         <p class=\"quiet\">The answer's <code>instance</code> and its <code>X-Request-Id</code> header hold the same id as the log.</p>\n",
        escape(entry.title),
        entry.code,
        entry.status,
        escape(kind_of),
        linked(entry.meaning),
        linked(advice.caller),
        linked(advice.operator)
    );
    Ok(page(entry.title, &main))
}

/// All problem types.
#[utoipa::path(get, path = "/problems", tag = "health", operation_id = "problemsPage",
    responses((status = 200, description = "The page.", body = String, content_type = "text/html")))]
pub async fn problems_page() -> Response {
    let table = |failures: bool| {
        let kinds = ProblemType::all().filter(|kind| matches!(kind, ProblemType::Failure(_)) == failures);
        let rows = kinds.map(|kind| {
            let entry = kind.entry();
            let (status, code, title) = (entry.status, entry.code, escape(entry.title));
            format!("<tr><td>{status}</td><td><a href=\"/problems/{code}\">{code}</a></td><td>{title}</td></tr>\n")
        });
        format!(
            "<div class=\"table\"><table>\n<tr><th>HTTP</th><th>type</th><th>title</th></tr>\n{}</table></div>\n",
            rows.collect::<String>()
        )
    };
    let main = format!(
        "<h1>Problems</h1>\n<p>Every error is <code>application/problem+json</code> (RFC 9457). Its <code>type</code> is one of these pages, its \
         <code>detail</code> a sentence about this one time, its <code>instance</code> the id under which the log tells more.</p>\n\
         <h2>Requests that could not be served</h2>\n{}<h2>Tasks that failed</h2>\n<p>The same codes stand in a task's <code>failure.code</code> and in a dead \
         letter's <code>reason</code>.</p>\n{}",
        table(false),
        table(true)
    );
    page("Problems", &main)
}
