//! Every metric of the service, declared once with its help text, unit in the name and labels from closed sets; all exist from the start, counters at 0, because a
//! counter that is born with its first event never shows that event.
//!
//! Use: `metrics::TASKS_FINISHED.increment(&["protocol", "completed"])`: label values in the order in which they are declared.

pub use super::metric::{Counter, Description, Gauge, Histogram, Replicas, Values};
use super::metric::{counter, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use std::sync::{Mutex, OnceLock, PoisonError};

/// From the database: any replica's word will do.
const SHARED: Replicas = Replicas::Shared("max");

const KIND: (&str, Values) = ("kind", Values::Closed(&["protocol", "demo"]));
const STATUS: (&str, Values) = ("status", Values::Closed(&["PENDING", "IN_PROGRESS", "COMPLETED", "FAILED", "CANCELLED"]));
const FINISHED: (&str, Values) = ("outcome", Values::Closed(&["completed", "failed", "cancelled"]));
const ATTEMPT: (&str, Values) = ("outcome", Values::Closed(&["completed", "failed", "retried", "cancelled", "released", "worker-lost"]));
const LEGACY: (&str, Values) = ("outcome", Values::Closed(LEGACY_OUTCOMES));
const REASON: (&str, Values) = (
    "reason",
    Values::Closed(&[
        "agenda-not-found",
        "agenda-not-ready",
        "agenda-invalid",
        "agenda-keeps-changing",
        "agenda-too-large",
        "agenda-source-unavailable",
        "report-unavailable",
        "render-failed",
        "render-limit",
        "storage-unavailable",
        "deadline-exceeded",
        "worker-lost",
        "cancelled",
        "internal",
    ]),
);
/// How a v1 call can end.
pub const LEGACY_OUTCOMES: &[&str] = &["completed", "failed", "timeout", "async", "gone", "draining", "refused", "disconnected"];
/// Transactions by the name given to `Db::transaction`; one that is not listed here is counted as `other`.
pub const TRANSACTIONS: &[&str] = &[
    "submit_task",
    "claim_tasks",
    "claim_message",
    "relay_claim",
    "relay_mark",
    "finish_task",
    "retry_task",
    "release_task",
    "renew_leases",
    "checkpoint",
    "progress",
    "rescue",
    "cancel_task",
    "place_events",
    "claim_deliveries",
    "settle_deliveries",
    "deliveries",
    "events",
    "late_callback",
    "resend",
    "subscription",
    "subscriptions",
    "replay_task",
    "retention",
    "orphaned_blobs",
    "owed_answer",
    "ledger",
    "reserve_number",
    "status_query",
    "attempts",
    "audit",
    "claim_look_up",
    "dead_letters",
    "dismiss_dead_letter",
    "document_store",
    "due_tasks",
    "expired_leases",
    "find_newest_protocol",
    "find_own_step",
    "find_steps",
    "gauges",
    "list_registers",
    "messages",
    "pause",
    "relay_back_off",
    "schema",
    "task",
    "tasks",
    "touch_steps",
    "other",
];

pub static LEGACY_REQUESTS: Counter =
    counter("legacy_requests_total", &[("caller", Values::AtStart), LEGACY], "v1 calls by configured caller (others: other) and outcome.");
pub static LEGACY_LAST_REQUEST: Gauge = gauge(
    "legacy_last_request_timestamp_seconds",
    &[("caller", Values::AtStart)],
    SHARED,
    "Unix time of the caller's last v1 call; 0: never. From the ledger, so it survives restarts.",
);
pub static LEGACY_CALLS_TODAY: Gauge = gauge(
    "legacy_calls_today",
    &[("caller", Values::AtStart)],
    SHARED,
    "v1 calls that came in on this day (UTC), whatever became of them. From the ledger: whole numbers that survive restarts, and not a counter, as it begins anew at midnight.",
);
pub static LEGACY_ANSWERS_TODAY: Gauge = gauge(
    "legacy_answers_today",
    &[("caller", Values::AtStart), LEGACY],
    SHARED,
    "How the v1 calls of this day (UTC) ended; outcome timeout is the 504. From the ledger, like legacy_calls_today.",
);
pub static LEGACY_CALLER_STATE: Gauge = gauge(
    "legacy_caller_state",
    &[("caller", Values::AtStart), ("state", Values::AtStart)],
    SHARED,
    "How many callers of this name (1 for a configured one, any number for other) are in this state, as GET /api/migration says.",
);
pub static LEGACY_CALLERS_ACTIVE: Gauge =
    gauge("legacy_callers_active", &[], SHARED, "Callers, configured or not, that used v1 within legacy.quiet_period.");
pub static LEGACY_REMOVAL_BLOCKED: Gauge = gauge(
    "legacy_removal_blocked",
    &[("by", Values::Closed(&["calls", "observation", "callers"]))],
    SHARED,
    "1 for what keeps v1 from being removed: calls within the quiet period, too short an observation, configured callers that have not moved.",
);
pub static LEGACY_WATCHED_SINCE: Gauge =
    gauge("legacy_watched_since_timestamp_seconds", &[], SHARED, "Unix time since when the ledger watches v1.");
pub static LEGACY_QUIET_PERIOD: Gauge =
    gauge("legacy_quiet_period_seconds", &[], SHARED, "legacy.quiet_period: how long nobody may have called v1 before it can be removed.");
pub static LEGACY_NEWEST_CALLER: Gauge = gauge(
    "legacy_newest_caller_timestamp_seconds",
    &[],
    SHARED,
    "Unix time at which a name called v1 that had never called it before; 0: nobody ever called.",
);
pub static LEGACY_SUNSET: Gauge =
    gauge("legacy_sunset_timestamp_seconds", &[], SHARED, "legacy.sunset as Unix time; 0: none is configured.");
pub static LEGACY_REMOVABLE: Gauge =
    gauge("legacy_removable", &[], Replicas::Shared("min"), "1 when v1 can be removed, as GET /api/migration says.");
pub static LEGACY_WAITERS: Gauge = gauge("legacy_waiters", &[], Replicas::Sum, "v1 calls held open now by this process.");
pub static LEGACY_WAITERS_LIMIT: Gauge = gauge(
    "legacy_waiters_limit",
    &[],
    Replicas::Sum,
    "How many v1 calls this process can hold: legacy.max_waiters, or fewer if the limit of open files is lower.",
);
pub static LEGACY_LONGEST_WAIT: Gauge = gauge(
    "legacy_longest_wait_seconds",
    &[],
    Replicas::Each,
    "How long the v1 call that this process has held longest is waiting by now; 0: none waits.",
);
pub static LEGACY_WAIT: Histogram = histogram("legacy_wait_seconds", &[LEGACY], "How long v1 calls were held, by outcome.");
pub static TASKS_SUBMITTED: Counter = counter(
    "tasks_submitted_total",
    &[KIND, ("via", Values::Closed(&["v1", "v2"]))],
    "Tasks accepted (joins and repeats are not counted).",
);
pub static TASKS_FINISHED: Counter = counter("tasks_finished_total", &[KIND, FINISHED], "Tasks that reached a terminal status.");
pub static TASK_RETRIES: Counter = counter("task_retries_total", &[KIND], "Failed attempts that were put back for another.");
pub static TASKS: Gauge = gauge("tasks", &[STATUS], SHARED, "Tasks in the database by status.");
pub static TASK_OLDEST_RUNNABLE: Gauge =
    gauge("task_oldest_runnable_age_seconds", &[], SHARED, "How long the longest due task has waited for a worker.");
pub static TASK_PICKUP: Histogram = histogram("task_pickup_seconds", &[], "From due to claimed.");
pub static TASK_RUN: Histogram = histogram("task_run_seconds", &[KIND, ATTEMPT], "How long attempts ran.");
pub static GENERATOR_PHASE: Histogram = histogram(
    "generator_phase_seconds",
    &[("phase", Values::Closed(&["COLLECT", "CHECK", "MERGE", "PUBLISH"]))],
    "How long the generator's phases took.",
);
pub static LEASES_LOST: Counter =
    counter("leases_lost_total", &[], "Attempts stopped because their lease was lost or could not be renewed.");
pub static TASKS_RESCUED: Counter = counter("tasks_rescued_total", &[], "Tasks taken back from workers whose lease ran out.");
pub static ENGINE_PAUSED: Gauge = gauge("engine_paused", &[], SHARED, "1 while an operator has paused claiming.");
pub static DEAD_LETTERS: Gauge = gauge("dead_letters", &[REASON], SHARED, "Open dead letters by reason.");
pub static OUTBOX_UNPUBLISHED: Gauge = gauge("outbox_unpublished", &[], SHARED, "Messages due and not yet handed to the transport.");
pub static OUTBOX_OLDEST: Gauge =
    gauge("outbox_oldest_unpublished_age_seconds", &[], SHARED, "How long the longest due message has waited.");
pub static RELAY_PUBLISHED: Counter =
    counter("relay_published_total", &[("transport", Values::Closed(&["local", "jetstream"]))], "Messages handed to the transport.");
pub static INBOX_DUPLICATES: Counter = counter("inbox_duplicates_total", &[], "Messages dropped because the inbox had them already.");
pub static RELAY_DUPLICATES: Counter = counter(
    "relay_duplicates_total",
    &[("transport", Values::Closed(&["local", "jetstream"]))],
    "Messages that were sent again and that the transport had already; whichever was first counts.",
);
pub static TRANSPORT_UP: Gauge = gauge("transport_up", &[], Replicas::Each, "1 when the transport takes messages.");
pub static WAKEUP_LISTENER_UP: Gauge =
    gauge("wakeup_listener_up", &[], Replicas::Each, "1 when hints from other processes arrive (always 1 on SQLite).");
pub static DELIVERIES: Counter = counter(
    "deliveries_total",
    &[("sink", Values::Closed(&["jetstream", "webhook"])), ("outcome", Values::Closed(&["delivered", "retried", "given-up"]))],
    "Tries to deliver an event, by sink and what became of them.",
);
pub static DELIVERIES_PENDING: Gauge = gauge(
    "deliveries_pending",
    &[("sink", Values::Closed(&["jetstream", "webhook"]))],
    SHARED,
    "Deliveries of events that are due or wait for their next try.",
);
pub static HTTP_REQUEST: Histogram = histogram(
    "http_request_seconds",
    &[("route", Values::AtStart), ("method", Values::AtStart), ("status", Values::AtStart)],
    "Requests by route, method and status class; unknown routes: other. v1 calls are held for minutes, so look at them by route.",
);
pub static DB_POOL_IN_USE: Gauge = gauge("db_pool_in_use", &[], Replicas::Sum, "Database connections in use by this process.");
pub static DB_POOL_LIMIT: Gauge = gauge("db_pool_limit", &[], Replicas::Sum, "The most database connections that this process opens.");
pub static DB_TRANSACTION: Histogram =
    histogram("db_transaction_seconds", &[("name", Values::Closed(TRANSACTIONS))], "Transactions by name, queueing and repeats included.");
pub static RETENTION_DELETED: Counter = counter(
    "retention_deleted_total",
    &[("what", Values::Closed(&["tasks", "dead_letters", "outbox", "inbox", "events", "idempotency_keys", "steps", "legacy_calls"]))],
    "Rows deleted because they were older than their retention.",
);
pub static LOOP_PANICS: Counter = counter("loop_panics_total", &[], "Background loops that panicked and were restarted.");
pub static DISK_FREE: Gauge = gauge("disk_free_bytes", &[], Replicas::Each, "Free space on the disk that holds data_dir.");
pub static GAUGES_READ: Gauge = gauge(
    "gauges_read_timestamp_seconds",
    &[],
    Replicas::Each,
    "Unix time at which this process last read from the database what its gauges say of it; 0: not yet.",
);
pub static BUILD_INFO: Gauge =
    gauge("build_info", &[("version", Values::AtStart), ("commit", Values::AtStart)], Replicas::Each, "1, with the version as a label.");

static COUNTERS: &[&Counter] = &[
    &LEGACY_REQUESTS,
    &TASKS_SUBMITTED,
    &TASKS_FINISHED,
    &TASK_RETRIES,
    &LEASES_LOST,
    &TASKS_RESCUED,
    &RELAY_PUBLISHED,
    &RELAY_DUPLICATES,
    &INBOX_DUPLICATES,
    &DELIVERIES,
    &RETENTION_DELETED,
    &LOOP_PANICS,
];
static GAUGES: &[&Gauge] = &[
    &LEGACY_LAST_REQUEST,
    &LEGACY_CALLS_TODAY,
    &LEGACY_ANSWERS_TODAY,
    &LEGACY_CALLER_STATE,
    &LEGACY_CALLERS_ACTIVE,
    &LEGACY_REMOVABLE,
    &LEGACY_REMOVAL_BLOCKED,
    &LEGACY_WATCHED_SINCE,
    &LEGACY_QUIET_PERIOD,
    &LEGACY_NEWEST_CALLER,
    &LEGACY_SUNSET,
    &LEGACY_WAITERS,
    &LEGACY_WAITERS_LIMIT,
    &LEGACY_LONGEST_WAIT,
    &TASKS,
    &TASK_OLDEST_RUNNABLE,
    &ENGINE_PAUSED,
    &DEAD_LETTERS,
    &OUTBOX_UNPUBLISHED,
    &OUTBOX_OLDEST,
    &DELIVERIES_PENDING,
    &TRANSPORT_UP,
    &WAKEUP_LISTENER_UP,
    &DB_POOL_IN_USE,
    &DB_POOL_LIMIT,
    &GAUGES_READ,
    &DISK_FREE,
    &BUILD_INFO,
];
static HISTOGRAMS: &[(&Histogram, &[f64])] = &[
    (&LEGACY_WAIT, MINUTES),
    (&TASK_RUN, MINUTES),
    (&GENERATOR_PHASE, MINUTES),
    (&TASK_PICKUP, MINUTES),
    (&HTTP_REQUEST, REQUESTS),
    (&DB_TRANSACTION, REQUESTS),
];
/// Edges for what takes up to half an hour: the attempt's, bridge's and clients' limits are edges.
const MINUTES: &[f64] = &[0.005, 0.02, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 720.0, 900.0, 1800.0];
/// Edges that tell 1 ms from 5 ms and still hold a v1 call.
const REQUESTS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 30.0, 60.0, 300.0, 600.0, 720.0, 900.0, 1800.0];

