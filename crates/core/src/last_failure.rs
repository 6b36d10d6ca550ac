//! Work that is tried again and again: its failure is logged once, however long it lasts.

use std::fmt::Display;

/// How the last try failed, if it did.
#[derive(Debug, Default)]
pub struct LastFailure(Option<String>);

impl LastFailure {
    /// Takes the outcome of one more try; the failure, if the try before did not fail in the same way.
    pub fn news<T>(&mut self, outcome: &Result<T, impl Display>) -> Option<&str> {
        match outcome {
            Ok(_) => {
                self.succeeded();
                None
            }
            Err(failure) => self.failed(failure),
        }
    }

    /// One more try has failed; the failure, if the try before did not fail in the same way.
    pub fn failed(&mut self, failure: impl Display) -> Option<&str> {
        let failure = Some(failure.to_string());
        let is_news = failure != self.0;
        self.0 = failure;
        self.0.as_deref().filter(|_| is_news)
    }

    /// A try has succeeded: the next failure is news, whatever it is.
    pub fn succeeded(&mut self) {
        self.0 = None;
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
