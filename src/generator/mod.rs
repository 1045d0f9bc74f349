//! Floor 4: the four phases, agenda sources, typesetting; an engine [`TaskExecutor`](crate::engine::TaskExecutor).
//!
//! `source` brings an agenda's bytes, `format` reads them and asks `links` for more; `collect` (with `files`) → `check` (with `rules`) → `merge` → `publish` are the phases, `work` puts
//! them in a row, `journal` remembers what is done. They run for a task (`executor`), for a look without one (`facade`), and for the command line (`once`).

pub mod check;
pub mod collect;
mod compute;
pub mod document;
pub mod documents;
mod executor;
pub mod facade;
pub mod files;
pub mod format;
pub mod halt;
pub mod journal;
pub mod links;
pub mod merge;
pub mod meter;
pub mod number;
pub mod once;
pub mod orphans;
pub mod publish;
mod registers;
pub mod renderer;
pub mod renderer_in_process;
pub mod rules;
pub mod settings;
pub mod snapshot;
pub mod source;
mod stored_agenda;
pub mod typesetter;
pub mod words;
pub mod work;

pub(crate) use compute::compute;
pub use facade::Generator;
pub use halt::Halt;
pub use journal::Journal;
pub use meter::Meter;
pub use once::{GenerateInput, Generated, generate_once};
pub use renderer_in_process::InProcessRenderer;
