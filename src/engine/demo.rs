//! The demo executor: tries retries, cancel and drain by hand. Honours `failUntilAttempt` and `sleepMs` in its payload.

use super::{Decision, Done, Run, TaskExecutor, executor::Stop};
use crate::domain::{
    failure::{Failure, FailureCode},
    task::{Phase, Progress},
};
use futures::{FutureExt as _, future::BoxFuture};
use serde::Deserialize;
use std::time::Duration;

/// Sleeps, then fails or succeeds as its payload says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Demo;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Payload {
    /// Claims before this one fail. The claim is counted, not the attempt: a replay resets attempts and goes on counting claims.
    fail_until_attempt: u32,
    sleep_ms: u64,
}

/// Sleeping is told as progress in so many steps.
const SLICES: u32 = 10;

impl TaskExecutor for Demo {
    fn execute(&self, run: Run) -> BoxFuture<'_, Decision> {
        async move {
            match work(&run).await {
                Ok(decision) => decision,
                // Nobody listens to what a stopped attempt answers.
                Err(Stop) => Decision::Retry(Failure::new(FailureCode::Internal, "The attempt was stopped.")),
            }
        }
        .boxed()
    }
}

async fn work(run: &Run) -> Result<Decision, Stop> {
    // A payload of any other shape asks for nothing.
    let payload: Payload = serde_json::from_str(&run.task().payload).unwrap_or_default();
    let progress = |done| Progress { done, known: SLICES };
    if payload.sleep_ms > 0 {
        run.progress(Phase::Collect, progress(0)).await?;
        for done in 1..=SLICES {
            tokio::select! {
                () = run.clock().sleep(Duration::from_millis(payload.sleep_ms) / SLICES) => {}
                () = run.cancelled().cancelled() => return Err(Stop),
            }
            run.progress(Phase::Collect, progress(done)).await?;
        }
    }
    let claim = run.task().claim_no;
    Ok(if claim < payload.fail_until_attempt {
        let message = format!("Claim {claim} fails, as the payload asks: failUntilAttempt is {}.", payload.fail_until_attempt);
        Decision::Retry(Failure::new(FailureCode::Internal, message))
    } else {
        Decision::Done(Done::default())
    })
}
