//! Pausing: claiming stops on every replica and stays stopped over restarts, until somebody resumes. What runs goes on; what comes in waits.
//!
//! The state is a row of the database, and every claim looks at it in its own transaction: a claim that begins after the pause has been answered takes nothing.
//! What a process remembers of it only saves it from asking all the time, and tells people.

use super::core::Core;
use crate::{
    base::metrics,
    domain::{
        audit::{Action, Author},
        time::Timestamp,
    },
    store::{self, Tx, audit, setting},
};
use futures::FutureExt as _;
use serde::{Deserialize, Serialize};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

const SETTING: &str = "engine.paused";
/// How often a process that has met the pause looks whether it is over.
pub(super) const LOOK: Duration = Duration::from_secs(1);

/// A pause: since when, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    pub since: Timestamp,
    pub by: String,
}

/// What this process knows of it.
#[derive(Debug, Default)]
pub(super) struct Pause {
    state: Mutex<Option<Paused>>,
    resumed: Notify,
}

impl Pause {
    pub(super) fn state(&self) -> Option<Paused> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes what the database said.
    pub(super) fn note(&self, now: Option<Paused>) {
        metrics::ENGINE_PAUSED.set(&[], if now.is_some() { 1.0 } else { 0.0 });
        let before = std::mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), now.clone());
        match (before, now) {
            (None, Some(Paused { since, by })) => tracing::warn!(%since, by, "claiming is paused"),
            (Some(_), None) => {
                tracing::info!("claiming goes on");
                self.resumed.notify_one();
            }
            _ => {}
        }
    }
}

/// Whether claiming is paused, as the transaction sees it.
pub(super) async fn look(tx: &mut Tx<'_>) -> store::Result<Option<Paused>> {
    // Whatever stands there, somebody meant to stop claiming.
    let read = |text: String| serde_json::from_str(&text).unwrap_or(Paused { since: Timestamp::default(), by: "unknown".to_owned() });
    Ok(setting::get(tx, SETTING).await?.map(read))
}

/// Returns at once while claiming is not paused, as far as this process knows; otherwise when it goes on. `false`: the process drains.
pub(super) async fn over(core: &Core) -> bool {
    while core.pause.state().is_some() {
        tokio::select! {
            () = core.clock.sleep(core.jittered(LOOK, 0.2)) => {}
            () = core.pause.resumed.notified() => {}
            () = core.shutdown.soft().cancelled() => return false,
        }
        let work = store::work(move |tx| look(tx).boxed());
        // A database that is away says nothing: as before.
        if let Ok(state) = core.db.read("pause", work).await {
            core.pause.note(state);
        }
    }
    true
}

pub(super) async fn pause(core: &Core, author: &Author) -> store::Result<Paused> {
    let now = core.clock.now();
    let paused = Paused { since: now, by: author.name.clone() };
    let text: Arc<str> = serde_json::to_string(&paused).expect("a time and a name").into();
    let entry = core.audit_entry(author, Action::EnginePause, &"engine", None, now);
    let work = store::work(move |tx| {
        let (text, entry) = (Arc::clone(&text), Arc::clone(&entry));
        async move {
            if setting::insert(tx, SETTING, &text).await? {
                audit::append(tx, &entry).await?;
            }
            look(tx).await
        }
        .boxed()
    });
    let state = core.db.transaction("pause", work).await?;
    core.pause.note(state.clone());
    // Resumed by somebody else between the two statements: it was paused for that moment.
    Ok(state.unwrap_or(paused))
}

pub(super) async fn resume(core: &Core, author: &Author) -> store::Result<()> {
    let now = core.clock.now();
    let entry = core.audit_entry(author, Action::EngineResume, &"engine", None, now);
    let work = store::work(move |tx| {
        let entry = Arc::clone(&entry);
        async move {
            if setting::delete(tx, SETTING).await? {
                audit::append(tx, &entry).await?;
            }
            Ok(())
        }
        .boxed()
    });
    core.db.transaction("pause", work).await?;
    core.pause.note(None);
    Ok(())
}
