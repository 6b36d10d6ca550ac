//! What a generator of one-shot transactions asks for next.

use manxdb_storage::Durability;
use manxdb_txn::TxnId;
use manxdb_txn::procedure::Call;

use crate::Reach;

/// A call to be made, and what is known of it beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The procedure.
    pub procedure: &'static str,
    /// Its arguments.
    pub args: Vec<u8>,
    /// How far it reaches from the client's region.
    pub reach: Reach,
    /// Pieces as published systems count them: the sum of the [steps] of the plan's pieces, which
    /// are fewer.
    ///
    /// [steps]: manxdb_txn::procedure::ProcedurePiece::steps
    pub pieces: u32,
    /// Whether a piece waits for a value from another region.
    pub waits_across_regions: bool,
}

impl Request {
    /// The request as a call.
    #[must_use]
    pub fn into_call(self, txn: TxnId, durability: Durability) -> Call {
        Call {
            txn,
            procedure: self.procedure.into(),
            args: self.args,
            durability,
        }
    }
}
