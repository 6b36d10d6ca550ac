//! What is replicated: a deterministic machine of keys.

use std::marker::PhantomData;

use crate::ids::{LogId, Stamp};
use crate::image::{BytesImage, ReadImage, ReceiveImage, StateError};
use crate::log::{Change, Entry};
use crate::rifl::Rifl;

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

/// What [`Execute::open_record`] says of bytes that are no state.
pub const UNREADABLE: &str = "it has a state that this version cannot read. Start the node with an empty \
                              directory; it then gets everything from the others";

/// Entries that follow what was settled before, and that will never be taken back.
#[derive(Debug)]
pub struct Settled<'a> {
    /// The effects of those that have some, in their order.
    pub effects: Vec<&'a [u8]>,
    /// The last of them.
    pub end: LogId,
    /// The completion records behind it.
    pub completed: &'a Rifl,
}

impl<'a> Settled<'a> {
    /// Of entries of a log.
    pub(crate) fn of(
        entries: impl Iterator<Item = &'a Entry>,
        end: LogId,
        completed: &'a Rifl,
    ) -> Self {
        let effects = entries.filter_map(|entry| match &entry.change {
            Change::Executed { effects, .. } if !effects.is_empty() => Some(effects.as_slice()),
            Change::Executed { .. } | Change::Opened(_) | Change::Expired(_) => None,
        });
        let effects = effects.collect();
        Self {
            effects,
            end,
            completed,
        }
    }
}

/// A state that was found again.
#[derive(Debug)]
pub struct Recorded<E> {
    /// The state.
    pub state: E,
    /// Where it is, and the completion records there, of a machine with a store of its own: that may have
    /// gone on behind the record.
    pub settled: Option<(LogId, Rifl)>,
}

/// A machine of keys. Commands, answers and effects are bytes of the machine's own.
///
/// Equal states, commands and stamps give equal results, on every machine. Bytes that it cannot
/// read give an answer that says so, or no change; never a panic.
pub trait Execute: Clone + 'static {
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

    /// The whole state as one value.
    fn snapshot(&self) -> Vec<u8>;

    /// The state of a snapshot; nothing when it is none.
    fn restore(snapshot: &[u8]) -> Option<Self>;

    /// The empty state.
    fn empty() -> Self;

    /// The state as it is now, for a new backup. What is applied later is not in it.
    fn image(&self) -> Box<dyn ReadImage> {
        Box::new(BytesImage::new(self.snapshot()))
    }

    /// Where the bytes of an image of another server's state go, to become a state beside this one.
    fn receive(&self) -> Box<dyn ReceiveImage<Self>> {
        Box::new(CollectedBytes::<Self>::default())
    }

    /// Whether the state is in a store of its own, which outlives the process, rather than in memory and in
    /// records. Such a machine keeps what is *settled*, and needs not undo anything: its image and its
    /// record are of that. Between [`Execute::apply`] and [`Execute::settle`] of the same effects it keeps
    /// what later commands depend on.
    fn has_store(&self) -> bool {
        false
    }

    /// Takes into its store what was applied and is on all backups.
    ///
    /// # Errors
    /// [`StateError::Store`]: the server stops.
    fn settle(&mut self, _settled: &Settled<'_>) -> Result<(), StateError> {
        Ok(())
    }

    /// The empty state, kept where this one is, beside it.
    #[must_use]
    fn fresh(&self) -> Self {
        Self::empty()
    }

    /// What stands for the state in a record of the whole log: the state itself or, where a store has it,
    /// its name. What is settled is on disk then.
    ///
    /// # Errors
    /// [`StateError::Store`].
    fn to_record(&mut self) -> Result<Vec<u8>, StateError> {
        Ok(self.snapshot())
    }

    /// The state of such a record, kept where this one is.
    ///
    /// # Errors
    /// Why there is none and the way out, for people.
    fn open_record(&self, record: &[u8]) -> Result<Recorded<Self>, String> {
        let state = Self::restore(record).ok_or(UNREADABLE)?;
        let settled = None;
        Ok(Recorded { state, settled })
    }

    /// The newest record is on disk: stores of earlier states may go.
    fn forget_earlier(&mut self) {}
}

/// Collects the bytes of a snapshot for [`Execute::restore`].
#[derive(Debug)]
pub struct CollectedBytes<E> {
    bytes: Vec<u8>,
    machine: PhantomData<fn() -> E>,
}

impl<E> Default for CollectedBytes<E> {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            machine: PhantomData,
        }
    }
}

impl<E: Execute> ReceiveImage<E> for CollectedBytes<E> {
    fn take(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>, _: LogId, _: &Rifl) -> Result<E, StateError> {
        E::restore(&self.bytes).ok_or(StateError::Unreadable)
    }
}
