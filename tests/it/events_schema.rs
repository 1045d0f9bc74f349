//! The published schemas of events are those of the types that write them.

use protocol_bridge::domain::event::{self, EventType};
use std::fs;

/// `UPDATE_SCHEMA=1` writes them anew.
#[test]
fn the_schemas_are_those_of_the_types() {
    for kind in EventType::ALL {
        let path = format!("{}/docs/events/{kind}.schema.json", env!("CARGO_MANIFEST_DIR"));
        let schema = serde_json::to_string_pretty(&event::schema(kind)).expect("a schema is JSON") + "\n";
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            fs::write(&path, &schema).expect("the schema is written");
        }
        let published = fs::read_to_string(&path).unwrap_or_default();
        assert!(published == schema, "{path} is not that of the types; run the test with UPDATE_SCHEMA=1 to write it anew");
    }
}
