//! The OpenAPI document: what is served is described, what is described is served.

use crate::support::{Service, TestDatabase};
use protocol_bridge::http::{ProblemType, access::ROUTES, openapi, problem_advice};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn every_route_is_in_it_and_nothing_else() {
    let document: Value = serde_json::from_str(openapi::document_text(true)).unwrap();
    let described: BTreeSet<(String, String)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, item)| item.as_object().unwrap().keys().map(move |method| (path.clone(), method.to_uppercase())))
        .collect();
    let served: BTreeSet<(String, String)> = ROUTES.iter().map(|route| (route.path.to_owned(), route.method.to_owned())).collect();
    assert_eq!(described, served);
    assert_eq!(document["paths"]["/api/v1/protocol/merge/byAgenda/{agendaId}"]["post"]["deprecated"], true); // goes with v1
    assert_eq!(document["openapi"].as_str().unwrap()[..3], *"3.1");
}

#[test]
fn it_changes_only_on_purpose() {
    insta::assert_snapshot!(openapi::document_text(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_served() {
    let service = Service::start(TestDatabase::sqlite().await).await;
    let (status, document) = service.json(service.get("/openapi.json")).await;
    assert_eq!((status, &document["info"]["title"]), (200, &"protocol-bridge".into()));
    assert_eq!(document["paths"]["/task"]["post"]["security"], serde_json::json!([{ "key": [] }, {}]), "nobody needs a key here");
}

#[test]
fn every_problem_has_an_example_and_every_reference_leads_somewhere() {
    let document: Value = serde_json::from_str(openapi::document_text(true)).unwrap();
    for kind in ProblemType::all() {
        let entry = kind.entry();
        let example = &document["components"]["examples"][entry.code]["value"];
        assert_eq!((&example["type"], &example["status"]), (&format!("/problems/{}", entry.code).into(), &entry.status.into()));
    }
    let mut references = Vec::new();
    collect(&document, &mut references);
    for reference in references {
        let pointer = reference.strip_prefix('#').expect("into this document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    // goes with v1: begin
    let v1 = &document["paths"]["/api/v1/protocol/merge/byAgenda/{agendaId}"]["post"]["responses"];
    for status in ["408", "410", "413", "504"] {
        assert!(v1[status]["content"]["application/problem+json"]["examples"].is_object(), "{status}: {v1}");
    }
    // goes with v1: end
    assert!(document["paths"]["/task"]["post"]["callbacks"]["taskEnded"]["{$request.body#/callbackUrl}"]["post"].is_object());
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            references.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| collect(value, references));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_about_it_need_nothing_from_elsewhere() {
    let service = Service::start(TestDatabase::sqlite().await).await;
    for (path, words) in [
        ("/docs", "swagger-ui-bundle.js"),
        ("/docs/migration", "<td>one attempt at the protocol</td>"),
        ("/problems", "href=\"/problems/bridge-timeout\""),
        ("/problems/bridge-timeout", "If you run it"),
    ] {
        let response = service.get(path).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("http"), "{path}: {policy}");
        let text = response.text().await.unwrap();
        assert!(text.contains(words), "{path}: {text}");
        for (kind, quote) in [("src", "src=\""), ("stylesheet", "rel=\"stylesheet\" href=\"")] {
            let sources = text.split(quote).skip(1).map(|rest| rest.split('"').next().unwrap());
            for source in sources {
                assert!(source.starts_with("/docs/ui/"), "{path}: {kind} {source}");
                let file = service.get(source).send().await.unwrap();
                assert_eq!(file.status(), 200, "{source}");
            }
        }
    }
    let bundle = service.get("/docs/ui/swagger-ui-bundle.js").send().await.unwrap();
    assert_eq!(bundle.headers()["content-type"], "text/javascript; charset=utf-8");
    assert!(bundle.bytes().await.unwrap().len() > 500_000);
    assert_eq!(service.get("/docs/ui/index.html").send().await.unwrap().status(), 404);
    let migration = service.get("/docs/migration").send().await.unwrap().text().await.unwrap();
    for link in migration.split("href=\"/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert_eq!(service.get(&format!("/{link}")).send().await.unwrap().status(), 200, "/{link}");
    }
}

/// What operators are told to look at exists.
#[test]
fn advice_names_configuration_keys_and_metrics_that_there_are() {
    let (configuration, metrics) = (include_str!("../../config.default.toml"), include_str!("../../dashboards/README.md"));
    for kind in ProblemType::all() {
        let advice = problem_advice::advice(kind);
        for quoted in [advice.caller, advice.operator].iter().flat_map(|text| text.split('"').skip(1).step_by(2)) {
            if quoted.starts_with("protocol_bridge_") {
                assert!(metrics.contains(&format!("| `{quoted}` |")), "{kind:?}: {quoted}");
            } else if let Some((section, key)) =
                quoted.split_once('.').filter(|(section, key)| !section.contains([' ', '/']) && !key.contains(' '))
            {
                let rest = configuration.split(&format!("\n[{section}]\n")).nth(1).unwrap_or_else(|| panic!("{kind:?}: {quoted}"));
                let section = rest.split("\n[").next().unwrap();
                assert!(section.lines().any(|line| line.trim_start_matches('#').starts_with(&format!("{key} ="))), "{kind:?}: {quoted}");
            }
        }
    }
}
