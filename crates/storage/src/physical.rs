//! The bytes of a stored record, the same for every engine that writes files.
//!
//! | part | bytes |
//! |---|---|
//! | key | escaped user key ‖ `00 01` ‖ 8 bytes of inverted version, big-endian |
//! | value | kind (`01` put, `02` delete) ‖ payload ‖ CRC-32 of key, kind and payload, little-endian |
//!
//! Escaping writes `00` as `00 FF`, so that the terminator `00 01` sorts before any longer key
//! and user keys keep their order whatever bytes they hold. Inverting the version sorts the
//! newest first: the newest version at or below `v` is where a seek to `v` lands. `00 00` starts
//! no escaped key and is left to records of the engine itself ([`LATEST_KEY`]).

use std::ops::Bound;

use manxdb_core::check::deep;

use crate::error::StorageError;
use crate::model::{KeyRange, Version};

/// Number of bytes the version takes at the end of a physical key.
pub const VERSION_BYTES: usize = 8;

/// Key of the record that holds the highest version written, and where the log ended with it.
pub const LATEST_KEY: &[u8] = b"\0\0latest";

const TERMINATOR: [u8; 2] = [0x00, 0x01];
const AFTER_TERMINATOR: [u8; 2] = [0x00, 0x02];
const _: () = assert!(
    LATEST_KEY[0] == TERMINATOR[0] && LATEST_KEY[1] < TERMINATOR[1],
    "the engine's own record comes before all rows"
);
const CHECKSUM_BYTES: usize = 4;
const KIND_PUT: u8 = 0x01;
const KIND_DELETE: u8 = 0x02;

/// What a stored value says about its key at its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'a> {
    /// The key has this value.
    Put(&'a [u8]),
    /// The key is absent.
    Delete,
}

/// Whether a stored value deletes its key, told without checking the checksum.
///
/// `None` when the value is no record this version of the format knows.
#[must_use]
pub fn is_delete(value: &[u8]) -> Option<bool> {
    match value.first() {
        Some(&KIND_PUT) => Some(false),
        Some(&KIND_DELETE) => Some(true),
        _ => None,
    }
}

/// What a stored value has between its kind and its checksum, neither of which is checked.
///
/// `None` when it is too short to have them.
#[must_use]
pub fn unchecked_payload(value: &[u8]) -> Option<&[u8]> {
    value.get(1..value.len().checked_sub(CHECKSUM_BYTES)?)
}

/// Appends the escaped key and its terminator: what all versions of `user_key` start with.
pub fn push_prefix(user_key: &[u8], out: &mut Vec<u8>) {
    push_escaped(user_key, out);
    out.extend_from_slice(&TERMINATOR);
}

/// What the physical keys of all user keys with this prefix begin with.
#[must_use]
pub fn escaped_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_escaped(prefix, &mut out);
    assert!(out.len() >= prefix.len(), "escaping leaves no byte out");
    out
}

/// Appends the escaped key.
fn push_escaped(user_key: &[u8], out: &mut Vec<u8>) {
    out.reserve(user_key.len() + 16);
    let mut rest = user_key;
    while let Some(zero) = rest.iter().position(|&byte| byte == 0) {
        out.extend_from_slice(&rest[..zero]);
        out.extend_from_slice(&[0x00, 0xFF]);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
}

/// Appends the inverted version.
pub fn push_version(version: Version, out: &mut Vec<u8>) {
    out.extend_from_slice(&(!version.0).to_be_bytes());
}

/// The physical key of `user_key` at `version`.
#[must_use]
pub fn key(user_key: &[u8], version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    push_prefix(user_key, &mut out);
    push_version(version, &mut out);
    assert_eq!(
        split(&out).map(|(_, version)| version),
        Some(version),
        "a key is read as it was written"
    );
    out
}

/// Whether a prefix is read as the user key that it was made of.
pub(crate) fn is_prefix_of(prefix: &[u8], user_key: &[u8]) -> bool {
    let mut read = Vec::new();
    unescape(prefix, &mut read).is_ok() && read == user_key
}

/// Splits a physical key into its prefix (escaped key with terminator) and its version.
///
/// `None` for records of the engine itself and for bytes that are no physical key.
#[must_use]
pub fn split(physical_key: &[u8]) -> Option<(&[u8], Version)> {
    let (prefix, version) = physical_key.split_last_chunk::<VERSION_BYTES>()?;
    prefix
        .ends_with(&TERMINATOR)
        .then(|| (prefix, Version(!u64::from_be_bytes(*version))))
}

/// Splits bytes that begin with an escaped key behind its terminator; `None` when it has none.
#[must_use]
pub fn first_prefix(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut at = 0;
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == 0)? + 2;
        match bytes.get(at - 1)? {
            0xFF => {}
            0x01 => return bytes.split_at_checked(at),
            _ => return None,
        }
    }
}

