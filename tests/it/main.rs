//! What the system promises, tried on real databases, the real router and the real program.
#![allow(clippy::disallowed_methods, reason = "tests wait on the machine's clock, and look into the databases with SQL of their own")]
#![allow(clippy::missing_panics_doc, clippy::must_use_candidate, reason = "nobody reads the docs of tests' helpers as an API")]

mod document_support;
mod support;

mod app_lifecycle;
mod bridge_call;
mod bridge_hang_up;
mod bridge_ledger;
mod bridge_log;
mod bridge_proxy;
mod bridge_stage;
mod cli_configuration;
mod config_load;
mod config_reference;
mod document_pdf;
mod document_renderer;
mod document_sample;
mod document_text;
mod engine_clock;
mod engine_ending;
mod engine_hub;
mod engine_lease;
mod engine_loops;
mod engine_relay;
mod engine_submit;
mod engine_world;
mod floors;
mod generator_format;
mod generator_node;
mod generator_rules;
mod generator_samples;
mod generator_schema;
mod generator_source;
mod generator_tasks;
mod http_document;
mod http_door;
mod http_gate;
mod http_idempotency;
mod http_openapi;
mod http_operation;
mod http_problem;
mod http_tasks;
mod metrics_reference;
mod process_contention;
mod process_crash;
mod process_drain;
mod process_lifecycle;
mod store_agree;
mod store_db;
mod store_lock;
mod store_migrations;
mod store_postgres;
mod store_queries;
mod store_schema;
mod store_sqlite;
