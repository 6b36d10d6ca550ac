//! How deletes that a worker had to keep come back, for [`crate::rocks::tombstones`].
//!
//! Which version deleted a key is looked up again before it is purged, so a note is the key alone;
//! and keys come in order, so of each only what differs from the one before is sent.

use manxdb_core::check::deep;
use serde::{Deserialize, Serialize};

use crate::model::Version;
use crate::physical;

/// Bytes sent at most: they pass through the control plane. What does not fit is noted by a later
/// compaction.
const BYTES_MAX: usize = 256 << 10;

/// Bytes of all keys at most: a few shared ones could stand for any number.
const KEYS_BYTES_MAX: usize = 16 << 20;

/// A key without its version, after another one.
#[derive(Serialize, Deserialize)]
struct Note<'a> {
    /// Bytes that are those of the key before.
    shared: u32,
    rest: &'a [u8],
}

/// Physical keys as bytes.
pub fn encode(physical_keys: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut before: &[u8] = &[];
    let mut keys_bytes = 0;
    for key in physical_keys {
        let Some((prefix, _)) = physical::split(key) else {
            continue; // a record of the engine itself is no delete
        };
        let common = before.iter().zip(prefix).take_while(|(a, b)| a == b);
        let shared = common.count();
        let note = Note {
            shared: u32::try_from(shared).unwrap_or(0),
            rest: &prefix[shared..],
        };
        let Ok(written) = postcard::to_stdvec(&note) else {
            break;
        };
        keys_bytes += prefix.len();
        if bytes.len() + written.len() > BYTES_MAX || keys_bytes > KEYS_BYTES_MAX {
            break;
        }
        bytes.extend_from_slice(&written);
        before = prefix;
    }
    assert!(
        bytes.len() <= BYTES_MAX,
        "the database refuses no notes of an honest worker"
    );
    let is_last = |keys: Vec<Vec<u8>>| {
        let last = keys.last().and_then(|key| physical::split(key));
        last.map_or(&[][..], |(prefix, _)| prefix) == before
    };
    assert!(
        !deep() || decode(&bytes).is_ok_and(is_last),
        "the database reads the keys that the worker notes"
    );
    bytes
}

/// Physical keys of the notes, at the oldest version: it is not known which deleted them.
///
/// # Errors
/// They are not as [`encode`] writes them.
pub fn decode(mut bytes: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut keys = Vec::new();
    let mut before: Vec<u8> = Vec::new();
    let mut keys_bytes = 0;
    if bytes.len() > BYTES_MAX {
        return Err(format!("{} bytes of notes are too many", bytes.len()));
    }
    while !bytes.is_empty() {
        let (note, rest): (Note<'_>, _) = postcard::take_from_bytes(bytes)
            .map_err(|error| format!("notes of a compaction cannot be read: {error}"))?;
        bytes = rest;
        let shared = usize::try_from(note.shared).unwrap_or(usize::MAX);
        if shared > before.len() {
            return Err("a note shares more than the one before it has".to_owned());
        }
        before.truncate(shared);
        before.extend_from_slice(note.rest);
        keys_bytes += before.len();
        if keys_bytes > KEYS_BYTES_MAX {
            return Err(format!(
                "notes stand for more than {KEYS_BYTES_MAX} bytes of keys"
            ));
        }
        let mut key = before.clone();
        physical::push_version(Version::ZERO, &mut key);
        if physical::split(&key).is_none() {
            return Err("a note is no key".to_owned());
        }
        keys.push(key);
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_note_is_refused() {
        let good = encode(&[physical::key(b"row", Version(3))]);
        assert_eq!(
            decode(&good).unwrap(),
            [physical::key(b"row", Version::ZERO)]
        );
        for wrong in [&good[1..], &good[..good.len() - 1], &[5, 0], &[0, 1, 1]] {
            assert!(decode(wrong).is_err(), "{wrong:?}");
        }
        assert!(decode(&vec![0; BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn there_are_never_more_than_may_travel() {
        let many = (0..100_000_u32).map(|row| physical::key(&row.to_be_bytes(), Version(1)));
        let many: Vec<_> = many.collect();
        let bytes = encode(&many);
        assert!(bytes.len() <= BYTES_MAX);
        let back = decode(&bytes).unwrap();
        assert!(back.len() > 30_000, "{}", back.len());
    }

    #[test]
    fn few_bytes_do_not_stand_for_many() {
        let long = physical::key(&[7; 4_000], Version(1));
        let bytes = encode(&vec![long.clone(); 100_000]);
        let back = decode(&bytes).unwrap();
        assert!(back.len() * 4_002 <= KEYS_BYTES_MAX);
        let again = encode(&[long.clone(), long]);
        let (_, one) = again.split_at(encode(&back[..1]).len());
        let many = [&again[..], &one.repeat(back.len())].concat();
        assert!(decode(&many).unwrap_err().contains("more than"));
    }

    proptest! {
        #[test]
        fn keys_come_back_without_their_versions(
            keys in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..9), 0..9_u64), 0..40),
        ) {
            let physical = |version: fn(u64) -> u64| -> Vec<Vec<u8>> {
                keys.iter().map(|(key, at)| physical::key(key, Version(version(*at)))).collect()
            };
            let bytes = encode(&physical(|at| at));
            prop_assert_eq!(decode(&bytes).unwrap(), physical(|_| 0));
        }

        #[test]
        fn no_bytes_bring_it_down(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = decode(&bytes);
        }
    }
}