/// Writes the user key of a prefix into `out`, replacing what was there.
///
/// # Errors
/// [`StorageError::Corrupt`] when the prefix is no escaped key.
pub fn unescape(prefix: &[u8], out: &mut Vec<u8>) -> Result<(), StorageError> {
    out.clear();
    let mut rest = prefix;
    while let Some(zero) = rest.iter().position(|&byte| byte == 0) {
        out.extend_from_slice(&rest[..zero]);
        match rest.get(zero + 1) {
            Some(0xFF) => out.push(0x00),
            Some(0x01) if zero + 2 == rest.len() => {
                assert!(
                    out.len() + TERMINATOR.len() <= prefix.len(),
                    "a key is no longer than what it was escaped to"
                );
                return Ok(());
            }
            _ => break,
        }
        rest = &rest[zero + 2..];
    }
    Err(StorageError::Corrupt(format!(
        "stored key {} has no valid escaping",
        hex(prefix)
    )))
}

/// Writes the stored form of `record` under `physical_key` into `out`, replacing what was there.
pub fn encode_value(physical_key: &[u8], record: Record<'_>, out: &mut Vec<u8>) {
    out.clear();
    match record {
        Record::Put(payload) => {
            out.reserve(payload.len() + 1 + CHECKSUM_BYTES);
            out.push(KIND_PUT);
            out.extend_from_slice(payload);
        }
        Record::Delete => out.push(KIND_DELETE),
    }
    assert!(is_delete(out).is_some(), "a value is read back by its kind");
    let checksum = checksum(physical_key, out);
    out.extend_from_slice(&checksum.to_le_bytes());
    assert!(
        !deep() || decode_value(physical_key, out).is_ok_and(|read| read == record),
        "a value is read as it was written"
    );
}

/// Checks and opens a stored value.
///
/// # Errors
/// [`StorageError::Corrupt`] naming the key when the checksum or the kind does not match.
pub fn decode_value<'a>(physical_key: &[u8], value: &'a [u8]) -> Result<Record<'a>, StorageError> {
    let Some((body, stored)) = value.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(corrupt(physical_key, "its value is cut short"));
    };
    if checksum(physical_key, body) != u32::from_le_bytes(*stored) {
        return Err(corrupt(physical_key, "its checksum does not match"));
    }
    match body.split_first() {
        Some((&KIND_PUT, payload)) => Ok(Record::Put(payload)),
        Some((&KIND_DELETE, [])) => Ok(Record::Delete),
        _ => Err(corrupt(physical_key, "its kind is unknown")),
    }
}

/// Physical bounds `[lower, upper)` of the keys in `range`, all versions; `upper` `None` is open.
#[must_use]
pub fn bounds(range: &KeyRange) -> (Vec<u8>, Option<Vec<u8>>) {
    let lower = match &range.start {
        Bound::Included(start) => cut(start, TERMINATOR),
        Bound::Excluded(start) => cut(start, AFTER_TERMINATOR),
        Bound::Unbounded => TERMINATOR.to_vec(),
    };
    let upper = match &range.end {
        Bound::Included(end) => Some(cut(end, AFTER_TERMINATOR)),
        Bound::Excluded(end) => Some(cut(end, TERMINATOR)),
        Bound::Unbounded => None,
    };
    assert!(
        lower.as_slice() > LATEST_KEY,
        "no range of rows reaches records of the engine itself"
    );
    (lower, upper)
}

fn cut(user_key: &[u8], terminator: [u8; 2]) -> Vec<u8> {
    let mut out = escaped_prefix(user_key);
    out.extend_from_slice(&terminator);
    out
}

fn checksum(physical_key: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(physical_key);
    hasher.update(body);
    hasher.finalize()
}

fn corrupt(physical_key: &[u8], why: &str) -> StorageError {
    StorageError::Corrupt(format!("record {}: {why}", hex(physical_key)))
}

