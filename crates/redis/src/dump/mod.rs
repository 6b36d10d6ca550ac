//! DUMP and RESTORE: a value as bytes that Redis, too, writes and reads.
//!
//! A payload is a type, the value in the form of an RDB file, the version of that form (u16) and a
//! CRC-64 of all before it, both little-endian. Written is version 10 (Redis 7.0) without compression, and
//! version 12 (Redis 7.4) of hashes with fields that expire.
//! Read are versions up to 12, all forms of values from Redis 2.6 on (see [`read`]).
//! Modules are neither written nor read.
//!
//! | file | what |
//! |---|---|
//! | `checksum` | the CRC |
//! | `write`, `read` | values and bytes |
//! | `stream` | streams with their groups |
//! | `packed` | ziplists, listpacks, intsets and compressed strings inside what is read |
//! | `commands` | DUMP, RESTORE |

mod checksum;
mod commands;
mod packed;
mod read;
mod stream;
mod write;

use crate::spec::{CommandSpec, Flags, Group, Keys, data};

/// The family's commands.
pub static COMMANDS: &[CommandSpec] = &[
    data(
        ("dump", 2),
        Flags::READONLY,
        Keys::ONE,
        Group::Generic,
        (
            "2.6.0",
            "Returns a serialized representation of the value stored at a key.",
        ),
        commands::dump,
    ),
    data(
        ("restore", -4),
        Flags::WRITE.and(Flags::DENYOOM).and(Flags::NO_VALUE),
        Keys::ONE,
        Group::Generic,
        (
            "2.6.0",
            "Creates a key from the serialized representation of a value.",
        ),
        commands::restore,
    ),
];

/// Version of the form that is written.
const VERSION: u16 = 10;
/// Version of hashes with fields that expire, the last that is read.
const VERSION_MAX: u16 = 12;

/// Types of values, as an RDB file numbers them.
mod kinds {
    pub const STRING: u8 = 0;
    pub const LIST: u8 = 1;
    pub const SET: u8 = 2;
    pub const ZSET_TEXT: u8 = 3;
    pub const HASH: u8 = 4;
    pub const ZSET: u8 = 5;
    pub const LIST_ZIPLIST: u8 = 10;
    pub const SET_INTSET: u8 = 11;
    pub const ZSET_ZIPLIST: u8 = 12;
    pub const HASH_ZIPLIST: u8 = 13;
    pub const LIST_OF_ZIPLISTS: u8 = 14;
    pub const HASH_LISTPACK: u8 = 16;
    pub const ZSET_LISTPACK: u8 = 17;
    pub const LIST_OF_LISTPACKS: u8 = 18;
    pub const STREAM_5: u8 = 15;
    pub const STREAM_7_0: u8 = 19;
    pub const SET_LISTPACK: u8 = 20;
    pub const STREAM_7_2: u8 = 21;
    pub const HASH_EXPIRING: u8 = 24;
    pub const HASH_EXPIRING_LISTPACK: u8 = 25;
    /// No value: the code of functions.
    pub const LIBRARY: u8 = 245;
}

/// The payload of libraries of functions, of their codes.
pub fn libraries<'a>(codes: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    for code in codes {
        out.push(kinds::LIBRARY);
        write::string(&mut out, code);
    }
    sealed(out, VERSION)
}

/// The codes of the libraries of a payload; `None` for one that Redis and this server did not write.
pub fn libraries_of(payload: &[u8]) -> Option<Vec<Vec<u8>>> {
    read::libraries(verified(payload)?)
}

/// The payload of a value; `None` for one that has none.
fn payload(value: &crate::keyspace::Value) -> Option<Vec<u8>> {
    let version = match value.next_due() {
        Some(_) => VERSION_MAX,
        None => VERSION,
    };
    write::value(value).map(|out| sealed(out, version))
}

/// With the version and the checksum.
fn sealed(mut out: Vec<u8>, version: u16) -> Vec<u8> {
    out.extend_from_slice(&version.to_le_bytes());
    let sum = checksum::crc64(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

/// The value's bytes of a payload whose version is known and whose checksum is right.
fn verified(payload: &[u8]) -> Option<&[u8]> {
    let (summed, sum) = payload.split_last_chunk::<8>()?;
    let (value, version) = summed.split_last_chunk::<2>()?;
    let is_right = u64::from_le_bytes(*sum) == checksum::crc64(summed);
    (is_right && u16::from_le_bytes(*version) <= VERSION_MAX).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::{Keyspace, Value};
    use crate::{Command, Stamp, execute};
    use proptest::prelude::*;

    fn value_of(lines: &[String]) -> Value {
        let mut keyspace = Keyspace::new();
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            execute(&mut keyspace, 0, &Command::of(&words), Stamp::new(1, 1));
        }
        keyspace.peek(0, b"k").unwrap().value.clone()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            kind in "SET|RPUSH|SADD|HSET|HPEXPIREAT|ZADD|XADD",
            words in prop::collection::vec((-99_999..99_999_i64, "[a-z]{0,30}"), 1..40),
        ) {
            let mut lines: Vec<String> = words.iter().map(|(number, text)| match kind.as_str() {
                "HPEXPIREAT" => format!("HSET k {number} x{text}"),
                "XADD" => format!("XADD k * f{} {number} g x{text}", number % 3),
                "HSET" | "ZADD" => format!("{kind} k {number} x{text}"),
                _ => format!("{kind} k {number}"),
            }).collect();
            if kind == "HPEXPIREAT" {
                let each = words.iter().filter(|(number, _)| number % 2 == 0);
                lines.extend(each.map(|(number, _)| {
                    format!("HPEXPIREAT k {} FIELDS 1 {number}", number.abs() + 5)
                }));
            }
            let value = value_of(&lines);
            let payload = payload(&value).unwrap();
            let bytes = verified(&payload).unwrap();
            let found = read::value(bytes).unwrap();
            let (mut one, mut other) = (Vec::new(), Vec::new());
            value.each_element(&mut |name, value| one.push((name.to_vec(), value.to_vec())));
            found.each_element(&mut |name, value| other.push((name.to_vec(), value.to_vec())));
            one.sort();
            other.sort();
            prop_assert_eq!(one, other);
            prop_assert_eq!(found.kind(), value.kind());
            let mut damaged = payload.clone();
            damaged[words.len() % payload.len()] ^= 1;
            prop_assert!(verified(&damaged).is_none());
        }

        #[test]
        fn no_bytes_make_reading_panic(kind in 0..26_u8, bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = read::value(&[&[kind][..], &bytes].concat());
            let _ = verified(&bytes);
        }

        #[test]
        fn no_packed_bytes_make_reading_panic(
            kind in prop::sample::select(vec![
                10_u8, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 25,
            ]),
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            header in prop::sample::select(vec![0_usize, 6, 8, 10]),
        ) {
            // A string of a length, behind a header of plausible zeros.
            let inner = [&vec![0; header][..], &bytes].concat();
            let length = u8::try_from(inner.len()).unwrap();
            let prefix: &[u8] = match kind {
                14 => &[1],
                18 => &[1, 2],
                25 => &[1, 0, 0, 0, 0, 0, 0, 0],
                15 | 19 | 21 => &[1, 16, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1],
                _ => &[],
            };
            let _ = read::value(&[&[kind][..], prefix, &[0x40, length][..], &inner].concat());
        }
    }
}
