//! The JSON shapes of answers, in one place each, so that a task looks the same wherever it is shown.

pub mod agenda;
pub mod audit;
pub mod dead_letter;
pub mod delivery;
pub mod engine_state;
pub mod list;
pub mod migration;
pub mod problem_details;
pub mod protocol;
pub mod register;
pub mod replay_summary;
pub mod subscription;
pub mod task;

pub use agenda::{AgendaCheck, AgendaItem};
pub use audit::AuditShape;
pub use dead_letter::DeadLetterShape;
pub use delivery::{DeliveryShape, Resent};
pub use engine_state::EngineState;
pub use list::List;
pub use migration::Migration;
pub use problem_details::{FaultShape, ProblemDetails};
pub use protocol::ProtocolResponse;
pub use register::RegisterShape;
pub use replay_summary::ReplaySummary;
pub use subscription::{CallbackSecret, PingResult, SubscriptionList, SubscriptionShape, SubscriptionWithSecret};
pub use task::{AttemptShape, TaskStatus, TaskWithAttempts};
