//! The stream and the consumer as we need them: made, or checked and brought up to date.
//!
//! What an operator may choose is left alone: replicas, storage, placement, limits in bytes. What the promise rests on is set; where NATS does not let it be
//! changed (retention, a push consumer in our place) the start ends with words. Running it twice, or in two processes at once, changes nothing.

use crate::base::chain::chain;
use async_nats::jetstream::{
    Context,
    consumer::{AckPolicy, DeliverPolicy, FromConsumer as _, PullConsumer, pull},
    context::{ConsumerInfoErrorKind, CreateStreamError, CreateStreamErrorKind, GetStreamErrorKind},
    stream::{self, ConsumerErrorKind, DiscardPolicy, RetentionPolicy},
};
use std::time::Duration;

/// How long a message that was delivered may stay unacknowledged. It is acknowledged after the claim, so this is long; a process that dies costs it.
pub(super) const ACK_WAIT: Duration = Duration::from_secs(30);
/// The window in which NATS knows a message id again. Ids are never used for anything but the same row, so it may be any length.
const DUPLICATE_WINDOW: Duration = Duration::from_mins(2);
/// A message that old rings for nobody: its task was taken from the table long ago.
const MAX_AGE: Duration = Duration::from_hours(24);
/// Above this the oldest ones go, for the same reason.
const MAX_MESSAGES: i64 = 1_000_000;
/// More than all processes together ask for at once.
const MAX_ACK_PENDING: i64 = 10_000;

/// What our things are called in NATS.
#[derive(Debug, Clone)]
pub struct Names {
    pub subject: String,
    pub stream: String,
    pub consumer: String,
}

impl Names {
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        Self { subject: format!("{prefix}.tasks"), stream: format!("{prefix}-tasks"), consumer: format!("{prefix}-workers") }
    }
}

/// Why messages cannot go.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody has to change something.
    #[error("{what} in NATS cannot be used: {reason}; remove it, or choose another engine.nats_prefix")]
    Unfit { what: String, reason: String },
    /// It may go by itself.
    #[error("NATS does not answer: {0}")]
    Away(String),
    #[error("the address of NATS cannot be used: {0}")]
    Address(String),
}

/// Makes sure of both, and answers with the consumer.
///
/// # Errors
/// [`Error::Unfit`] when what is there is something else; [`Error::Away`] otherwise.
pub(super) async fn ensure(context: &Context, names: &Names) -> Result<PullConsumer, Error> {
    let stream = ensure_stream(context, names).await?;
    ensure_consumer(&stream, names).await
}

async fn ensure_stream(context: &Context, names: &Names) -> Result<stream::Stream, Error> {
    let what = || format!("the stream {}", names.stream);
    match context.get_stream(&names.stream).await {
        Ok(stream) => {
            let there = &stream.cached_info().config;
            if let Some(reason) = unfit(there) {
                return Err(Error::Unfit { what: what(), reason });
            }
            let wanted = wanted_stream(there.clone(), names);
            if wanted != *there {
                context.update_stream(&wanted).await.map_err(|error| stream_error(what(), &error))?;
                tracing::info!(stream = names.stream, "the stream in NATS is brought up to date");
            }
            Ok(stream)
        }
        Err(error) if matches!(error.kind(), GetStreamErrorKind::JetStream(answer) if answer.code() == 404) => {
            let made = context.create_stream(wanted_stream(new_stream(names), names)).await;
            made.map_err(|error| stream_error(what(), &error))
        }
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(answer) if answer.code() == 400 => Err(Error::Unfit { what: what(), reason: answer.to_string() }),
            _ => Err(Error::Away(chain(&error))),
        },
    }
}

