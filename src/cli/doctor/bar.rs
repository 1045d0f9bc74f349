//! A bar for work that is counted; on a terminal only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal as _};

pub(super) struct Bar(ProgressBar);

impl Bar {
    /// `of`: how many there are; 0: nobody knows.
    pub(super) fn new(of: u64, what: &'static str) -> Self {
        let target = if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let (length, template) = if of == 0 { (None, "{msg} {pos}") } else { (Some(of), "{msg} {wide_bar} {pos}/{len}") };
        let bar = ProgressBar::with_draw_target(length, target);
        bar.set_style(ProgressStyle::with_template(template).expect("both templates are constants that a test renders"));
        bar.set_message(what);
        Self(bar)
    }

    pub(super) fn step(&self) {
        self.0.inc(1);
    }

    pub(super) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Bar;

    #[test]
    fn it_can_be_shown() {
        for of in [0, 2] {
            let bar = Bar::new(of, "counting");
            bar.step();
            bar.clear();
        }
    }
}
