//! What a serializable commit looks at again: what it has read and does not write.

use manxdb_fabric::{Address, Operation, OperationOutcome, WORD};

use crate::abort::Abort;
use crate::directory::{Bucket, Print};
use crate::find::LookupResult;
use crate::version::Head;

/// What must still be so.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Check {
    /// A record has this head.
    Head(Address, Head),
    /// No record under a key is in this bucket, nor in one behind it.
    Bucket(Bucket, Print),
}

impl Check {
    pub(super) fn of(found: &LookupResult) -> Vec<Self> {
        match found {
            LookupResult::Record(seen) => vec![Self::Head(seen.at, seen.head())],
            LookupResult::Nothing(absence) => {
                let (trail, print) = (&absence.trail, absence.print);
                let check = |bucket: &Bucket| Self::Bucket(*bucket, print);
                trail.iter().map(check).collect()
            }
        }
    }

    pub(super) fn operation(&self) -> Operation {
        match self {
            Self::Head(at, _) => Operation::Read {
                at: *at,
                bytes: WORD,
            },
            Self::Bucket(bucket, _) => Bucket::read(bucket.at),
        }
    }

    /// Why it is not so any more, if it is not.
    pub(super) fn judge(&self, outcome: &OperationOutcome) -> Result<(), Abort> {
        match (self, outcome) {
            (_, OperationOutcome::Failed(fault)) => Err(Abort::Fault(*fault)),
            (Self::Head(_, head), OperationOutcome::Read(copy))
                if *copy == head.word().to_le_bytes() =>
            {
                Ok(())
            }
            (Self::Head(at, _), outcome) => {
                assert!(
                    matches!(outcome, OperationOutcome::Read(_)),
                    "a read is answered by a copy"
                );
                Err(Abort::ReadConflict(*at))
            }
            (Self::Bucket(then, print), OperationOutcome::Read(copy)) => {
                let now = Bucket::parse(then.at, copy);
                let is_same = now.places(*print).eq(then.places(*print));
                if is_same && now.next() == then.next() {
                    Ok(())
                } else {
                    Err(Abort::Appeared(then.at))
                }
            }
            (Self::Bucket(then, _), outcome) => {
                assert!(
                    matches!(outcome, OperationOutcome::Read(_)),
                    "a read is answered by a copy"
                );
                Err(Abort::Appeared(then.at))
            }
        }
    }
}
