//! The bytes of rows. All keys begin with [`SPACE`].
//!
//! ```text
//! key        R m ‖ db u8 ‖ epoch u32 ‖ key                                  → head ‖ body
//! element    R e ‖ db u8 ‖ epoch u32 ‖ len(key) u32 ‖ key ‖ generation u64 ‖ name → value
//! epoch      R d ‖ db u8                                                    → epoch u32
//! garbage    R g ‖ a prefix of keys                                         → nothing
//! reserved   R n                                                            → generation u64
//! library    R f ‖ name                                                     → the code of its functions
//! script     R s ‖ SHA-1 in hexadecimal digits                              → number u64 ‖ text
//! ```
//!
//! Numbers are big-endian. A head is a format byte (1 or 2), a byte of the type with flags (0x10: an
//! expiry follows, 0x20: elements have rows), the expiry u64 in milliseconds, and with rows the generation
//! u64. The body of a string is its bytes; of a small collection its elements, each name and value
//! with a u32 of its length; of a large one the number of elements u64. Before a stream's elements,
//! or their number, are its last ID, its largest deleted ID and the number of entries ever added.
//!
//! Format 2 is that of hashes whose fields may expire: each value has the field's expiry before it, a u64 in
//! milliseconds, 0 for none; before the number of elements of a large one is the earliest expiry of all fields,
//! 0 for none.
//!
//! A key's rows of an older epoch or generation are seen by nobody. A garbage row, written in
//! the batch that made them so, names them for compactions that drop them and for the pass that
//! removes them.

use super::effects::RowWrite;
use super::entry::Entry;
use super::value::{Kind, Value};
use crate::objects::Hash;

/// First byte of all keys of Redis rows in the store, which SQL's never are.
pub const SPACE: u8 = b'R';

const META: u8 = b'm';
const ELEMENT: u8 = b'e';
const EPOCH: u8 = b'd';
const GARBAGE: u8 = b'g';
const RESERVED: u8 = b'n';
const LIBRARY: u8 = b'f';
const SCRIPT: u8 = b's';

const FORMAT: u8 = 1;
const FORMAT_OF_EXPIRIES: u8 = 2;
const HAS_EXPIRY: u8 = 0x10;
const IN_ROWS: u8 = 0x20;
const KIND_MASK: u8 = 0x0F;

/// Bytes before the key in the key of its row.
const META_HEAD: usize = 7;

fn head(marker: u8, db: usize, epoch: u32, more: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(META_HEAD + more);
    out.push(SPACE);
    out.push(marker);
    out.push(u8::try_from(db).unwrap_or(u8::MAX));
    out.extend_from_slice(&epoch.to_be_bytes());
    assert_eq!(out.len(), META_HEAD, "the head of a row has one length");
    out
}

/// The key of `key`'s row.
#[must_use]
pub fn meta_key(db: usize, epoch: u32, key: &[u8]) -> Vec<u8> {
    let mut out = head(META, db, epoch, key.len());
    out.extend_from_slice(key);
    out
}

/// What all keys' rows begin with.
#[must_use]
pub fn meta_prefix() -> [u8; 2] {
    [SPACE, META]
}

/// What all garbage rows begin with.
#[must_use]
pub fn garbage_prefix() -> [u8; 2] {
    [SPACE, GARBAGE]
}

/// What the keys of all libraries' rows begin with.
#[must_use]
pub fn library_prefix() -> [u8; 2] {
    [SPACE, LIBRARY]
}

/// What the keys of all scripts' rows begin with. Only replicated machines keep scripts.
#[must_use]
pub fn script_prefix() -> [u8; 2] {
    [SPACE, SCRIPT]
}

/// The row of a library of functions, or its removal.
#[must_use]
pub fn library(name: &str, code: Option<&[u8]>) -> RowWrite {
    RowWrite {
        key: [&library_prefix()[..], name.as_bytes()].concat(),
        value: code.map(<[u8]>::to_vec),
    }
}

/// The database and key of a key's row.
#[must_use]
pub fn split_meta_key(row: &[u8]) -> Option<(usize, &[u8])> {
    split_meta(row).map(|(db, _, key)| (db, key))
}

