//! The OpenAPI document: collected from the handlers' annotations by the router, finished here.

use super::{
    access::{self, Access},
    problem::MEDIA_TYPE,
    router,
};
use axum::http::Method;
use std::sync::LazyLock;
use utoipa::openapi::{
    ContactBuilder, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, ResponseBuilder,
    path::Operation,
    security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    tag::TagBuilder,
};

/// The security scheme's name.
const KEY: &str = "key";

/// What the router's annotations are added to.
#[must_use]
pub fn base() -> OpenApi {
    let tag = |name: &str, description: &str| TagBuilder::new().name(name).description(Some(description)).build();
    let info = InfoBuilder::new()
        .title("protocol-bridge")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Generates the protocol (minutes) of a meeting from its agenda as a durable background task, and keeps an old synchronous call alive while its callers \
             move away from it. Every error is application/problem+json (RFC 9457); every type is a page of this service. A key goes as Authorization: Bearer KEY.",
        ))
        .contact(Some(ContactBuilder::new().name(Some("protocol-bridge")).build()));
    OpenApiBuilder::new()
        .info(info.build())
        .tags(Some([
            tag("v1", "The deprecated synchronous call."), // goes with v1
            tag("tasks", "Submit, follow, cancel."),
            tag("protocols", "Finished protocols and their documents."),
            tag("agendas", "What the agenda source holds."),
            tag("operation", "For operators: all tasks, dead letters, metrics."),
            tag("health", "Open to everyone: health, this document, what problems mean."),
        ]))
        .build()
}

/// The whole document.
#[must_use]
pub fn document() -> OpenApi {
    let mut document = router::routes().into_openapi();
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in [(Method::GET, &mut item.get), (Method::POST, &mut item.post), (Method::DELETE, &mut item.delete)] {
            if let Some(operation) = operation
                && access::find(&method, path).is_some_and(|route| route.access != Access::Open)
            {
                guard(operation);
            }
        }
    }
    let components = document.components.get_or_insert_default();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("A caller's key.")).build();
    components.add_security_scheme(KEY, SecurityScheme::Http(bearer));
    document
}

/// What every operation has that is not open to everyone: a key, and the answers that come before and around its own.
fn guard(operation: &mut Operation) {
    operation.security = Some(vec![SecurityRequirement::new(KEY, Vec::<String>::new())]);
    for (status, description) in [
        ("401", "No key, or not a known one."),
        ("403", "The caller lacks the role, or this is not an address the service answers to."),
        ("503", "The database does not answer; repeating is safe."),
    ] {
        operation.responses.responses.entry(status.to_owned()).or_insert_with(|| {
            let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ProblemDetails"))).build();
            RefOr::T(ResponseBuilder::new().description(description).content(MEDIA_TYPE, content).build())
        });
    }
}

/// The whole document as JSON, made once.
#[must_use]
pub fn document_text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| document().to_pretty_json().expect("the annotations hold only what JSON can say"));
    &TEXT
}