fn new_stream(names: &Names) -> stream::Config {
    stream::Config {
        name: names.stream.clone(),
        description: Some("protocol-bridge: tasks to be taken; the database knows them all".to_owned()),
        retention: RetentionPolicy::WorkQueue,
        storage: stream::StorageType::File,
        num_replicas: 1,
        max_bytes: -1,
        max_consumers: -1,
        max_messages_per_subject: -1,
        ..stream::Config::default()
    }
}

/// What cannot be mended by an update.
pub(super) fn unfit(there: &stream::Config) -> Option<String> {
    if there.retention != RetentionPolicy::WorkQueue {
        Some(format!("its retention is {:?}, not WorkQueue", there.retention))
    } else if there.mirror.is_some() || there.sources.as_ref().is_some_and(|sources| !sources.is_empty()) {
        Some("it copies another stream".to_owned())
    } else if there.sealed {
        Some("it is sealed".to_owned())
    } else {
        None
    }
}

pub(super) fn wanted_stream(there: stream::Config, names: &Names) -> stream::Config {
    stream::Config {
        subjects: vec![names.subject.clone()],
        discard: DiscardPolicy::Old,
        max_messages: MAX_MESSAGES,
        max_age: MAX_AGE,
        duplicate_window: DUPLICATE_WINDOW,
        no_ack: false,
        ..there
    }
}

async fn ensure_consumer(stream: &stream::Stream, names: &Names) -> Result<PullConsumer, Error> {
    let what = || format!("the consumer {} of the stream {}", names.consumer, names.stream);
    let there = match stream.consumer_info(&names.consumer).await {
        Ok(info) => Some(info.config),
        Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => None,
        Err(error) => return Err(Error::Away(chain(&error))),
    };
    let fit = match there {
        None => None,
        Some(there) if there.deliver_subject.is_some() => {
            return Err(Error::Unfit { what: what(), reason: "it is a push consumer".to_owned() });
        }
        Some(there) if there.ack_policy != AckPolicy::Explicit || there.deliver_policy != DeliverPolicy::All => {
            let reason = format!("it acknowledges {:?} and delivers {:?}, not Explicit and All", there.ack_policy, there.deliver_policy);
            return Err(Error::Unfit { what: what(), reason });
        }
        Some(there) => {
            let there =
                pull::Config::try_from_consumer_config(there).map_err(|error| Error::Unfit { what: what(), reason: error.to_string() })?;
            Some(there)
        }
    };
    let wanted = wanted_consumer(fit.clone().unwrap_or_default(), names);
    if fit.as_ref() == Some(&wanted) {
        return stream.get_consumer(&names.consumer).await.map_err(|error| Error::Away(error.to_string()));
    }
    // Made and changed with the same call.
    let made = stream.create_consumer(wanted).await.map_err(|error| match error.kind() {
        ConsumerErrorKind::JetStream(answer) if answer.code() == 400 => Error::Unfit { what: what(), reason: answer.to_string() },
        _ => Error::Away(chain(&error)),
    })?;
    if fit.is_some() {
        tracing::info!(consumer = names.consumer, "the consumer in NATS is brought up to date");
    }
    Ok(made)
}

pub(super) fn wanted_consumer(there: pull::Config, names: &Names) -> pull::Config {
    pull::Config {
        durable_name: Some(names.consumer.clone()),
        ack_policy: AckPolicy::Explicit,
        deliver_policy: DeliverPolicy::All,
        ack_wait: ACK_WAIT,
        // Unlimited: the broker is not who decides that a task has failed.
        max_deliver: -1,
        max_ack_pending: MAX_ACK_PENDING,
        headers_only: false,
        filter_subject: String::new(),
        filter_subjects: Vec::new(),
        backoff: Vec::new(),
        inactive_threshold: Duration::ZERO,
        ..there
    }
}

fn stream_error(what: String, error: &CreateStreamError) -> Error {
    match error.kind() {
        CreateStreamErrorKind::JetStream(answer) if answer.code() == 400 => Error::Unfit { what, reason: answer.to_string() },
        _ => Error::Away(chain(error)),
    }
}
