//! What a carrier counts: each datagram once, by what became of it.

use std::fmt;

use manxdb_curp::wire::{Status, WireError};

use crate::layout::COUNTERS;

/// What became of a datagram. Counts 1 to 10 were answered with the status of that number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Count {
    /// Not for this witness: it goes its usual way.
    Passed = 0,
    /// Recorded, or synced already.
    Accepted = 1,
    /// One of its keys has another's record.
    Conflict = 2,
    /// No room where a hash belongs.
    Full = 3,
    /// Of a view that is not served.
    WrongLife = 4,
    /// Of a view that is frozen.
    Frozen = 5,
    /// A wrong token, no key, a key twice, or nobody's.
    Bad = 6,
    /// Another processor works on the same.
    Busy = 7,
    /// A collection.
    Collected = 8,
    /// A probe that found nothing.
    Clean = 9,
    /// A probe that found a record.
    Dirty = 10,
    /// Dropped: shorter or longer than it says, or than any is.
    Length = 11,
    /// Dropped: another protocol, or another version of this one.
    Foreign = 12,
    /// Dropped: a byte flipped on the way.
    Checksum = 13,
    /// Dropped: no such operation, status or count.
    Field = 14,
    /// Dropped: an answer, not a question.
    Answer = 15,
    /// Dropped: the kernel refused to do what it has to.
    Failed = 16,
}

impl Count {
    /// All of them, by number.
    pub const ALL: [Self; COUNTERS] = [
        Self::Passed,
        Self::Accepted,
        Self::Conflict,
        Self::Full,
        Self::WrongLife,
        Self::Frozen,
        Self::Bad,
        Self::Busy,
        Self::Collected,
        Self::Clean,
        Self::Dirty,
        Self::Length,
        Self::Foreign,
        Self::Checksum,
        Self::Field,
        Self::Answer,
        Self::Failed,
    ];

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Accepted => "accepted",
            Self::Conflict => "conflict",
            Self::Full => "full",
            Self::WrongLife => "wrong life",
            Self::Frozen => "frozen",
            Self::Bad => "bad",
            Self::Busy => "busy",
            Self::Collected => "collected",
            Self::Clean => "clean",
            Self::Dirty => "dirty",
            Self::Length => "dropped: length",
            Self::Foreign => "dropped: foreign",
            Self::Checksum => "dropped: checksum",
            Self::Field => "dropped: field",
            Self::Answer => "dropped: answer",
            Self::Failed => "dropped: failed",
        }
    }

    /// Of an answer.
    #[must_use]
    pub fn of_status(status: Status) -> Self {
        assert!(status != Status::None, "an answer has a status");
        Self::ALL[usize::from(status as u8)]
    }

    /// Of bytes that are no datagram.
    #[must_use]
    pub fn of_error(error: WireError) -> Self {
        match error {
            WireError::Length => Self::Length,
            WireError::Unknown => Self::Foreign,
            WireError::Checksum => Self::Checksum,
            WireError::Field => Self::Field,
        }
    }

    /// Whether the datagram was refused for what is in it.
    #[must_use]
    pub fn is_refusal(self) -> bool {
        matches!(
            self,
            Self::Bad | Self::Length | Self::Foreign | Self::Checksum | Self::Field | Self::Answer
        )
    }
}

/// How many datagrams came to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts(pub [u64; COUNTERS]);

impl Counts {
    /// Counts one more.
    pub fn add(&mut self, what: Count) {
        let before = self.of(what);
        self.0[what as usize] += 1;
        assert!(self.of(what) > before, "a count only grows");
    }

    /// Of one kind.
    #[must_use]
    pub fn of(&self, what: Count) -> u64 {
        self.0[what as usize]
    }

    /// All that were refused for what is in them.
    #[must_use]
    pub fn refused(&self) -> u64 {
        let refusals = Count::ALL.iter().filter(|count| count.is_refusal());
        refusals.map(|count| self.of(*count)).sum()
    }

    /// All that were answered.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.0[Count::Accepted as usize..=Count::Dirty as usize]
            .iter()
            .sum()
    }
}

impl fmt::Display for Counts {
    /// Those that are not zero, in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for count in Count::ALL {
            if self.of(count) > 0 {
                write!(f, "{separator}{} {}", count.name(), self.of(count))?;
                separator = ", ";
            }
        }
        if separator.is_empty() {
            f.write_str("nothing yet")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_has_the_number_of_its_status() {
        for (number, count) in Count::ALL.iter().enumerate() {
            assert_eq!(*count as usize, number);
        }
        assert_eq!(Count::of_status(Status::Dirty), Count::Dirty);
        assert_eq!(Count::of_status(Status::WrongLife), Count::WrongLife);
        let mut counts = Counts::default();
        assert_eq!(counts.to_string(), "nothing yet");
        counts.add(Count::Accepted);
        counts.add(Count::Checksum);
        assert_eq!((counts.answered(), counts.refused()), (1, 1));
        assert_eq!(counts.to_string(), "accepted 1, dropped: checksum 1");
    }
}
