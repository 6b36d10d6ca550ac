//! One-shot transactions that are sent to the data instead of talking to it.
//!
//! A procedure is cut into [`ProcedurePiece`]s, one shard each. A piece names the values it needs
//! from other pieces and those it gives, so that a path can run pieces where their rows live and
//! carry values between them. Everything a piece does depends on its arguments, its
//! inputs and the rows it sees: time and randomness are arguments, so that every replica that
//! runs it does the same. A path that runs procedures runs SQL as well, because applying an
//! [`crate::Intent`] is the built-in procedure [`ApplyIntent`].
//!
//! The `local` path runs all pieces in one serializable transaction ([`crate::run_procedure`]).

mod codec;
mod intent;
mod order;

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_storage::{Direction, Durability, KeyRange};
use parking_lot::RwLock;

pub use self::intent::{APPLY_INTENT, ApplyIntent, decode_intent, encode_intent, is_applied};
pub use self::order::in_running_order;

use crate::error::TxnError;
use crate::model::{Page, ReadSet, TxnId};

/// A part of the keyspace that is ordered and stored together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u32);

/// Name of a value that pieces of one procedure hand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// Values by name: inputs or outputs of a piece, results of a procedure.
pub type Values = BTreeMap<Slot, Vec<u8>>;

/// Work on one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcedurePiece {
    /// Which of the procedure's parts this is; its own numbering.
    pub part: u32,
    /// Where all rows it touches live.
    pub shard: ShardId,
    /// Values of other pieces it waits for.
    pub needs: Vec<Slot>,
    /// Values it gives, all of them, always.
    pub gives: Vec<Slot>,
    /// How much work it is, counted in reads and writes of single rows, as published systems cut
    /// their transactions; for models of what a CPU does, at least 1.
    pub steps: u32,
}

impl ProcedurePiece {
    /// What it needs of `values`, those of the pieces that have run: it runs once all of that is there.
    #[must_use]
    pub fn inputs(&self, values: &Values) -> Values {
        let needed = self.needs.iter();
        let known = needed.filter_map(|slot| Some((*slot, values.get(slot)?.clone())));
        let inputs: Values = known.collect();
        assert!(
            self.needs.iter().all(|slot| inputs.contains_key(slot)),
            "a piece runs with all of its inputs: part {}",
            self.part
        );
        inputs
    }
}

/// What a piece has given, if that is what it planned to give.
///
/// # Errors
/// [`ProcedureError::Plan`]: other pieces would wait for a value for ever, or get one that nobody
/// announced.
pub fn as_planned(piece: &ProcedurePiece, given: Values) -> Result<Values, ProcedureError> {
    let is_there = |slot| given.contains_key(slot);
    if given.len() == piece.gives.len() && piece.gives.iter().all(is_there) {
        return Ok(given);
    }
    let what = format!("part {} gave other values than it planned", piece.part);
    Err(ProcedureError::Plan(what))
}

/// Rows a piece may touch, known before it runs.
///
/// A path that lets later transactions pass a piece which still waits for a value lets pass only
/// those whose touches do not clash with it. So this may be wider than what the piece will really
/// touch, never narrower.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// Where the rows lie.
    pub range: KeyRange,
    /// Whether they may be written, not only read.
    pub writes: bool,
}

impl Touch {
    /// Reads of one key.
    #[must_use]
    pub fn read(key: &[u8]) -> Self {
        Self {
            range: KeyRange::point(key),
            writes: false,
        }
    }

    /// Reads and writes of one key.
    #[must_use]
    pub fn write(key: &[u8]) -> Self {
        Self {
            range: KeyRange::point(key),
            writes: true,
        }
    }

    /// Reads and writes of everything: what is said of a piece about which nothing is known.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            range: KeyRange::all(),
            writes: true,
        }
    }

    /// Whether the order of the two matters: they meet on a row that one of them writes.
    #[must_use]
    pub fn clashes(&self, other: &Self) -> bool {
        (self.writes || other.writes) && self.range.overlaps(&other.range)
    }
}

/// Where keys live.
pub trait Placement: Send + Sync {
    /// The shard of a key.
    fn shard_of(&self, key: &[u8]) -> ShardId;

    /// The shards that keys of a range may live on, ascending.
    fn shards_of(&self, range: &KeyRange) -> Vec<ShardId>;
}

/// Everything on one shard: a database of one node.
#[derive(Debug, Default, Clone, Copy)]
pub struct OneShard;

impl Placement for OneShard {
    fn shard_of(&self, _key: &[u8]) -> ShardId {
        ShardId(0)
    }

    fn shards_of(&self, _range: &KeyRange) -> Vec<ShardId> {
        vec![ShardId(0)]
    }
}

/// The rows a piece sees: those of its shard at its place in the order, under its own writes.
pub trait RowView {
    /// Whether `key` lives on the piece's shard.
    fn holds(&self, key: &[u8]) -> bool;

