//! Which build this is.

pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit it was built from; `unknown` outside a repository.
pub const COMMIT: &str = env!("PROTOCOL_BRIDGE_COMMIT");
