//! The name of an entry: a time and a number within that millisecond.

use std::fmt;

use crate::error::CommandError;

/// An entry's ID. Its order is that of entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Milliseconds since 1970, unless a client chose otherwise.
    pub millis: u64,
    /// Number within the millisecond.
    pub sequence: u64,
}

/// An ID as XADD takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewId {
    /// `*`: by the command's time.
    Automatic,
    /// `millis-*`: the next one of that millisecond.
    Within(u64),
    /// All of it.
    Exact(StreamId),
}

/// What is said of text that is no ID.
const INVALID: CommandError =
    CommandError::text("ERR Invalid stream ID specified as stream command argument");

impl StreamId {
    /// The first one, which no entry has.
    pub const MIN: Self = Self {
        millis: 0,
        sequence: 0,
    };
    /// The last one.
    pub const MAX: Self = Self {
        millis: u64::MAX,
        sequence: u64::MAX,
    };
    /// Bytes of its row form.
    pub const BYTES: usize = 16;

    /// The one behind it, unless it is the last.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        let (sequence, is_over) = self.sequence.overflowing_add(1);
        let millis = self.millis.checked_add(u64::from(is_over))?;
        Some(Self { millis, sequence })
    }

    /// The one before it, unless it is the first.
    #[must_use]
    pub fn previous(self) -> Option<Self> {
        let (sequence, is_under) = self.sequence.overflowing_sub(1);
        let millis = self.millis.checked_sub(u64::from(is_under))?;
        Some(Self { millis, sequence })
    }

    /// Big-endian bytes, in the order of IDs.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..8].copy_from_slice(&self.millis.to_be_bytes());
        out[8..].copy_from_slice(&self.sequence.to_be_bytes());
        out
    }

    /// The ID of [`StreamId::to_bytes`].
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (millis, sequence) = bytes.split_first_chunk::<8>()?;
        Some(Self {
            millis: u64::from_be_bytes(*millis),
            sequence: u64::from_be_bytes(sequence.try_into().ok()?),
        })
    }

    /// An ID that is a whole one, or a time, which gets `sequence`.
    pub(crate) fn parse(text: &[u8], sequence: u64) -> Result<Self, CommandError> {
        let (millis, behind) = split(text);
        Ok(Self {
            millis: number(millis)?,
            sequence: behind.map_or(Ok(sequence), number)?,
        })
    }

    /// An ID of a range's end: `-` and `+` are the first and the last.
    pub(crate) fn parse_bound(text: &[u8], sequence: u64) -> Result<Self, CommandError> {
        match text {
            b"-" => Ok(Self::MIN),
            b"+" => Ok(Self::MAX),
            _ => Self::parse(text, sequence),
        }
    }

    /// Where a range starts: `(` leaves the ID itself out.
    pub(crate) fn parse_start(text: &[u8]) -> Result<Self, CommandError> {
        match text.strip_prefix(b"(") {
            None => Self::parse_bound(text, 0),
            Some(inner) => Self::parse(inner, 0)?
                .next()
                .ok_or(CommandError::text("ERR invalid start ID for the interval")),
        }
    }

    /// Where a range ends: `(` leaves the ID itself out.
    pub(crate) fn parse_end(text: &[u8]) -> Result<Self, CommandError> {
        match text.strip_prefix(b"(") {
            None => Self::parse_bound(text, u64::MAX),
            Some(inner) => Self::parse(inner, u64::MAX)?
                .previous()
                .ok_or(CommandError::text("ERR invalid end ID for the interval")),
        }
    }
}

impl NewId {
    /// The ID that XADD asks for.
    pub fn parse(text: &[u8]) -> Result<Self, CommandError> {
        match split(text) {
            (b"*", None) => Ok(Self::Automatic),
            (millis, Some(b"*")) => Ok(Self::Within(number(millis)?)),
            _ => StreamId::parse(text, 0).map(Self::Exact),
        }
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.millis, self.sequence)
    }
}

fn split(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|byte| *byte == b'-') {
        None => (text, None),
        Some(at) => (&text[..at], Some(&text[at + 1..])),
    }
}

fn number(digits: &[u8]) -> Result<u64, CommandError> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(INVALID);
    }
    let add = |sum: u64, digit: &u8| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    digits.iter().try_fold(0, add).ok_or(INVALID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn text_and_bytes_read_back(millis: u64, sequence: u64) {
            let id = StreamId { millis, sequence };
            prop_assert_eq!(StreamId::parse(id.to_string().as_bytes(), 7), Ok(id));
            prop_assert_eq!(StreamId::from_bytes(&id.to_bytes()), Some(id));
            prop_assert_eq!(id.next().and_then(StreamId::previous).unwrap_or(id), id);
        }

        #[test]
        fn no_bytes_make_parsing_panic(bytes in prop::collection::vec(any::<u8>(), 0..30)) {
            let _ = StreamId::parse(&bytes, 0);
            let _ = NewId::parse(&bytes);
            let _ = StreamId::parse_end(&bytes);
            let _ = StreamId::from_bytes(&bytes);
        }
    }

    #[test]
    fn the_ends_have_no_neighbours() {
        assert_eq!(StreamId::MAX.next(), None);
        assert_eq!(StreamId::MIN.previous(), None);
        assert!(StreamId::parse_start(b"(18446744073709551615-18446744073709551615").is_err());
        assert!(StreamId::parse(b"18446744073709551616", 0).is_err());
        assert!(StreamId::parse(b"-", 0).is_err() && StreamId::parse(b"1-", 0).is_err());
    }
}
