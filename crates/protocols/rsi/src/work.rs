//! How steps are carried out: a conversation between a protocol and a fabric.

use std::future::Future;

use manxdb_fabric::{Fault, Operation, Outcome};

/// What is wanted next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<T> {
    /// These done, all at once.
    Ask(Vec<Operation>),
    /// It met somebody at work: a pause, then the same once more, the how manieth time running.
    Again(Vec<Operation>, u32),
    /// Nothing more; this came of it.
    Done(T),
}

/// Something to be done with one-sided memory. What is done so far is a value that can be compared
/// and hashed: a checker goes through all that can become of it.
pub trait Work {
    /// What comes of it.
    type Output;

    /// Goes on with the outcomes of what it asked for; with none at the beginning.
    fn step(&mut self, outcomes: Vec<Outcome>) -> Step<Self::Output>;
}

/// Who carries pieces of work out: over memory shared by processes at once, in a simulator whenever
/// their time has come. What is put together of several pieces is written against this.
pub trait Carrier {
    /// Why it cannot.
    type Error;

    /// Carries a piece of work out to its end.
    fn run<W: Work>(&mut self, work: W) -> impl Future<Output = Result<W::Output, Self::Error>>;
}

/// The first fault in what has come of operations.
pub(crate) fn fault(outcomes: &[Outcome]) -> Option<Fault> {
    outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Failed(fault) => Some(*fault),
        _ => None,
    })
}