/// The database, epoch and key of a key's row.
#[must_use]
pub fn split_meta(row: &[u8]) -> Option<(usize, u32, &[u8])> {
    let (head, key) = row.split_at_checked(META_HEAD)?;
    let [SPACE, META, db, epoch @ ..] = head else {
        return None;
    };
    let db = usize::from(*db);
    let epoch = u32::from_be_bytes(epoch.try_into().ok()?);
    (db < super::DATABASES).then_some((db, epoch, key))
}

/// The database of a key's row.
#[must_use]
pub fn database_of(row: &[u8]) -> Option<usize> {
    split_meta_key(row).map(|(db, _)| db)
}

/// What the keys of the rows of a key's elements begin with.
#[must_use]
pub fn element_prefix(db: usize, epoch: u32, key: &[u8], generation: u64) -> Vec<u8> {
    let mut out = head(ELEMENT, db, epoch, key.len() + 12);
    let length = u32::try_from(key.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(&generation.to_be_bytes());
    out
}

/// What the keys of all elements' rows begin with.
#[must_use]
pub fn element_space() -> [u8; 2] {
    [SPACE, ELEMENT]
}

/// The database, epoch, key and generation of an element's row.
#[must_use]
pub fn split_element(row: &[u8]) -> Option<(usize, u32, &[u8], u64)> {
    let (head, rest) = row.split_at_checked(META_HEAD)?;
    let [SPACE, ELEMENT, db, epoch @ ..] = head else {
        return None;
    };
    let db = usize::from(*db);
    let epoch = u32::from_be_bytes(epoch.try_into().ok()?);
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (key, rest) = rest.split_at_checked(length)?;
    let (generation, _) = rest.split_first_chunk::<8>()?;
    let generation = u64::from_be_bytes(*generation);
    (db < super::DATABASES).then_some((db, epoch, key, generation))
}

/// The row that says where rows are that nobody sees.
#[must_use]
pub fn garbage(prefix: &[u8]) -> RowWrite {
    RowWrite {
        key: [&garbage_prefix()[..], prefix].concat(),
        value: Some(Vec::new()),
    }
}

/// The prefix that a garbage row names.
#[must_use]
pub fn garbage_of(row: &[u8]) -> Option<&[u8]> {
    let prefix = row.strip_prefix(&garbage_prefix())?;
    // Never more than what one epoch of a database holds.
    let is_known = matches!(prefix, [SPACE, META | ELEMENT, ..]) && prefix.len() >= META_HEAD;
    is_known.then_some(prefix)
}

/// All rows of an epoch are garbage.
#[must_use]
pub fn epoch_garbage(db: usize, epoch: u32) -> [RowWrite; 2] {
    [META, ELEMENT].map(|marker| garbage(&head(marker, db, epoch, 0)))
}

/// The key of the row of a database's epoch.
#[must_use]
pub fn epoch_key(db: usize) -> Vec<u8> {
    vec![SPACE, EPOCH, u8::try_from(db).unwrap_or(u8::MAX)]
}

/// A database begins an epoch.
#[must_use]
pub fn epoch(db: usize, epoch: u32) -> RowWrite {
    RowWrite {
        key: epoch_key(db),
        value: Some(epoch.to_be_bytes().to_vec()),
    }
}

/// The database that begins an epoch with a row of this key.
#[must_use]
pub fn begun_epoch(row: &[u8]) -> Option<usize> {
    match row {
        [SPACE, EPOCH, db] => Some(usize::from(*db)),
        _ => None,
    }
}

/// The key of the row of reserved generations.
#[must_use]
pub fn reserved_key() -> Vec<u8> {
    vec![SPACE, RESERVED]
}

/// Generations up to `last` are given by this process.
#[must_use]
pub fn reserved(last: u64) -> RowWrite {
    RowWrite {
        key: reserved_key(),
        value: Some(last.to_be_bytes().to_vec()),
    }
}

/// The value of a key's row.
#[must_use]
pub fn encode_meta(entry: &Entry) -> Vec<u8> {
    let in_rows = entry.value.pending().is_some_and(|pending| pending.in_rows);
    let expiry_bytes = if entry.expires > 0 { 8 } else { 0 };
    let body_bytes = match &entry.value {
        Value::Str(bytes) => bytes.len(),
        _ if in_rows => 32,
        collection => collection.payload_bytes() + 8 * collection.elements(),
    };
    // For most rows the memory that they take as long as the store has them.
    let mut out = Vec::with_capacity(2 + expiry_bytes + body_bytes);
    let mut flags = entry.value.kind() as u8;
    flags |= if entry.expires > 0 { HAS_EXPIRY } else { 0 };
    flags |= if in_rows { IN_ROWS } else { 0 };
    let has_expiries = entry.value.has_expiries();
    let format = if has_expiries {
        FORMAT_OF_EXPIRIES
    } else {
        FORMAT
    };
    out.extend_from_slice(&[format, flags]);
    if entry.expires > 0 {
        out.extend_from_slice(&entry.expires.to_be_bytes());
    }
    if in_rows {
        out.extend_from_slice(&entry.generation.to_be_bytes());
        out.extend_from_slice(&entry.value.head());
        if has_expiries {
            let next = entry.value.next_due().unwrap_or(0);
            out.extend_from_slice(&next.to_be_bytes());
        }
        out.extend_from_slice(&(entry.value.elements() as u64).to_be_bytes());
        return out;
    }
    match &entry.value {
        Value::Str(bytes) => out.extend_from_slice(bytes),
        collection => {
            out.extend_from_slice(&collection.head());
            collection.each_element(&mut |name, value| {
                push(&mut out, name);
                push(&mut out, value);
            });
        }
    }
    out
}

fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// The entry of a key's row, [`Value::Cold`] when its elements have rows of their own; `None`
/// for bytes that this version did not write.
#[must_use]
pub fn decode_meta(value: &[u8]) -> Option<Entry> {
    let (kind, has_expiries) = form_of(value)?;
    let [_, flags, rest @ ..] = value else {
        return None;
    };
    let mut rest = rest;
    let mut entry = Entry::new(Value::Cold(kind));
    if flags & HAS_EXPIRY != 0 {
        entry.expires = number(&mut rest).filter(|at| *at > 0)?;
    }
    if flags & IN_ROWS != 0 {
        entry.generation = number(&mut rest).filter(|generation| *generation > 0)?;
        let next_bytes = if has_expiries { 8 } else { 0 };
        let is_whole = rest.len() == kind.head_bytes() + next_bytes + 8;
        return (is_whole && kind != Kind::Str).then_some(entry);
    }
    entry.value = match kind {
        Kind::Str => Value::Str(rest.to_vec()),
        _ => {
            let mut collection = empty(kind, has_expiries);
            let (head, elements) = rest.split_at_checked(kind.head_bytes())?;
            if !collection.take_head(head) {
                return None;
            }
            rest = elements;
            while !rest.is_empty() {
                let name = piece(&mut rest)?;
                let value = piece(&mut rest)?;
                if !collection.take_row(name, value) {
                    return None;
                }
            }
            collection
        }
    };
    (!entry.value.is_empty_collection()).then_some(entry)
}

/// The type of a key's row, and whether its fields may expire; `None` for bytes that this version did not
/// write.
fn form_of(value: &[u8]) -> Option<(Kind, bool)> {
    let [format, flags, ..] = value else {
        return None;
    };
    let kind = Kind::of(flags & KIND_MASK)?;
    let has_expiries = match *format {
        FORMAT => false,
        FORMAT_OF_EXPIRIES if kind == Kind::Hash => true,
        _ => return None,
    };
    let is_known = flags & !(KIND_MASK | HAS_EXPIRY | IN_ROWS) == 0;
    is_known.then_some((kind, has_expiries))
}

fn empty(kind: Kind, has_expiries: bool) -> Value {
    match kind {
        Kind::Hash if has_expiries => Value::Hash(Box::new(Hash::with_expiries())),
        _ => Value::empty(kind),
    }
}

/// An empty object that takes the elements of a key's row; `None` for bytes that this version did not write.
#[must_use]
pub fn empty_of(value: &[u8]) -> Option<Value> {
    form_of(value).map(|(kind, has_expiries)| empty(kind, has_expiries))
}

/// When the next field of a large hash expires, told from its row, in milliseconds since 1970.
#[must_use]
pub fn next_due_told(value: &[u8]) -> Option<u64> {
    let (_, has_expiries) = form_of(value)?;
    let in_rows = value.get(1)? & IN_ROWS != 0;
    let (before, _count) = value.split_last_chunk::<8>()?;
    let next = before
        .last_chunk::<8>()
        .filter(|_| has_expiries && in_rows)?;
    Some(u64::from_be_bytes(*next)).filter(|at| *at > 0)
}

/// When a key that is one row expires, told from its row, in milliseconds since 1970. `None` without an
/// expiry, where elements have rows of their own or fields may expire, and for bytes that this version did not
/// write.
/// Compactions drop what has expired by it ([`meta_prefix`] is the space), here and at workers: a
/// change of what it answers needs another name of the filter in the storage crate.
#[must_use]
pub fn expiry_of(value: &[u8]) -> Option<u64> {
    let [FORMAT, flags, rest @ ..] = value else {
        return None;
    };
    let is_known = flags & !(KIND_MASK | HAS_EXPIRY) == 0 && flags & HAS_EXPIRY != 0;
    let at = rest.first_chunk::<8>().filter(|_| is_known)?;
    Some(u64::from_be_bytes(*at)).filter(|at| *at > 0)
}

/// What the row of a large object of this type has before the number of elements.
#[must_use]
pub fn head_told(kind: Kind, value: &[u8]) -> Option<&[u8]> {
    let until = value.len().checked_sub(8)?;
    value.get(until.checked_sub(kind.head_bytes())?..until)
}

/// Number of elements that the row of a large object tells.
#[must_use]
pub fn elements_told(value: &[u8]) -> Option<u64> {
    let count = value.last_chunk::<8>()?;
    Some(u64::from_be_bytes(*count))
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(u64::from_be_bytes(*bytes))
}

fn piece<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (piece, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(piece)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_reading_rows_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = decode_meta(&bytes);
            let _ = decode_meta(&[&[FORMAT, 3][..], &bytes].concat());
            let _ = decode_meta(&[&[FORMAT_OF_EXPIRIES, 3][..], &bytes].concat());
            let _ = next_due_told(&[&[FORMAT_OF_EXPIRIES, 3 | IN_ROWS][..], &bytes].concat());
            let _ = expiry_of(&[&[FORMAT, HAS_EXPIRY][..], &bytes].concat());
            let _ = split_meta(&bytes);
            let _ = garbage_of(&bytes);
        }

        #[test]
        fn keys_of_one_key_are_no_keys_of_another(
            one in prop::collection::vec(any::<u8>(), 0..6),
            other in prop::collection::vec(any::<u8>(), 0..6),
        ) {
            let prefix = element_prefix(0, 0, &one, 7);
            let elsewhere = element_prefix(0, 0, &other, 7);
            prop_assert_eq!(elsewhere.starts_with(&prefix), one == other);
        }
    }

    #[test]
    fn the_expiry_of_a_key_of_one_row_is_told_from_its_row() {
        let mut entry = Entry::new(Value::Str(b"value".to_vec()));
        assert_eq!(expiry_of(&encode_meta(&entry)), None);
        entry.expires = 77;
        let row = encode_meta(&entry);
        assert_eq!(expiry_of(&row), Some(77));
        assert_eq!(expiry_of(&row[..9]), None);
        let in_rows = [&[FORMAT, row[1] | IN_ROWS], &row[2..]].concat();
        assert_eq!(expiry_of(&in_rows), None);
    }

    #[test]
    fn garbage_never_names_more_than_an_epoch() {
        assert_eq!(garbage_of(&garbage(b"R").key), None);
        assert_eq!(garbage_of(&garbage(&[SPACE, META, 1]).key), None);
        let [metas, _] = epoch_garbage(3, 9);
        assert_eq!(garbage_of(&metas.key), Some(&head(META, 3, 9, 0)[..]));
    }
}
