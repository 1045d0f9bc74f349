//! The OpenAPI document: what is served is described, what is described is served.

use crate::support::{Service, TestDatabase};
use protocol_bridge::http::{access::ROUTES, openapi};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn every_route_is_in_it_and_nothing_else() {
    let document: Value = serde_json::from_str(openapi::document_text()).unwrap();
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
    insta::assert_snapshot!(openapi::document_text());
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_served() {
    let service = Service::start(TestDatabase::sqlite().await).await;
    let (status, document) = service.json(service.get("/openapi.json")).await;
    assert_eq!((status, &document["info"]["title"]), (200, &"protocol-bridge".into()));
    assert_eq!(service.get("/docs/migration").send().await.unwrap().status(), 200);
}
