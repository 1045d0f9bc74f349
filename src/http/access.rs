//! The routes, and which roles may use each: the one table from which the gate decides, metrics get their labels and the documentation is made.

use crate::{base::config::Role, callers::Roles};
use axum::http::Method;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everyone.
    Open,
    /// Whoever has one of these roles.
    Roles(Roles),
}

/// A route as the router knows it.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
    pub access: Access,
}

const V1: Access = Access::Roles(Roles::of(&[Role::Legacy])); // goes with v1
/// What a v1 caller needs to go on from its 504, and everyone who submits or reads.
const FOLLOW: Access = Access::Roles(Roles::of(&[Role::Legacy, Role::Submit, Role::Read, Role::Admin]));
const SUBMIT: Access = Access::Roles(Roles::of(&[Role::Submit, Role::Admin]));
const LOOK: Access = Access::Roles(Roles::of(&[Role::Submit, Role::Read, Role::Admin]));
const READ: Access = Access::Roles(Roles::of(&[Role::Read, Role::Admin]));
const ADMIN: Access = Access::Roles(Roles::of(&[Role::Admin]));

const fn route(method: &'static str, path: &'static str, access: Access) -> Route {
    Route { method, path, access }
}

pub const ROUTES: &[Route] = &[
    route("POST", "/api/v1/protocol/merge/byAgenda/{agendaId}", V1), // goes with v1
    route("POST", "/task", SUBMIT),
    route("GET", "/task", FOLLOW),
    route("DELETE", "/task/{taskId}", SUBMIT),
    route("GET", "/task/{taskId}/status", FOLLOW),
    route("GET", "/task/{taskId}/result", FOLLOW),
    route("GET", "/task/{taskId}/events", FOLLOW),
    route("GET", "/protocol", FOLLOW),
    route("GET", "/protocol/{protocolId}", FOLLOW),
    route("GET", "/protocol/{protocolId}/document.pdf", FOLLOW),
    route("GET", "/protocol/{protocolId}/document.docx", FOLLOW),
    route("GET", "/protocol/{protocolId}/document.html", FOLLOW),
    route("GET", "/protocol/{protocolId}/document.json", FOLLOW),
    route("GET", "/api/agendas", LOOK),
    route("GET", "/api/agendas/{agendaId}/check", LOOK),
    route("GET", "/api/registers", READ),
    route("POST", "/api/tasks", SUBMIT),
    route("GET", "/api/tasks", READ),
    route("GET", "/api/tasks/{taskId}", READ),
    route("GET", "/api/dead-letters", READ),
    route("POST", "/api/dead-letters/replay", ADMIN),
    route("POST", "/api/dead-letters/{deadLetterId}/replay", ADMIN),
    route("POST", "/api/dead-letters/{deadLetterId}/dismiss", ADMIN),
    route("POST", "/api/engine/pause", ADMIN),
    route("POST", "/api/engine/resume", ADMIN),
    route("GET", "/api/events", LOOK),
    route("GET", "/api/events/{eventId}", LOOK),
    route("GET", "/api/callback-secret", SUBMIT),
    route("POST", "/api/subscriptions", ADMIN),
    route("GET", "/api/subscriptions", READ),
    route("GET", "/api/subscriptions/{subscriptionId}", READ),
    route("PATCH", "/api/subscriptions/{subscriptionId}", ADMIN),
    route("DELETE", "/api/subscriptions/{subscriptionId}", ADMIN),
    route("POST", "/api/subscriptions/{subscriptionId}/rotate-secret", ADMIN),
    route("POST", "/api/subscriptions/{subscriptionId}/ping", ADMIN),
    route("GET", "/api/deliveries", READ),
    route("POST", "/api/deliveries/resend", ADMIN),
    route("POST", "/api/deliveries/{deliveryId}/resend", ADMIN),
    route("GET", "/api/audit", READ),
    route("GET", "/api/migration", READ),
    route("GET", "/debug/hold", ADMIN),
    route("GET", "/livez", Access::Open),
    route("GET", "/readyz", Access::Open),
    route("GET", "/metrics", READ),
    route("GET", "/openapi.json", Access::Open),
    route("GET", "/problems", Access::Open),
    route("GET", "/problems/{code}", Access::Open),
    route("GET", "/docs", Access::Open),
    route("GET", "/docs/ui/{file}", Access::Open),
    route("GET", "/docs/migration", Access::Open),
];

/// The route of a request, if method and path have one; HEAD is asked for like GET.
#[must_use]
pub fn find(method: &Method, path: &str) -> Option<&'static Route> {
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    ROUTES.iter().find(|route| route.path == path && route.method == method)
}

impl Access {
    /// Part of the task API, whose use shows that a caller has moved off v1; what is for operators alone, or for v1, is not.
    #[must_use]
    pub const fn is_task_api(self) -> bool {
        match self {
            Self::Open => false,
            Self::Roles(wanted) => wanted.has(Role::Submit),
        }
    }

    #[must_use]
    pub const fn allows(self, roles: Roles) -> bool {
        match self {
            Self::Open => true,
            Self::Roles(wanted) => wanted.meets(roles),
        }
    }
}
