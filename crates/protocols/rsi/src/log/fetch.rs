//! Reads slots of logs, which are far longer than most of what is in them.

use manxdb_fabric::{Address, Operation, OperationOutcome, WORD_LENGTH};

use crate::machine::copy_of;

/// Bytes that are read of each slot first.
const FRONT: u64 = 4 << 10;

/// Reads the front of each slot, and then the rest of entries that are longer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Fetch {
    slots: Vec<(Address, u64)>,
    /// Fronts, which become whole.
    copies: Vec<OperationOutcome>,
    /// Of which slots the rests are under way.
    longer: Vec<usize>,
}

impl Fetch {
    pub(crate) fn new(slots: Vec<(Address, u64)>) -> Self {
        Self {
            slots,
            copies: Vec::new(),
            longer: Vec::new(),
        }
    }

    /// What is to be asked first.
    pub(crate) fn fronts(&self) -> Vec<Operation> {
        let front = |(at, bytes): &(Address, u64)| Operation::Read {
            at: *at,
            bytes: FRONT.min(*bytes),
        };
        self.slots.iter().map(front).collect()
    }

    /// What is to be asked next.
    pub(crate) fn rests(&mut self, fronts: Vec<OperationOutcome>) -> Vec<Operation> {
        assert_eq!(fronts.len(), self.slots.len(), "each slot has a front");
        self.copies = fronts;
        let mut rests = Vec::new();
        let pairs = self.slots.iter().zip(&self.copies).enumerate();
        for (number, ((at, bytes), copy)) in pairs {
            if let Some(length) = rest(copy, *bytes) {
                let at = at.plus(FRONT);
                rests.push(Operation::Read { at, bytes: length });
                self.longer.push(number);
            }
        }
        rests
    }

    /// A copy of each slot, as long as its entry at least, or why there is none.
    pub(crate) fn copies(mut self, rests: Vec<OperationOutcome>) -> Vec<OperationOutcome> {
        assert_eq!(
            rests.len(),
            self.longer.len(),
            "each rest that was asked for is here"
        );
        assert_eq!(
            self.copies.len(),
            self.slots.len(),
            "fronts come before rests"
        );
        for (number, rest) in self.longer.into_iter().zip(rests) {
            let front = self.copies.get_mut(number);
            assert!(
                matches!(front, Some(OperationOutcome::Read(_))),
                "only an entry whose front is here has a rest"
            );
            match (front, copy_of(&rest)) {
                (Some(OperationOutcome::Read(copy)), Ok(rest)) => copy.extend(rest),
                (Some(copy), Err(_)) => *copy = rest,
                _ => {}
            }
        }
        self.copies
    }
}

/// Bytes of an entry, with its sum, that its front lacks; none: it has all, or is not one.
fn rest(front: &OperationOutcome, bytes: u64) -> Option<u64> {
    let OperationOutcome::Read(copy) = front else {
        return None;
    };
    let length = u64::from_le_bytes(*copy.first_chunk()?);
    let all = length.checked_add(WORD_LENGTH as u64)?;
    let is_entry = all <= bytes && all.is_multiple_of(WORD_LENGTH as u64);
    let lacking = all.checked_sub(copy.len() as u64)?;
    (is_entry && lacking > 0).then_some(lacking)
}
