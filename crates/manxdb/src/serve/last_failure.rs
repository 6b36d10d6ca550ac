//! Work that is tried again and again: its failure is logged once, however long it lasts.

use std::fmt::Display;

/// How the last try failed, if it did.
#[derive(Debug, Default)]
pub(super) struct LastFailure(Option<String>);

impl LastFailure {
    /// Takes the outcome of one more try; the failure, if the try before did not fail in the same way.
    pub(super) fn news<T>(&mut self, outcome: &Result<T, impl Display>) -> Option<&str> {
        let failure = outcome.as_ref().err().map(ToString::to_string);
        let changed = failure != self.0;
        self.0 = failure;
        self.0.as_deref().filter(|_| changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_news_until_it_is_told_and_again_after_a_success() {
        let mut last = LastFailure::default();
        let full = || Err::<(), _>("the disk is full");
        assert_eq!(last.news(&full()), Some("the disk is full"));
        assert_eq!(last.news(&full()), None);
        assert_eq!(
            last.news(&Err::<(), _>("no such file")),
            Some("no such file")
        );
        assert_eq!(last.news(&Ok::<_, &str>(())), None);
        assert_eq!(last.news(&full()), Some("the disk is full"));
    }
}
