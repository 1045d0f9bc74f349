//! An error together with everything that led to it, for the log and the command line; clients never see it.

use std::{
    error::Error,
    iter::{once, successors},
};

/// "outermost: …: innermost"; what an error says of its cause by itself is not said again.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let causes = successors(error.source(), cause_of).map(ToString::to_string);
    once(error.to_string())
        .chain(causes)
        .reduce(|said, cause| if said.ends_with(&cause) { said } else { format!("{said}: {cause}") })
        .unwrap_or_default()
}

fn cause_of<'e>(error: &&'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    (**error).source()
}

#[cfg(test)]
mod tests {
    use super::chain;
    use std::io;

    #[derive(Debug, thiserror::Error)]
    #[error("the file {0}")]
    struct Outer(&'static str, #[source] io::Error);

    #[test]
    fn every_cause_is_said_once() {
        assert_eq!(chain(&Outer("cannot be read", io::Error::other("the disk is full"))), "the file cannot be read: the disk is full");
        assert_eq!(chain(&Outer("is not there: gone", io::Error::other("gone"))), "the file is not there: gone");
    }
}
