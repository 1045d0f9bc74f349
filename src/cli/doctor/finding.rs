//! What a check found.

use serde::Serialize;
use std::{future::Future, time::Duration};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    /// It works, and somebody should look.
    Warning,
    Failed,
    /// Not looked at, because something before it failed.
    Skipped,
}

impl Verdict {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) verdict: Verdict,
    pub(super) found: String,
    /// What to do.
    pub(super) advice: Option<String>,
}

impl Finding {
    pub(super) fn ok(found: impl Into<String>) -> Self {
        Self { verdict: Verdict::Ok, found: found.into(), advice: None }
    }

    pub(super) fn warning(found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warning, found: found.into(), advice: Some(advice.into()) }
    }

    pub(super) fn failed(found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { verdict: Verdict::Failed, found: found.into(), advice: Some(advice.into()) }
    }

    pub(super) fn skipped(found: impl Into<String>) -> Self {
        Self { verdict: Verdict::Skipped, found: found.into(), advice: None }
    }
}

/// The check's finding, or that it took too long: one thing that hangs must not hide the others.
pub(super) async fn within(limit: Duration, check: impl Future<Output = Finding>) -> Finding {
    tokio::time::timeout(limit, check).await.unwrap_or_else(|_| {
        Finding::failed(
            format!("no answer within {} s", limit.as_secs()),
            "Something on the way takes what is sent and answers nothing: look at the network and at the other side.",
        )
    })
}
