//! One serving process per data folder: SQLite has one writer, and its hints stay inside the process.
//!
//! The lock belongs to the open file, so the operating system gives it back when the process ends, however it ends. A second process waits its turn: during a
//! restart that is what one wants.

use super::{Error, Result};
use crate::base::clock::Clock;
use std::{
    fs::{File, TryLockError},
    path::Path,
    time::Duration,
};

/// How often a waiting process tries. Trying, rather than blocking in the system call, lets it be stopped.
const TRY_EVERY: Duration = Duration::from_millis(200);

/// The right to serve from a folder, until dropped.
#[derive(Debug)]
pub struct ServingLock {
    _file: File,
}

impl ServingLock {
    /// Takes `data_dir/lock`, waiting while another process has it; says so once.
    ///
    /// # Errors
    /// When the folder or the file cannot be made, or the file system knows no locks.
    pub async fn acquire(data_dir: &Path, clock: &Clock) -> Result<Self> {
        let path = data_dir.join("lock");
        let refused = |source| Error::System { what: format!("{} cannot be locked", path.display()), source };
        std::fs::create_dir_all(data_dir).map_err(refused)?;
        let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(refused)?;
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) => {
                    if !told {
                        tracing::info!(lock = %path.display(), "another process serves from this data folder; waiting until it has ended");
                        told = true;
                    }
                    clock.sleep(TRY_EVERY).await;
                }
                Err(TryLockError::Error(source)) => return Err(refused(source)),
            }
        }
    }
}
