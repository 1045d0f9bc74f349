//! `check`: everything that is wrong with agendas, without a server and without making a protocol.

mod command;
mod report;

pub(super) use command::run;
