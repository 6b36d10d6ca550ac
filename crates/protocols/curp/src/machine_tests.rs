//! A machine and entries for unit tests.

use crate::execute::{Declared, Execute, Executed};
use crate::ids::{ClientId, Epoch, Stamp};
use crate::message::{Change, Entry};

/// A machine without a state.
#[derive(Clone)]
pub(crate) struct Nothing;

impl Execute for Nothing {
    fn declare(_: &[u8]) -> Option<Declared> {
        None
    }
    fn execute(&mut self, _: &[u8], _: Stamp) -> Executed {
        Executed::default()
    }
    fn apply(&mut self, _: &[u8]) {}
    fn snapshot(&self) -> Vec<u8> {
        Vec::new()
    }
    fn restore(_: &[u8]) -> Option<Self> {
        Some(Self)
    }
    fn empty() -> Self {
        Self
    }
}

pub(crate) fn entry(epoch: u64, client: u64) -> Entry {
    Entry {
        epoch: Epoch(epoch),
        change: Change::Opened(ClientId(client)),
    }
}