static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();

/// Installs the process's recorder and brings every metric into being; a second call hands out the same one, for a process that starts the service twice.
///
/// # Errors
/// If another recorder is installed already.
pub fn install() -> Result<PrometheusHandle, BuildError> {
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = HANDLE.get() {
        return Ok(handle.clone());
    }
    let mut builder = PrometheusBuilder::new();
    for (histogram, edges) in HISTOGRAMS {
        builder = builder.set_buckets_for_metric(Matcher::Full(histogram.full_name()), edges)?;
    }
    let handle = builder.install_recorder()?;
    for counter in COUNTERS {
        metrics::describe_counter!(counter.full_name(), counter.help);
        counter.combinations().iter().for_each(|values| counter.add(values, 0));
    }
    for gauge in GAUGES {
        metrics::describe_gauge!(gauge.full_name(), gauge.help);
        gauge.begin();
    }
    for (histogram, _) in HISTOGRAMS {
        metrics::describe_histogram!(histogram.full_name(), histogram.help);
        histogram.combinations().iter().for_each(|values| histogram.register(values));
    }
    Ok(HANDLE.get_or_init(|| handle).clone())
}

/// All metrics by name.
#[must_use]
pub fn descriptions() -> Vec<Description> {
    let counters = COUNTERS.iter().map(|metric| metric.describe("counter"));
    let gauges = GAUGES.iter().map(|metric| metric.describe("gauge"));
    let histograms = HISTOGRAMS.iter().map(|(metric, _)| metric.describe("histogram"));
    let mut all: Vec<Description> = counters.chain(gauges).chain(histograms).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}
