//! A progress bar on a terminal; nothing elsewhere.

use crate::domain::task::{Phase, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal as _};

pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn new() -> Self {
        let target = if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        bar.set_style(
            ProgressStyle::with_template("{msg:8} {wide_bar} {pos}/{len}").expect("the template is a constant that a test renders"),
        );
        Self(bar)
    }

    pub(super) fn show(&self, phase: Phase, progress: Progress) {
        // 0 of 0 would be drawn as a full bar.
        if progress.known == 0 {
            return;
        }
        self.0.set_message(phase.as_str());
        self.0.set_length(u64::from(progress.known));
        self.0.set_position(u64::from(progress.done));
    }

    pub(super) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_can_be_shown() {
        let bar = Bar::new();
        bar.show(Phase::Merge, Progress { done: 1, known: 2 });
        bar.clear();
    }
}
