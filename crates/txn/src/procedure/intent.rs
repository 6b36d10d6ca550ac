//! The built-in procedure that validates and applies an intent.
//!
//! On one shard it is one piece. On several, each shard votes on the reads it can check, and
//! each writes its part once all votes are there: all yes, or nothing.

use manxdb_core::check::deep;
use std::collections::BTreeSet;

use manxdb_storage::Durability;

use super::codec::{Reader, Writer};
use super::{
    Placement, Procedure, ProcedureError, ProcedurePiece, RowView, ShardId, Slot, Touch, Values,
};
use crate::model::{Intent, IsolationLevel, ReadSet, TxnId};

/// Name of the built-in procedure.
pub const APPLY_INTENT: &str = "manxdb.apply_intent";

const YES: &[u8] = b"1";
const NO: &[u8] = b"0";

/// Validates and applies the encoded intent that is its argument.
#[derive(Debug, Default, Clone, Copy)]
pub struct ApplyIntent;

/// Parts: 0 votes, 1 writes.
const VOTE: u32 = 0;
const APPLY: u32 = 1;

/// Whether the values of a finished call say that the intent was applied; else a read of it was
/// no longer true.
#[must_use]
pub fn is_applied(values: &Values) -> bool {
    values.values().all(|vote| vote == YES)
}

/// The vote of one shard.
fn vote_of(shard: ShardId) -> Slot {
    Slot(shard.0)
}

/// The shards an intent touches, ascending.
fn shards_of(intent: &Intent, placement: &dyn Placement) -> BTreeSet<ShardId> {
    let points = intent.reads.points.iter();
    let read = points.map(|(key, _)| placement.shard_of(&key));
    let mut shards: BTreeSet<ShardId> = read.collect();
    let written = intent.writes.iter();
    shards.extend(written.map(|(key, _)| placement.shard_of(key)));
    for (range, _) in &intent.reads.ranges {
        shards.extend(placement.shards_of(range));
    }
    shards
}

impl Procedure for ApplyIntent {
    fn name(&self) -> &str {
        APPLY_INTENT
    }

    fn plan(
        &self,
        args: &[u8],
        placement: &dyn Placement,
    ) -> Result<Vec<ProcedurePiece>, ProcedureError> {
        let shards = shards_of(&decode_intent(args)?, placement);
        let votes: Vec<Slot> = shards.iter().copied().map(vote_of).collect();
        let vote = |shard: &ShardId| ProcedurePiece {
            part: VOTE,
            shard: *shard,
            needs: Vec::new(),
            gives: vec![vote_of(*shard)],
            steps: 1,
        };
        let apply = |shard: &ShardId| ProcedurePiece {
            part: APPLY,
            shard: *shard,
            needs: votes.clone(),
            gives: Vec::new(),
            steps: 1,
        };
        let pieces = shards.iter().map(vote);
        Ok(pieces.chain(shards.iter().map(apply)).collect())
    }

    fn run(
        &self,
        piece: &ProcedurePiece,
        args: &[u8],
        inputs: &Values,
        rows: &mut dyn RowView,
    ) -> Result<Values, ProcedureError> {
        let intent = decode_intent(args)?;
        if piece.part == VOTE {
            let vote = if still_true_here(intent.reads, rows)? {
                YES
            } else {
                NO
            };
            return Ok(Values::from([(vote_of(piece.shard), vote.to_vec())]));
        }
        // A vote that did not come is not one for it.
        assert!(
            piece.needs.iter().all(|slot| inputs.contains_key(slot)),
            "each shard of an intent has voted before it is applied"
        );
        if is_applied(inputs) {
            for (key, value) in intent.writes {
                if rows.holds(&key) {
                    rows.write(key, value)?;
                }
            }
        }
        Ok(Values::new())
    }

    /// All of the intent's, those on other shards included: they clash with nothing here.
    fn touches(&self, piece: &ProcedurePiece, args: &[u8]) -> Vec<Touch> {
        let Ok(intent) = decode_intent(args) else {
            return vec![Touch::everything()];
        };
        if piece.part == APPLY {
            let keys = intent.writes.iter();
            return keys.map(|(key, _)| Touch::write(key)).collect();
        }
        let points = intent.reads.points.iter();
        let points = points.map(|(key, _)| Touch::read(&key));
        let ranges = intent.reads.ranges.into_iter().map(|(range, _)| Touch {
            range,
            writes: false,
        });
        points.chain(ranges).collect()
    }

