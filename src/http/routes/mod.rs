//! One file per endpoint.

pub mod agenda_tasks;
pub mod agendas;
pub mod audit;
pub mod cancel_task;
pub mod check_agenda;
pub mod create_task;
pub mod dead_letters;
pub mod debug_hold;
pub mod dismiss;
pub mod docs_page;
pub mod document;
pub mod list_tasks;
pub mod livez;
pub mod merge_by_agenda; // goes with v1
pub mod metrics;
pub mod migration;
pub mod migration_page;
pub mod openapi_json;
pub mod pause;
pub mod problem_page;
pub mod protocol;
pub mod protocols;
pub mod readyz;
pub mod registers;
pub mod replay;
pub mod replay_many;
pub mod resume;
pub mod show_task;
pub mod submit;
pub mod submit_task;
pub mod task_events;
pub mod task_result;
pub mod task_status;