/// Up to 32 bytes in hexadecimal, for messages.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    match bytes.split_at_checked(32) {
        Some((shown, rest)) if !rest.is_empty() => format!("{}…", hex::encode(shown)),
        _ => hex::encode(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn small_key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(
            prop_oneof![Just(0u8), Just(1), Just(2), Just(0xFF), any::<u8>()],
            0..6,
        )
    }

    proptest! {
        #[test]
        fn physical_order_is_key_order_then_newest_first(
            a in small_key(), b in small_key(), va: u64, vb: u64,
        ) {
            let expected = a.cmp(&b).then(vb.cmp(&va));
            prop_assert_eq!(key(&a, Version(va)).cmp(&key(&b, Version(vb))), expected);
        }

        #[test]
        fn a_physical_key_gives_back_its_parts(user_key in small_key(), version: u64) {
            let physical = key(&user_key, Version(version));
            let (prefix, found) = split(&physical).unwrap();
            let mut unescaped = Vec::new();
            unescape(prefix, &mut unescaped).unwrap();
            prop_assert_eq!((unescaped, found), (user_key, Version(version)));
            prop_assert_eq!(first_prefix(&physical), Some((prefix, &physical[prefix.len()..])));
        }

        #[test]
        fn bounds_hold_exactly_the_keys_of_the_range(
            start in small_key(), end in small_key(), probe in small_key(),
            kinds in (0..3u8, 0..3u8), version: u64,
        ) {
            let bound = |kind, key: &Vec<u8>| match kind {
                0 => Bound::Included(key.clone()),
                1 => Bound::Excluded(key.clone()),
                _ => Bound::Unbounded,
            };
            let range = KeyRange { start: bound(kinds.0, &start), end: bound(kinds.1, &end) };
            let (lower, upper) = bounds(&range);
            let physical = key(&probe, Version(version));
            let inside = physical >= lower && upper.is_none_or(|upper| physical < upper);
            prop_assert_eq!(inside, range.contains(&probe));
        }

        #[test]
        fn no_bytes_make_reading_panic(
            key in prop::collection::vec(any::<u8>(), 0..40),
            value in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let _ = decode_value(&key, &value);
            let _ = is_delete(&value);
            let _ = unchecked_payload(&value);
            let mut out = Vec::new();
            let unescaped = unescape(&key, &mut out);
            if unescaped.is_ok() {
                let mut again = Vec::new();
                push_prefix(&out, &mut again);
                prop_assert_eq!(again, key.clone(), "only what was escaped is unescaped");
            }
            if let Some((prefix, rest)) = first_prefix(&key) {
                prop_assert_eq!([prefix, rest].concat(), key.clone());
                prop_assert!(unescape(prefix, &mut out).is_ok());
            }
            if let Some((prefix, version)) = split(&key) {
                let mut again = prefix.to_vec();
                push_version(version, &mut again);
                prop_assert_eq!(again, key);
            }
        }

        #[test]
        fn any_flipped_bit_of_a_record_is_found(
            user_key in small_key(), payload in prop::collection::vec(any::<u8>(), 0..20),
            bit in any::<prop::sample::Index>(),
        ) {
            let physical = key(&user_key, Version(7));
            let mut value = Vec::new();
            encode_value(&physical, Record::Put(&payload), &mut value);
            prop_assert_eq!(decode_value(&physical, &value).unwrap(), Record::Put(&payload));
            prop_assert_eq!(unchecked_payload(&value), Some(&payload[..]));
            let bit = bit.index(value.len() * 8);
            value[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(matches!(decode_value(&physical, &value), Err(StorageError::Corrupt(_))));
        }
    }

    #[test]
    fn a_record_under_another_key_is_corrupt_and_the_message_names_it() {
        let mut value = Vec::new();
        encode_value(&key(b"a", Version(1)), Record::Delete, &mut value);
        let error = decode_value(&key(b"b", Version(1)), &value).unwrap_err();
        assert!(error.to_string().contains("620001"), "{error}");
    }

    #[test]
    fn engine_records_are_outside_every_range() {
        let (lower, _) = bounds(&KeyRange {
            start: Bound::Unbounded,
            end: Bound::Unbounded,
        });
        assert!(LATEST_KEY < lower.as_slice());
        assert_eq!(split(LATEST_KEY), None);
    }
}
