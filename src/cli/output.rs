//! Printing. A reader that has gone away, as in `protocol-bridge … | head`, is no error.

use crate::base::{chain::chain, config};
use std::io::{self, Write as _};

/// What was asked for.
pub(super) fn say(text: &str) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// Everything else.
pub(super) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Why there is no configuration, one problem a line.
pub(super) fn refuse_configuration(error: &config::Error) {
    match error {
        config::Error::Invalid(problems) => {
            note("The configuration cannot be used:");
            for problem in problems {
                note(&format!("  {problem}"));
            }
        }
        other => note(&chain(other)),
    }
}