    /// The value of `key`.
    ///
    /// # Errors
    /// [`TxnError`] of the path; pass it on.
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError>;

    /// The value of a `key` that will be written: paths that lock do it now.
    ///
    /// # Errors
    /// As [`RowView::get`].
    fn get_for_update(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError>;

    /// Up to `limit` entries of `range`.
    ///
    /// # Errors
    /// As [`RowView::get`].
    fn scan(
        &mut self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Page, TxnError>;

    /// Writes (`Some`) or deletes (`None`) a key.
    ///
    /// # Errors
    /// As [`RowView::get`].
    fn write(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> Result<(), TxnError>;

    /// Whether reads made elsewhere still hold at this place in the order.
    ///
    /// # Errors
    /// As [`RowView::get`].
    fn still_true(&mut self, reads: &ReadSet) -> Result<bool, TxnError>;
}

/// Why a procedure did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ProcedureError {
    /// The caller's arguments make no sense.
    #[error("bad arguments: {0}")]
    Arguments(String),
    /// The procedure decided to undo everything, for example an order of an unknown item.
    #[error("aborted: {0}")]
    Aborted(String),
    /// The procedure broke its own plan: a defect of the procedure.
    #[error("broke its plan: {0}")]
    Plan(String),
    /// The rows could not be read or written.
    #[error(transparent)]
    Rows(#[from] TxnError),
}

impl ProcedureError {
    pub(crate) fn of(self, name: &str) -> TxnError {
        match self {
            ProcedureError::Rows(failure) => failure,
            other => TxnError::Procedure {
                name: name.into(),
                what: other.to_string(),
            },
        }
    }
}

/// A one-shot deterministic transaction.
pub trait Procedure: Send + Sync {
    /// What it is called by, the same on every node.
    fn name(&self) -> &str;

    /// Cuts a call into pieces. Depends on the arguments and the placement only.
    ///
    /// # Errors
    /// [`ProcedureError::Arguments`].
    fn plan(
        &self,
        args: &[u8],
        placement: &dyn Placement,
    ) -> Result<Vec<ProcedurePiece>, ProcedureError>;

    /// Runs one piece: `inputs` holds what it needs, the answer what it gives.
    ///
    /// # Errors
    /// [`ProcedureError`]; nothing of the call takes effect then.
    fn run(
        &self,
        piece: &ProcedurePiece,
        args: &[u8],
        inputs: &Values,
        rows: &mut dyn RowView,
    ) -> Result<Values, ProcedureError>;

    /// Rows that [`Procedure::run`] may touch in `piece`, from what is known before it runs: the
    /// arguments, not the inputs.
    fn touches(&self, piece: &ProcedurePiece, args: &[u8]) -> Vec<Touch> {
        let _ = (piece, args);
        vec![Touch::everything()]
    }

    /// What `piece` gives, if its arguments alone decide that: whatever rows and inputs it finds, it
    /// gives these values and cannot fail. `None`: it must run first.
    ///
    /// Blind and commutative updates are such pieces (an append, an increment that is not read). A
    /// path in which a transaction's place in the order is final may answer the client before such
    /// a piece has run, so that it need not wait for rows that an earlier transaction still uses.
    fn predetermined(&self, piece: &ProcedurePiece, args: &[u8]) -> Option<Values> {
        let _ = (piece, args);
        None
    }

    /// Whether running again after a conflict can end otherwise. Not so when the arguments
    /// themselves say what must not have changed.
    fn may_retry(&self) -> bool {
        true
    }
}

/// A call of a procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Who calls.
    pub txn: TxnId,
    /// The procedure's name.
    pub procedure: String,
    /// Its arguments, in its own encoding.
    pub args: Vec<u8>,
    /// When the call counts as done.
    pub durability: Durability,
}

/// The procedures a node knows, by name; [`ApplyIntent`] is always among them.
pub struct Registry {
    known: RwLock<BTreeMap<String, Arc<dyn Procedure>>>,
}

impl Default for Registry {
    fn default() -> Self {
        let registry = Self {
            known: RwLock::default(),
        };
        registry.register(Arc::new(ApplyIntent));
        registry
    }
}

impl Registry {
    /// Adds a procedure, or replaces the one of the same name.
    pub fn register(&self, procedure: Arc<dyn Procedure>) {
        let name = procedure.name().to_owned();
        self.known.write().insert(name, procedure);
    }

    /// The procedure of that name.
    ///
    /// # Errors
    /// [`TxnError::Procedure`] when there is none.
    pub fn find(&self, name: &str) -> Result<Arc<dyn Procedure>, TxnError> {
        let found = self.known.read().get(name).cloned();
        found.ok_or_else(|| TxnError::Procedure {
            name: name.into(),
            what: "not known on this node".into(),
        })
    }
}
