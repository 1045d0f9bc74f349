//! What the program tells who started it.

/// The exit codes, as `--help` documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Done = 0,
    Failed = 1,
    /// Wrong arguments (clap's own code, too) or configuration.
    Usage = 2,
    /// An agenda is unknown, not ready, contradictory or too large: nothing is wrong with the program or its surroundings.
    AgendaRefused = 3,
    /// A replay left something where it was, and said why.
    NotReplayed = 4,
}

pub(super) const HELP: &str = "Exit codes:
  0  done
  1  failed: something in the surroundings (a taken port, the database, the agenda source, the disk), or doctor found a fault
  2  wrong arguments or configuration
  3  an agenda was refused: unknown, not ready, contradictory or too large
  4  a replay left something where it was, and said why";
