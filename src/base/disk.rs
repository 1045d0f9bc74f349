//! Free space where the data lives, looked at no more than once a second however often it is asked for.

use super::{
    chain::chain,
    clock::{Clock, Monotonic},
};
use rustix::fs::statvfs;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The disk that holds a folder; cheap to clone.
#[derive(Debug, Clone)]
pub struct FreeSpace(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    floor: u64,
    looked: Mutex<Option<(Monotonic, bool)>>,
}

impl FreeSpace {
    /// `floor`: so many bytes are to stay free.
    #[must_use]
    pub fn new(folder: PathBuf, floor: u64) -> Self {
        Self(Arc::new(Inner { folder, floor, looked: Mutex::new(None) }))
    }

    /// Whether more than the floor is free; a disk that cannot be asked is taken to have room.
    #[must_use]
    pub fn has_room(&self, clock: &Clock) -> bool {
        let now = clock.monotonic();
        let mut looked = self.0.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, answer)) = *looked
            && now.since(at) < LOOK_EVERY
        {
            return answer;
        }
        let answer = self.bytes().is_none_or(|free| free >= self.0.floor);
        if !answer && looked.is_none_or(|(_, before)| before) {
            tracing::warn!(folder = %self.0.folder.display(), floor = self.0.floor, "the disk is nearly full: nothing new is accepted until there is room");
        }
        *looked = Some((now, answer));
        answer
    }

    /// Free bytes now, as far as this program may use them.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        match statvfs(&self.0.folder) {
            Ok(disk) => Some(disk.f_bavail.saturating_mul(disk.f_frsize)),
            Err(error) => {
                tracing::debug!(error = chain(&error), "free space cannot be read");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;

    #[test]
    fn there_is_room_above_the_floor_and_where_nobody_can_tell() {
        let clock = Clock::manual(Timestamp::default());
        let here = std::env::temp_dir();
        assert!(FreeSpace::new(here.clone(), 1).has_room(&clock));
        assert!(!FreeSpace::new(here, u64::MAX).has_room(&clock));
        assert!(FreeSpace::new(PathBuf::from("/nowhere/at/all"), u64::MAX).has_room(&clock));
    }
}
