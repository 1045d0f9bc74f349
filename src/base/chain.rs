//! An error together with everything that led to it, for the log and the command line; clients never see it.

/// "outermost: …: innermost".
#[must_use]
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes: Vec<String> = std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect();
    causes.join(": ")
}
