//! Floor 5: HTTP. The router on one screen ([`router()`]), one file per endpoint under [`routes`], problem details, checks at the door, the server.
//!
//! Every answer passes [`observe`]: it gets its request id, its log line and its metric there, and a [`Problem`] gets its body.

pub mod accept_language;
pub mod access;
pub mod api;
pub mod conditional;
pub mod disposition;
pub mod door;
pub mod fields;
pub mod gate;
pub mod heartbeat;
pub mod idempotency;
pub mod json_scan;
pub mod late_head;
pub mod legacy_headers; // goes with v1
pub mod observe;
pub mod openapi;
mod openapi_events;
pub mod openapi_problems;
pub mod page;
pub mod parameters;
pub mod prefer;
pub mod problem;
pub mod problem_advice;
pub mod problem_type;
pub mod range;
pub mod router;
pub mod routes;
pub mod server;
pub mod shapes;
pub mod sight;
pub mod trace;

pub use api::Api;
pub use problem::Problem;
pub use problem_type::{ProblemType, RequestProblem};
pub use router::router;
