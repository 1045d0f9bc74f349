//! The OpenAPI document: collected from the handlers' annotations by the router, finished here.

use super::{
    access::{self, Access},
    openapi_events, openapi_problems, router,
};
use crate::domain::{audit::Action, failure::FailureCode};
use axum::http::Method;
use serde_json::{Value, json};
use std::sync::LazyLock;
use utoipa::openapi::{
    ContactBuilder, InfoBuilder, OpenApi, OpenApiBuilder, ServerBuilder,
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
        .servers(Some([ServerBuilder::new().url("/").description(Some("This service.")).build()]))
        .tags(Some([
            tag("v1", "The deprecated synchronous call."), // goes with v1
            tag("tasks", "Submit, follow, cancel."),
            tag("protocols", "Finished protocols and their documents."),
            tag("agendas", "What the agenda source holds."),
            tag("events", "What is told when a task ends: streams, webhooks and who gets them."),
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
        for (method, operation) in [
            (Method::GET, &mut item.get),
            (Method::POST, &mut item.post),
            (Method::PATCH, &mut item.patch),
            (Method::DELETE, &mut item.delete),
        ] {
            if let Some(operation) = operation
                && access::find(&method, path).is_some_and(|route| route.access != Access::Open)
            {
                operation.security = Some(vec![SecurityRequirement::new(KEY, Vec::<String>::new())]);
            }
        }
    }
    let components = document.components.get_or_insert_default();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("A caller's key.")).build();
    components.add_security_scheme(KEY, SecurityScheme::Http(bearer));
    document
}

/// The whole document as JSON, made once. Without configured callers nobody needs a key, and the document says so.
#[must_use]
pub fn document_text(keys_are_needed: bool) -> &'static str {
    static WITH_KEYS: LazyLock<String> = LazyLock::new(|| format!("{:#}", complete()));
    static WITHOUT: LazyLock<String> = LazyLock::new(|| {
        let mut document = complete();
        for operation in operations(&mut document) {
            if let Some(ways) = operation.get_mut("security").and_then(Value::as_array_mut) {
                ways.push(json!({}));
            }
        }
        format!("{document:#}")
    });
    if keys_are_needed { &WITH_KEYS } else { &WITHOUT }
}

fn complete() -> Value {
    let mut document = serde_json::to_value(document()).expect("the annotations hold only what JSON can say");
    for operation in operations(&mut document) {
        // Summaries are plain text, their doc comments are Markdown.
        if let Some(summary) = operation.get_mut("summary").filter(|summary| summary.is_string()) {
            *summary = summary.as_str().unwrap_or_default().replace('`', "").into();
        }
    }
    sharpen(&mut document);
    openapi_problems::add(&mut document);
    openapi_events::add(&mut document);
    document
}

/// A time with an offset; RFC 3339 allows more than is taken here, such as a leap second.
const TIME: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$";
/// What can be stored.
const NO_NUL: &str = "^[^\\u0000]*$";

/// What the annotations cannot say: unknown fields are refused, an empty query parameter counts as left out, and what is the same in many places.
fn sharpen(document: &mut Value) {
    let schemas = &mut document["components"]["schemas"];
    for name in [
        "TaskRequest",
        "GenericTaskRequest",
        "ReplayRequest",
        "ReplayManyRequest",
        "SubscriptionRequest",
        "SubscriptionPatch",
        "RotateRequest",
        "ResendRequest",
    ] {
        schemas[name]["additionalProperties"] = false.into();
    }
    schemas["GenericTaskRequest"]["properties"]["payload"]["type"] = json!(["object", "string"]);
    let replay = &mut schemas["ReplayManyRequest"];
    replay["properties"]["reason"]["pattern"] = one_of(FailureCode::ALL.map(|code| code.entry().code), "").into();
    // A filter, or all.
    let there = |name: &str, schema: Value| json!({ "required": [name], "properties": { name: schema } });
    let mut ways = ["reason", "agendaId", "from", "to"].map(|name| there(name, json!({ "type": "string" }))).to_vec();
    ways.push(there("all", json!({ "const": true })));
    replay["anyOf"] = ways.into();
    times(document);
    let parameters = operations(document).filter_map(|operation| operation.get_mut("parameters").and_then(Value::as_array_mut)).flatten();
    for parameter in parameters.filter(|parameter| parameter["in"] == "query" && parameter["required"] == false) {
        let mut schema = parameter["schema"].take();
        let is_time = schema["format"] == "date-time";
        match parameter["name"].as_str() {
            Some("reason") => schema["pattern"] = one_of(FailureCode::ALL.map(|code| code.entry().code), "?").into(),
            Some("action") => schema["pattern"] = one_of(Action::ALL.map(Action::as_str), "?").into(),
            Some("actor" | "caller" | "object") => schema["pattern"] = NO_NUL.into(),
            _ => {}
        }
        parameter["schema"] = if is_time { json!({ "anyOf": [schema, { "type": "string", "maxLength": 0 }] }) } else { schema };
    }
}

/// One of these words; `often` is `?` where an empty text is taken, too.
fn one_of<const N: usize>(words: [&str; N], often: &str) -> String {
    format!("^({}){often}$", words.join("|").replace('.', "[.]"))
}

/// Says of every time how it is written.
fn times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("format").is_some_and(|format| format == "date-time") {
                fields.insert("pattern".to_owned(), TIME.into());
            }
            fields.values_mut().for_each(times);
        }
        Value::Array(items) => items.iter_mut().for_each(times),
        _ => {}
    }
}

fn operations(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    let items = document["paths"].as_object_mut().into_iter().flatten().filter_map(|(_, item)| item.as_object_mut());
    items.flatten().map(|(_, operation)| operation)
}
