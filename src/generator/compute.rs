//! The generator's own bounded place for work that computes instead of waiting: reading an agenda of 32 MiB, its rules, digests, models.
//!
//! On the runtime's threads it would keep calls, lease renewals and health checks waiting. One processor is left to those.

use std::{
    panic,
    sync::{Arc, LazyLock},
    thread,
};
use tokio::{sync::Semaphore, task::spawn_blocking};

static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let processors = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Arc::new(Semaphore::new(processors.saturating_sub(1).max(1)))
});

/// Runs `work` there. Whoever is dropped while it waits leaves it running to its end, in its place.
///
/// # Panics
/// As `work` does.
pub async fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let place = Arc::clone(&PLACES).acquire_owned().await.expect("nobody closes the semaphore");
    let working = spawn_blocking(move || {
        let _place = place;
        work()
    });
    match working.await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => panic::resume_unwind(panic),
            // Only a runtime that goes down gives up what it has not begun; whoever waits goes down with it.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_computes_elsewhere_and_hands_panics_on() {
        let here = thread::current().id();
        assert_ne!(compute(|| thread::current().id()).await, here);
        let panicking = compute(|| panic!("as told"));
        let told = futures::FutureExt::catch_unwind(panic::AssertUnwindSafe(panicking)).await.expect_err("it panics");
        assert_eq!(told.downcast_ref::<&str>(), Some(&"as told"));
    }
}
