//! What the OpenAPI document says about events: their schemas, and the requests that we make to receivers of webhooks.

use crate::domain::event::{self, EventType, MEDIA_TYPE};
use serde_json::{Map, Value, json};

/// Adds schemas, webhooks, and the callback of a submission.
pub(super) fn add(document: &mut Value) {
    let mut webhooks = Map::new();
    for kind in EventType::ALL {
        let mut schema = event::schema(kind);
        if let Some(schema) = schema.as_object_mut() {
            // It is the document's own dialect.
            schema.remove("$schema");
        }
        document["components"]["schemas"][kind.as_str()] = schema;
        webhooks.insert(kind.as_str().to_owned(), json!({ "post": post(happening(kind), &reference(kind), &example(kind)) }));
    }
    let any = json!({ "oneOf": EventType::ALL.map(reference) });
    let post = post("The task has ended.", &any, &example(EventType::Completed));
    document["paths"]["/task"]["post"]["callbacks"] = json!({ "taskEnded": { "{$request.body#/callbackUrl}": { "post": post } } });
    document["webhooks"] = webhooks.into();
}

const fn happening(kind: EventType) -> &'static str {
    match kind {
        EventType::Completed => "A protocol is there.",
        EventType::Failed => "A task failed for good; there is no protocol.",
        EventType::Cancelled => "A task was cancelled.",
    }
}

fn reference(kind: EventType) -> Value {
    json!({ "$ref": format!("#/components/schemas/{kind}") })
}

fn post(summary: &str, schema: &Value, example: &Value) -> Value {
    let header = |name: &str, description: &str| json!({ "name": name, "in": "header", "required": true, "description": description, "schema": { "type": "string" } });
    json!({
        "summary": summary,
        "description": "Sent until it is answered 2xx, for some days, with growing pauses; redirects are not followed. The same event may come more than once.",
        "parameters": [
            header("webhook-id", "The event's id; the same on every delivery."),
            header("webhook-timestamp", "When this delivery was sent, in seconds since 1970."),
            header("webhook-signature", "v1,BASE64: HMAC-SHA256 over `id.timestamp.body` (Standard Webhooks); two of them, separated by a space, while a secret is being replaced."),
        ],
        "requestBody": { "required": true, "content": { (MEDIA_TYPE): { "schema": schema, "example": example } } },
        "responses": { "2XX": { "description": "Taken." }, "410": { "description": "Do not send to this address any more." } },
    })
}

fn example(kind: EventType) -> Value {
    let mut data = json!({ "taskId": "0198c0de-7a3e-7c11-9d2b-3f5a60718293", "agendaId": "42", "clientReference": "state-machine-17" });
    match kind {
        EventType::Completed => {
            data["protocolId"] = "0198c0de-8000-7000-8000-000000000001".into();
            data["documents"] = json!([{
                "format": "pdf", "url": "/protocol/0198c0de-8000-7000-8000-000000000001/document.pdf", "bytes": 48213,
                "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "pages": 7,
            }]);
        }
        EventType::Failed => {
            data["failure"] =
                json!({ "code": "agenda-not-found", "message": "The source knows no such agenda.", "retryable": "no", "phase": "COLLECT" });
        }
        EventType::Cancelled => {
            data["failure"] = json!({ "code": "cancelled", "message": "The task was cancelled.", "retryable": "no", "phase": null });
        }
    }
    json!({
        "specversion": "1.0", "id": "0198c0de-9000-7000-8000-000000000001", "source": event::SOURCE, "type": kind.as_str(),
        "subject": "42", "time": "2026-11-30T12:07:00Z", "datacontenttype": "application/json", "data": data,
    })
}
