//! The names of a stream's rows, and their values.
//!
//! ```text
//! entry      0 ‖ id                              → fields and values, each u32 length ‖ bytes
//! group      1 ‖ u32 length ‖ group              → last delivered id ‖ entries read i64 (-1: unknown)
//! consumer   2 ‖ u32 length ‖ group ‖ consumer   → seen i64 ‖ active i64 (milliseconds; -1: never)
//! pending    3 ‖ u32 length ‖ group ‖ id         → delivered u64 (milliseconds) ‖ deliveries u64 ‖ consumer
//! ```
//!
//! Numbers are big-endian. In this order a row comes behind those it refers to.

use super::StreamId;

/// What a row is of.
#[derive(Debug, PartialEq, Eq)]
pub enum RowName<'a> {
    /// An entry.
    Entry(StreamId),
    /// A group.
    Group(&'a [u8]),
    /// A group's consumer.
    Consumer(&'a [u8], &'a [u8]),
    /// An entry that a group has delivered and nobody acknowledged.
    Pending(&'a [u8], StreamId),
}

impl<'a> RowName<'a> {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Entry(id) => [&[0][..], &id.to_bytes()].concat(),
            Self::Group(group) => named(1, group, &[]),
            Self::Consumer(group, consumer) => named(2, group, consumer),
            Self::Pending(group, id) => named(3, group, &id.to_bytes()),
        }
    }

    /// The name of these bytes.
    #[must_use]
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (marker, rest) = bytes.split_first()?;
        if *marker == 0 {
            return StreamId::from_bytes(rest).map(Self::Entry);
        }
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (group, rest) = rest.split_at_checked(length)?;
        match marker {
            1 => rest.is_empty().then_some(Self::Group(group)),
            2 => Some(Self::Consumer(group, rest)),
            3 => StreamId::from_bytes(rest).map(|id| Self::Pending(group, id)),
            _ => None,
        }
    }
}

fn named(marker: u8, group: &[u8], rest: &[u8]) -> Vec<u8> {
    let length = u32::try_from(group.len()).unwrap_or(u32::MAX);
    [&[marker][..], &length.to_be_bytes(), group, rest].concat()
}

/// Fields and values in the form of an entry's row.
pub fn pack_fields<'a>(words: impl Iterator<Item = &'a [u8]>) -> Box<[u8]> {
    let mut out = Vec::new();
    for word in words {
        let length = u32::try_from(word.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(word);
    }
    out.into()
}

/// The fields and values, in turn, of an entry's row.
pub fn fields(mut packed: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = packed.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (word, rest) = rest.split_at_checked(length)?;
        packed = rest;
        Some(word)
    })
}

/// Whether these bytes are pairs of fields and values, at least one.
pub fn are_fields(packed: &[u8]) -> bool {
    let (count, bytes) = fields(packed).fold((0, 0), |(count, bytes), word| {
        (count + 1, bytes + 4 + word.len())
    });
    bytes == packed.len() && count > 0 && count % 2 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_read_back(
            group in prop::collection::vec(any::<u8>(), 0..5),
            consumer in prop::collection::vec(any::<u8>(), 0..5),
            millis: u64,
            sequence: u64,
        ) {
            let id = StreamId { millis, sequence };
            for name in [
                RowName::Entry(id),
                RowName::Group(&group),
                RowName::Consumer(&group, &consumer),
                RowName::Pending(&group, id),
            ] {
                let bytes = name.encode();
                prop_assert_eq!(RowName::decode(&bytes), Some(name));
            }
        }

        #[test]
        fn no_bytes_make_reading_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = RowName::decode(&bytes);
            let _ = are_fields(&bytes);
        }
    }

    #[test]
    fn fields_come_in_pairs() {
        let words = [&b"a"[..], b"", b"long field", b"v"];
        let packed = pack_fields(words.into_iter());
        assert!(are_fields(&packed));
        assert!(fields(&packed).eq(words));
        assert!(!are_fields(&pack_fields([&b"a"[..]].into_iter())));
        assert!(!are_fields(&packed[1..]) && !are_fields(b""));
    }
}
