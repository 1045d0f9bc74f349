//! The one typed configuration tree.
//!
//! `config.default.toml` is embedded and is the reference; a file, then `PROTOCOL_BRIDGE__SECTION__KEY`, then flags override it ([`load()`]). Unknown keys are
//! refused with the nearest known one, a secret may be given as `…_file`, each section validates itself, and all problems are told at once. Dangerous pairs
//! are warned about. Secrets do not show in `Debug`.
//!
//! Only keys that something honours are here: a key that is accepted and does nothing is a trap.

mod agenda;
mod auth;
mod database;
mod documents;
mod duration;
mod engine;
mod events;
mod http;
mod keys;
mod layer;
mod legacy;
mod load;
mod nats;
mod operation;
mod problem;
mod secret;
mod text;
mod tree;

pub use agenda::AgendaConfig;
pub use auth::{Auth, CallerConfig, Rate, Role, check_name};
pub use database::{Database, Migrate};
pub use documents::{Documents, DocumentsPlace, Generator};
pub use engine::{Engine, Toggle};
pub use events::{Events, SubscriptionConfig};
pub use http::Http;
pub use keys::{documented, known};
pub use legacy::{Brownout, Legacy};
pub use load::{DEFAULTS, Loaded, Sources, load};
pub use nats::{NatsLogin, NatsServers};
pub use operation::{LogFormat, ShutdownConfig, Telemetry};
pub use problem::{Error, Problem};
pub use secret::Secret;
pub use tree::Config;
