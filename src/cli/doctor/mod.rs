//! `doctor`: looks at everything the service needs, one thing apart from the other and each for a bounded time, and says what is wrong and what to do.
//!
//! It changes nothing but its own probe in the document store, which it takes away again; it takes no lock, so it runs beside a server on the same folder, and it
//! runs when everything is down: then it says so.

mod bar;
mod database;
mod documents;
mod examine;
mod finding;
mod folder;
mod report;
mod store;
mod surroundings;
mod transport;

pub(super) use examine::run;
