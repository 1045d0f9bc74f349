//! The ledger: the stored account of each caller's v1 and v2 use.
//!
//! A caller's first v1 call of a day, and its last-call time once a second, commit *with the submit*: a process killed right after a caller's only call of the
//! month has noted it all the same; a call that comes to no submit waits for its note instead. Everything else is added up here and written in batches, one transaction a second; a crash loses at most that second of
//! counts, never the fact of a call. Names that nobody proved are bounded: beyond [`MAX_CLAIMED_NAMES`] they are all `other`, so nobody can fill the table.

use crate::{
    base::{clock::Clock, metrics, shutdown::Shutdown},
    callers::{
        Callers, Identity,
        report::{Account, Report},
    },
    domain::{
        caller::{Caller, Proof, Sighting},
        time::Timestamp,
    },
    store::{self, Db, Tx, caller, legacy_call, setting},
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// How many names that were only claimed are kept apart.
const MAX_CLAIMED_NAMES: usize = 500;
/// How often counts are written, and how old a caller's stored last call may be before a submit writes it again.
const INTERVAL: Duration = Duration::from_secs(1);

/// How often the metrics that follow from the account are brought up to date.
const REFRESH: Duration = Duration::from_secs(5);
/// The most callers and day counts of an account; names are bounded, so a ledger of years stays below.
const MAX_CALLERS: i64 = 10_000;
const MAX_COUNTS: i64 = 50_000;
/// Under which the database remembers since when it watches.
const WATCHED_SINCE: &str = "ledger_watched_since_us";

/// The ledger; cheap to clone.
#[derive(Debug, Clone)]
pub struct Ledger(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    db: Db,
    clock: Clock,
    callers: Callers,
    quiet_period: Duration,
    book: Mutex<Book>,
}

/// What is not written yet, and what is known to be.
#[derive(Debug, Default)]
struct Book {
    claimed_names: HashSet<String>,
    /// Each caller's day and time that a submit wrote last.
    committed: HashMap<String, (String, Timestamp)>,
    counts: BTreeMap<(String, String, &'static str), u32>,
    v1: HashMap<String, Sighting>,
    v2: HashMap<String, Sighting>,
}

/// What a v1 call's submit writes for the ledger; [`Ledger::settle`] says what became of it.
#[derive(Debug, Clone)]
pub struct Entry {
    sighting: Sighting,
    day: String,
    with_submit: bool,
}

impl Ledger {
    /// Makes the ledger; [`Ledger::start`] begins writing.
    #[must_use]
    pub fn new(db: Db, clock: Clock, callers: Callers, quiet_period: Duration) -> Self {
        Self(Arc::new(Inner { db, clock, callers, quiet_period, book: Mutex::default() }))
    }

    /// Brings the metrics to what is stored and starts the loop that writes batches; it ends with `shutdown`.
    pub fn start(&self, shutdown: &Shutdown) {
        for name in self.0.callers.names().chain(["other"]) {
            metrics::LEGACY_LAST_REQUEST.set(&[name], 0.0);
            for outcome in metrics::LEGACY_OUTCOMES {
                metrics::LEGACY_REQUESTS.add(&[name, outcome], 0);
            }
        }
        let (ledger, soft) = (self.clone(), shutdown.soft().clone());
        shutdown.spawn("ledger", async move {
            let clock = &ledger.0.clock;
            let (mut loaded, mut refresh) = (false, clock.monotonic());
            while !soft.is_cancelled() {
                loaded = loaded || ledger.load().await;
                ledger.flush().await;
                if clock.monotonic() >= refresh {
                    ledger.show_verdict().await;
                    refresh = clock.monotonic() + REFRESH;
                }
                tokio::select! {
                    () = clock.sleep(INTERVAL) => {}
                    () = soft.cancelled() => {}
                }
            }
            ledger.flush().await;
        });
    }

    /// Notes since when the ledger watches, once and for all replicas, and restores what only the database knows after a restart. Answers whether it could.
    async fn load(&self) -> bool {
        let now = self.0.clock.now();
        let loaded = self.0.db.transaction("ledger", move |tx| {
            Box::pin(async move {
                setting::put_if_absent(tx, WATCHED_SINCE, &now.as_micros().to_string()).await?;
                caller::list(tx, MAX_CALLERS).await
            })
        });
        let known = match loaded.await {
            Ok(known) => known,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "the ledger could not be read yet; its metrics start at 0");
                return false;
            }
        };
        let mut last_calls: HashMap<String, Timestamp> = HashMap::new();
        let mut book = self.book();
        for known in known {
            if let Some(at) = known.last_v1_at {
                let last = last_calls.entry(self.0.callers.label(&known.caller.name).to_owned()).or_default();
                *last = at.max(*last);
            }
            if known.caller.proof == Proof::Claimed && book.claimed_names.len() < MAX_CLAIMED_NAMES {
                book.claimed_names.insert(known.caller.name);
            }
        }
        drop(book);
        for (label, at) in last_calls {
            self.show_last_call(&label, at);
        }
        true
    }

    /// The account as the database has it, this process's newest calls included, and what follows from it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn report(&self) -> store::Result<Report> {
        self.flush().await;
        let now = self.0.clock.now();
        let account = self.account(Some(day_of(now - self.0.quiet_period))).await?;
        Ok(Report::of(account, &self.0.callers, self.0.quiet_period, now))
    }

    /// Counts by day only with `counts_since`.
    async fn account(&self, counts_since: Option<String>) -> store::Result<Account> {
        self.0
            .db
            .read("ledger", move |tx| {
                let counts_since = counts_since.clone();
                Box::pin(async move {
                    let since = setting::get(tx, WATCHED_SINCE).await?.and_then(|micros| micros.parse().ok()).map(Timestamp::from_micros);
                    let known = caller::list(tx, MAX_CALLERS).await?;
                    let counts = match counts_since {
                        Some(day) => legacy_call::since(tx, &day, MAX_COUNTS).await?,
                        None => Vec::new(),
                    };
                    Ok(Account { watched_since: since, known, counts })
                })
            })
            .await
    }

    /// Sets the metrics that follow from the account; every replica says the same.
    async fn show_verdict(&self) {
        match self.account(None).await {
            Ok(account) => {
                let verdict = Report::of(account, &self.0.callers, self.0.quiet_period, self.0.clock.now()).verdict;
                #[expect(clippy::cast_precision_loss, reason = "the ledger's names are bounded")]
                metrics::LEGACY_CALLERS_ACTIVE.set(&[], verdict.active as f64);
                metrics::LEGACY_REMOVABLE.set(&[], if verdict.removable { 1.0 } else { 0.0 });
            }
            Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "the ledger could not be read for its metrics"),
        }
    }

    /// A v1 call has come in: what its submit is to write, if it comes to one.
    #[must_use]
    pub fn open(&self, identity: &Identity) -> Entry {
        let sighting = self.sighting(identity);
        let day = day_of(sighting.at);
        self.show_last_call(&sighting.caller.name, sighting.at);
        let book = self.book();
        let with_submit = book
            .committed
            .get(&sighting.caller.name)
            .is_none_or(|(committed_day, at)| *committed_day != day || sighting.at.since(*at) >= INTERVAL);
        Entry { sighting, day, with_submit }
    }

    /// Whether the entry was written with the submit; if not, it goes into the next batch. Answers whether that batch is to be written at once, because nothing
    /// newer than a second is stored of this caller.
    #[must_use]
    pub fn settle(&self, entry: &Entry, written: bool) -> bool {
        let mut book = self.book();
        let name = &entry.sighting.caller.name;
        if entry.with_submit {
            book.committed.insert(name.clone(), (entry.day.clone(), entry.sighting.at));
        }
        if entry.with_submit && written {
            return false;
        }
        *book.counts.entry((name.clone(), entry.day.clone(), legacy_call::RECEIVED)).or_default() += 1;
        book.v1.insert(name.clone(), entry.sighting.clone());
        entry.with_submit
    }

    /// How a v1 call ended: counted in the metric, and in the next batch.
    pub fn count(&self, entry: &Entry, outcome: &'static str) {
        let name = &entry.sighting.caller.name;
        metrics::LEGACY_REQUESTS.increment(&[self.0.callers.label(name), outcome]);
        *self.book().counts.entry((name.clone(), entry.day.clone(), outcome)).or_default() += 1;
    }

    /// The caller used the task API.
    pub fn saw_v2(&self, identity: &Identity) {
        let sighting = self.sighting(identity);
        self.book().v2.insert(sighting.caller.name.clone(), sighting);
    }

    /// Writes what has been added up; what the database does not take is kept for the next time.
    pub async fn flush(&self) {
        let (counts, v1, v2) = {
            let mut book = self.book();
            (std::mem::take(&mut book.counts), std::mem::take(&mut book.v1), std::mem::take(&mut book.v2))
        };
        if counts.is_empty() && v1.is_empty() && v2.is_empty() {
            return;
        }
        let batch = Arc::new((counts, v1, v2));
        let work = Arc::clone(&batch);
        let written = self.0.db.transaction("ledger", move |tx| {
            let batch = Arc::clone(&work);
            Box::pin(async move {
                let (counts, v1, v2) = &*batch;
                // In a fixed order, so that two replicas' batches cannot lock each other out.
                for name in v1.keys().chain(v2.keys()).collect::<std::collections::BTreeSet<_>>() {
                    if let Some(sighting) = v1.get(name) {
                        caller::seen_on_v1(tx, sighting).await?;
                    }
                    if let Some(sighting) = v2.get(name) {
                        caller::seen_on_v2(tx, sighting).await?;
                    }
                }
                for ((name, day, outcome), calls) in counts {
                    legacy_call::add(tx, name, day, outcome, *calls).await?;
                }
                Ok(())
            })
        });
        match written.await {
            // Written, or perhaps written: counting a second of calls twice is worse than missing it, and the fact of a call is written either way.
            Ok(()) | Err(store::Error::CommitUnknown(_)) => {}
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "the ledger's counts could not be written; they wait");
                let (counts, v1, v2) = &*batch;
                let mut book = self.book();
                for (key, calls) in counts {
                    *book.counts.entry(key.clone()).or_default() += calls;
                }
                for (name, sighting) in v1 {
                    book.v1.entry(name.clone()).or_insert_with(|| sighting.clone());
                }
                for (name, sighting) in v2 {
                    book.v2.entry(name.clone()).or_insert_with(|| sighting.clone());
                }
            }
        }
    }

    fn sighting(&self, identity: &Identity) -> Sighting {
        Sighting {
            caller: self.bounded(&identity.caller),
            at: self.0.clock.now(),
            address: identity.address.to_string(),
            user_agent: identity.user_agent.clone(),
        }
    }

    fn bounded(&self, caller: &Caller) -> Caller {
        let mut book = self.book();
        if caller.proof == Proof::Proved || book.claimed_names.contains(&caller.name) {
            caller.clone()
        } else if book.claimed_names.len() < MAX_CLAIMED_NAMES {
            book.claimed_names.insert(caller.name.clone());
            caller.clone()
        } else {
            Caller { name: "other".to_owned(), proof: Proof::Claimed }
        }
    }

    fn show_last_call(&self, name: &str, at: Timestamp) {
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit a double's 53 bits")]
        metrics::LEGACY_LAST_REQUEST.set(&[self.0.callers.label(name)], at.as_seconds() as f64);
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Writes the call with the submit, if it is to be.
    ///
    /// # Errors
    /// When the database does not take it.
    pub async fn write(&self, tx: &mut Tx<'_>) -> store::Result<()> {
        if self.with_submit {
            caller::seen_on_v1(tx, &self.sighting).await?;
            legacy_call::add(tx, &self.sighting.caller.name, &self.day, legacy_call::RECEIVED, 1).await?;
        }
        Ok(())
    }

    /// When the call came in.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        self.sighting.at
    }

    /// The name under which the call is kept.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.sighting.caller.name
    }
}

/// The day in UTC, YYYY-MM-DD.
fn day_of(at: Timestamp) -> String {
    let mut day = at.to_string();
    day.truncate(10);
    day
}
