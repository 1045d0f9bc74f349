//! The ledger: the stored account of each caller's v1 and v2 use.
//!
//! A caller's first v1 call of a day, and its last-call time once a second, commit *with the submit*: a process killed right after a caller's only call of the
//! month has noted it all the same; a call that comes to no submit waits for its note instead. Everything else is added up here and written in batches, one transaction a second; a crash loses at most that second of
//! counts, never the fact of a call. Names that nobody proved are bounded: beyond [`MAX_CLAIMED_NAMES`] they are all `other`, so nobody can fill the table.

use super::ledger_metrics::LedgerMetrics;
use crate::{
    base::{
        chain::chain,
        clock::{Clock, Monotonic},
        shutdown::Shutdown,
        supervisor,
    },
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
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// How many names that were only claimed are kept apart.
const MAX_CLAIMED_NAMES: usize = 500;
/// How often counts are written, and how old a caller's stored last call may be before a submit writes it again.
const INTERVAL: Duration = Duration::from_secs(1);

/// How often the metrics that follow from the account are brought up to date.
const REFRESH: Duration = Duration::from_secs(5);
/// How long metrics that could not be read anew are still believed.
const TRUSTED: Duration = Duration::from_secs(30);
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
    metrics: LedgerMetrics,
    book: Mutex<Book>,
    /// That the database fails us has been said.
    told: AtomicBool,
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
        let metrics = LedgerMetrics::new(callers.clone());
        Self(Arc::new(Inner { db, clock, callers, quiet_period, metrics, book: Mutex::default(), told: AtomicBool::new(false) }))
    }

    /// Starts the loop that writes batches and brings the metrics to what is stored; it ends with `shutdown`.
    pub fn start(&self, shutdown: &Shutdown) {
        self.0.metrics.begin();
        let (ledger, soft) = (self.clone(), shutdown.soft().clone());
        supervisor::spawn(&self.0.clock, shutdown, "ledger", move || ledger.clone().run(soft.clone()));
    }

    async fn run(self, soft: CancellationToken) {
        let clock = &self.0.clock;
        let (mut loaded, mut refresh, mut shown_at) = (false, clock.monotonic(), None);
        while !soft.is_cancelled() {
            loaded = loaded || self.load().await;
            self.flush().await;
            if clock.monotonic() >= refresh {
                self.show(&mut shown_at).await;
                // Not later than midnight: the counts of the day begin anew then.
                refresh = clock.monotonic() + REFRESH.min(until_next_day(clock.now()));
            }
            tokio::select! {
                () = clock.sleep(INTERVAL.min(refresh.since(clock.monotonic()))) => {}
                () = soft.cancelled() => {}
            }
        }
        self.flush().await;
    }

    /// Notes since when the ledger watches, once and for all replicas, and takes up the names that were only claimed. Answers whether it could.
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
                self.complain(&error, "the ledger could not be read yet; its metrics say nothing until it can");
                return false;
            }
        };
        let mut book = self.book();
        for known in known {
            if known.caller.proof == Proof::Claimed && book.claimed_names.len() < MAX_CLAIMED_NAMES {
                book.claimed_names.insert(known.caller.name);
            }
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
        let account = self.account(day_of(now - self.0.quiet_period)).await?;
        Ok(Report::of(account, &self.0.callers, self.0.quiet_period, now))
    }

    /// With the counts of `first_day` and later.
    async fn account(&self, first_day: String) -> store::Result<Account> {
        self.0
            .db
            .read("ledger", move |tx| {
                let first_day = first_day.clone();
                Box::pin(async move {
                    let since = setting::get(tx, WATCHED_SINCE).await?.and_then(|micros| micros.parse().ok()).map(Timestamp::from_micros);
                    let known = caller::list(tx, MAX_CALLERS).await?;
                    let counts = legacy_call::since(tx, &first_day, MAX_COUNTS).await?;
                    Ok(Account { watched_since: since, known, counts })
                })
            })
            .await
    }

    /// Sets the metrics that follow from the account; every replica says the same. When it cannot be read they keep what they said for a while, and then say nothing.
    async fn show(&self, shown_at: &mut Option<Monotonic>) {
        let now = self.0.clock.now();
        let today = day_of(now);
        match self.account(today.clone()).await {
            Ok(account) => {
                self.0.metrics.show(&Report::of(account, &self.0.callers, self.0.quiet_period, now), &today);
                *shown_at = Some(self.0.clock.monotonic());
            }
            Err(error) => {
                tracing::debug!(error = chain(&error), "the ledger could not be read for its metrics");
                if shown_at.take_if(|at| self.0.clock.monotonic().since(*at) >= TRUSTED).is_some() {
                    self.0.metrics.forget();
                }
            }
        }
    }

    /// A v1 call has come in: what its submit is to write, if it comes to one.
    #[must_use]
    pub fn open(&self, identity: &Identity) -> Entry {
        let sighting = self.sighting(identity);
        let day = day_of(sighting.at);
        self.0.metrics.called(&sighting.caller.name, sighting.at);
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
        self.0.metrics.ended(name, outcome);
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
            Ok(()) | Err(store::Error::CommitUnknown(_)) => self.0.told.store(false, Ordering::Relaxed),
            Err(error) => {
                self.complain(&error, "the ledger's counts could not be written; they wait");
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

    /// Once an outage, however often it is tried.
    fn complain(&self, error: &store::Error, what: &str) {
        if !self.0.told.swap(true, Ordering::Relaxed) {
            tracing::warn!(error = chain(error), "{what}");
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

/// How long the day (UTC) still lasts.
fn until_next_day(now: Timestamp) -> Duration {
    const DAY: i64 = 86_400_000_000;
    Duration::from_micros(u64::try_from(DAY - now.as_micros().rem_euclid(DAY)).unwrap_or_default())
}

/// The day in UTC, YYYY-MM-DD.
fn day_of(at: Timestamp) -> String {
    let mut day = at.to_string();
    day.truncate(10);
    day
}
