//! Who may call what: loopback rules without callers, keys and roles with them.

use crate::support::{Service, TestDatabase, on_both_databases};
use protocol_bridge::{
    base::config::{CallerConfig, Role},
    callers::Roles,
    generator::documents::hex,
    http::access::{Access, ROUTES},
};
use reqwest::Method;
use sha2::{Digest as _, Sha256};

fn caller(name: &str, roles: &[Role]) -> CallerConfig {
    let hash = hex(&Sha256::digest(format!("key-of-{name}").as_bytes()));
    CallerConfig {
        name: name.to_owned(),
        roles: roles.to_vec(),
        key_sha256: Some(hash),
        networks: vec![],
        user_agent: None,
        retired: false,
    }
}

on_both_databases! {
    async fn without_callers_only_our_own_hosts_are_answered(database: TestDatabase) {
        let service = Service::with(database, &[], |config| config.http.public_url = Some("https://minutes.example.org/".to_owned())).await;
        for (host, expected) in [("localhost", 200), ("localhost:1234", 200), ("127.0.0.1:8080", 200), ("[::1]:8080", 200), ("minutes.example.org", 200), ("evil.example.com", 403), ("localhost.evil.example", 403), ("192.168.1.7", 403)] {
            let response = service.get("/livez").header("host", host).send().await.unwrap();
            assert_eq!(response.status(), expected, "{host}");
        }
        for (origin, expected) in [("http://localhost:3000", 200), ("https://minutes.example.org", 200), ("https://evil.example.com", 403), ("null", 403)] {
            assert_eq!(service.get("/livez").header("origin", origin).send().await.unwrap().status(), expected, "{origin}");
        }
    }

    async fn every_route_asks_for_its_roles(database: TestDatabase) {
        let kinds = [("legacy", Role::Legacy), ("submit", Role::Submit), ("read", Role::Read), ("admin", Role::Admin)];
        let service = Service::with(database, &[], |config| config.callers = kinds.iter().map(|(name, role)| caller(name, &[*role])).collect()).await;
        for route in ROUTES {
            let path = route.path.replace("{agendaId}", "%20").replace("{code}", "internal").replace("{file}", "start.js").replace("{taskId}", "x").replace("{protocolId}", "x").replace("{deadLetterId}", "x");
            let call = || service.request(Method::from_bytes(route.method.as_bytes()).unwrap(), &path);
            let open = route.access == Access::Open;
            for key in [None, Some("wrong")] {
                let request = key.iter().fold(call(), reqwest::RequestBuilder::bearer_auth);
                let response = request.send().await.unwrap();
                assert_eq!(response.status() == 401, !open, "{} {} without a good key: {}", route.method, route.path, response.status());
                assert_eq!(response.headers().contains_key("www-authenticate"), !open);
            }
            for (name, role) in kinds {
                let status = call().bearer_auth(format!("key-of-{name}")).send().await.unwrap().status();
                assert_eq!(status != 403, route.access.allows(Roles::of(&[role])), "{} {} as {name}: {status}", route.method, route.path);
                assert_ne!(status, 401);
            }
        }
    }
}

/// The table that people read is the one that is enforced.
#[test]
fn the_documented_table_is_the_one_in_force() {
    let roles = [("legacy", Role::Legacy), ("submit", Role::Submit), ("read", Role::Read), ("admin", Role::Admin)];
    let lines = ROUTES.iter().map(|route| match route.access {
        Access::Open => format!("| `{} {}` | everyone |", route.method, route.path),
        Access::Roles(_) => {
            let allowed: Vec<&str> =
                roles.iter().filter(|(_, role)| route.access.allows(Roles::of(&[*role]))).map(|(name, _)| *name).collect();
            format!("| `{} {}` | {} |", route.method, route.path, allowed.join(", "))
        }
    });
    let documented: Vec<&str> = include_str!("../../docs/roles.md").lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(documented, lines.collect::<Vec<_>>());
}