    fn may_retry(&self) -> bool {
        false
    }
}

/// Ranges are checked by every shard, each for the rows it has.
fn still_true_here(mut reads: ReadSet, rows: &mut dyn RowView) -> Result<bool, ProcedureError> {
    reads.points.retain(|key, _| rows.holds(key));
    Ok(rows.still_true(&reads)?)
}

/// Bytes of an intent, for [`ApplyIntent`].
#[must_use]
pub fn encode_intent(intent: &Intent) -> Vec<u8> {
    let mut out = Writer::default();
    out.number(intent.txn.0);
    out.byte(match intent.isolation {
        IsolationLevel::ReadCommitted => 0,
        IsolationLevel::RepeatableRead => 1,
        IsolationLevel::Serializable => 2,
    });
    out.byte(match intent.durability {
        Durability::Sync => 0,
        Durability::Async => 1,
    });
    out.reads(&intent.reads);
    out.writes(&intent.writes);
    let bytes = out.into_bytes();
    if deep() {
        let read = decode_intent(&bytes).ok();
        assert_eq!(
            read.as_ref(),
            Some(intent),
            "an intent is read as it was written"
        );
    }
    bytes
}

/// The intent of [`encode_intent`].
///
/// # Errors
/// [`ProcedureError::Arguments`] when the bytes are not one intent.
pub fn decode_intent(bytes: &[u8]) -> Result<Intent, ProcedureError> {
    let read = |input: &mut Reader<'_>| {
        let txn = TxnId(input.number()?);
        let isolation = match input.byte()? {
            0 => IsolationLevel::ReadCommitted,
            1 => IsolationLevel::RepeatableRead,
            2 => IsolationLevel::Serializable,
            _ => return None,
        };
        let durability = match input.byte()? {
            0 => Durability::Sync,
            1 => Durability::Async,
            _ => return None,
        };
        let (reads, writes) = (input.reads()?, input.writes()?);
        input.is_at_end().then_some(Intent {
            txn,
            isolation,
            reads,
            writes,
            durability,
            locks: Vec::new(),
        })
    };
    let malformed = || ProcedureError::Arguments("not an encoded intent".into());
    read(&mut Reader::new(bytes)).ok_or_else(malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use manxdb_storage::{KeyRange, Version};
    use proptest::prelude::*;
    use std::ops::Bound;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..9)
    }

    fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
        prop_oneof![
            bytes().prop_map(Bound::Included),
            bytes().prop_map(Bound::Excluded),
            Just(Bound::Unbounded),
        ]
    }

    prop_compose! {
        fn range()(start in bound(), end in bound()) -> KeyRange {
            KeyRange { start, end }
        }
    }

    prop_compose! {
        fn intent()(
            txn in any::<u64>(),
            points in prop::collection::vec((bytes(), any::<u64>().prop_map(Version)), 0..5),
            ranges in prop::collection::vec((range(), any::<u64>().prop_map(Version)), 0..5),
            writes in prop::collection::vec((bytes(), prop::option::of(bytes())), 0..5),
        ) -> Intent {
            Intent {
                txn: TxnId(txn),
                isolation: IsolationLevel::RepeatableRead,
                reads: ReadSet { points: points.into(), ranges },
                writes,
                durability: Durability::Async,
                locks: Vec::new(),
            }
        }
    }

    proptest! {
        #[test]
        fn an_intent_survives_its_encoding(intent in intent()) {
            prop_assert_eq!(decode_intent(&encode_intent(&intent)).unwrap(), intent);
        }

        #[test]
        fn cut_or_random_bytes_are_refused_without_panic(
            intent in intent(),
            cut in any::<prop::sample::Index>(),
            random in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let encoded = encode_intent(&intent);
            let cut = cut.index(encoded.len());
            prop_assert!(decode_intent(&encoded[..cut]).is_err());
            let _ = decode_intent(&random);
        }
    }
}
