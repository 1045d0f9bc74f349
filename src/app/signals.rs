//! The signals that ask the process to end.

use crate::base::chain::chain;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGTERM: from whoever runs us, with load balancers in front.
    Terminate,
    /// SIGINT: Ctrl-C.
    Interrupt,
}

pub(super) struct Signals {
    terminate: Option<Stream>,
    interrupt: Option<Stream>,
}

impl Signals {
    /// From now on these signals do not end the process by themselves.
    pub(super) fn listen() -> Self {
        let listen = |kind, name| match signal(kind) {
            Ok(stream) => Some(stream),
            Err(error) => {
                tracing::warn!(error = chain(&error), "{name} cannot be listened for and ends the process at once");
                None
            }
        };
        Self { terminate: listen(SignalKind::terminate(), "SIGTERM"), interrupt: listen(SignalKind::interrupt(), "SIGINT") }
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            () = received(&mut self.terminate) => Signal::Terminate,
            () = received(&mut self.interrupt) => Signal::Interrupt,
        }
    }
}

async fn received(stream: &mut Option<Stream>) {
    if let Some(stream) = stream
        && stream.recv().await.is_some()
    {
        return;
    }
    // Not listened for, or no more to come.
    std::future::pending::<()>().await;
}
