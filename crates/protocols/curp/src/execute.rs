//! What is replicated: a deterministic machine of keys.

use crate::ids::Stamp;

/// What a command says of itself before it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Declared {
    /// The keys that it is going to touch, reads included. Verified, not trusted.
    pub keys: Vec<Vec<u8>>,
    /// Whether it changes nothing, whatever the state.
    pub reads_only: bool,
}

/// What a command does in a state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Executed {
    /// The answer for its client.
    pub answer: Vec<u8>,
    /// What changes, for [`Execute::apply`]; empty when nothing does.
    pub effects: Vec<u8>,
    /// The keys that it read or wrote, absent and deleted ones too.
    pub touched: Vec<Vec<u8>>,
    /// Whether it may have touched any other key as well: it looks at all of them.
    pub touches_all: bool,
}

/// A machine of keys. Commands, answers and effects are bytes of the machine's own.
///
/// Equal states, commands and stamps give equal results, on every machine. Bytes that it cannot
/// read give an answer that says so, or no change; never a panic.
pub trait Execute: Clone {
    /// The keys of a command; nothing when it is none of this machine's.
    fn declare(command: &[u8]) -> Option<Declared>;

    /// What a command does now. Nothing has happened yet: so it can be looked at first. It happens
    /// when [`Execute::apply`] is given the effects before the next command is executed, and not at
    /// all otherwise; a machine may therefore change objects in place and take that back later.
    fn execute(&mut self, command: &[u8], stamp: Stamp) -> Executed;

    /// Why the master does not let a command happen that a client asks for now: the answer to give
    /// instead. Asked before it is executed, and again with the result. Never asked when a record is
    /// replayed, so it may depend on anything, such as how large the state is.
    fn refuses(&self, _command: &[u8], _executed: Option<&Executed>) -> Option<Vec<u8>> {
        None
    }

    /// Lets effects happen: here, or at a backup, which executes nothing itself.
    fn apply(&mut self, effects: &[u8]);

    /// The whole state, for a new backup.
    fn snapshot(&self) -> Vec<u8>;

    /// The state of a snapshot; nothing when it is none.
    fn restore(snapshot: &[u8]) -> Option<Self>;

    /// The empty state.
    fn empty() -> Self;
}
