//! Limits of the process that the operating system sets.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files as far as it goes and says how far that was (`None`: unlimited): each held call needs one.
#[must_use]
pub fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // A refusal leaves the old limit, which the return value tells.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
    open_files()
}

/// How many files the process may have open; `None`: any number.
#[must_use]
pub fn open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Bounds the memory that this process may ask for from now on; beyond it is ended.
pub fn bound_memory(bytes: u64) {
    // A refusal leaves it unbounded, as it was.
    let _ = setrlimit(Resource::As, Rlimit { current: Some(bytes), maximum: Some(bytes) });
}
