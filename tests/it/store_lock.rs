//! One serving process per data folder.

use crate::support::within;
use futures::FutureExt as _;
use protocol_bridge::{base::clock::Clock, store::lock::ServingLock};
use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_second_server_waits_for_the_first() {
    let folder = TempDir::new().expect("a folder");
    let clock = Clock::system();
    let first = ServingLock::acquire(&folder.path().join("data"), &clock).await.expect("it is free");
    let path = folder.path().join("data");
    let second = ServingLock::acquire(&path, &clock);
    futures::pin_mut!(second);
    assert!((&mut second).now_or_never().is_none(), "it waits");
    drop(first);
    within(LIMIT, "the second has the lock", second).await.expect("it is free now");
}

/// The lock goes with the process that has it, even when that is killed.
#[tokio::test]
async fn a_killed_server_leaves_no_lock() {
    let folder = TempDir::new().expect("a folder");
    let lock = folder.path().join("lock");
    let mut other = Command::new("flock")
        .arg("--no-fork")
        .arg(&lock)
        .args(["sh", "-c", "echo held; exec sleep 600"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("flock and sh are there");
    let mut line = String::new();
    BufReader::new(other.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("it says so");
    let clock = Clock::system();
    let waiting = ServingLock::acquire(folder.path(), &clock);
    futures::pin_mut!(waiting);
    assert!((&mut waiting).now_or_never().is_none(), "it waits");
    other.kill().expect("it may be killed");
    other.wait().expect("it is gone");
    within(LIMIT, "the lock is free", waiting).await.expect("it is free now");
}
