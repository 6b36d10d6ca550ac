//! The content of a manifest record: numbered fields, and the changes that they describe.

use std::collections::BTreeMap;

use super::{Family, Listed};
use crate::rocksdb_files::table::{take, varint};

/// Fields of a record that have a number, or a few, and are of no interest.
const LOG_NUMBER: u64 = 2;
const NEXT_FILE: u64 = 3;
const LAST_SEQUENCE: u64 = 4;
const PREVIOUS_LOG: u64 = 9;
const MIN_LOG: u64 = 10;
const MAX_FAMILY: u64 = 203;
const ATOMIC_GROUP: u64 = 300;
/// Fields with bytes.
const COMPARATOR: u64 = 1;
const CURSOR: u64 = 5;
/// Files.
const DELETED_FILE: u64 = 6;
const NEW_FILE_2: u64 = 100;
const NEW_FILE_3: u64 = 102;
const NEW_FILE_4: u64 = 103;
/// Column families.
const FAMILY: u64 = 200;
const FAMILY_ADD: u64 = 201;
const FAMILY_DROP: u64 = 202;
/// Fields with this bit have bytes and may be passed over.
const IGNORABLE: u64 = 1 << 13;
/// Last of the fields that describe a new file.
const END: u64 = 1;
/// Of these fields, those with this bit must be understood, but for the path.
const NEW_FILE_NEEDED: u64 = 1 << 6;
const PATH: u64 = NEW_FILE_NEEDED + 1;
/// Bytes behind the user key of a key.
const TRAILER: usize = 8;

/// Changes of a record to one column family.
#[derive(Default)]
struct Edit {
    family: u32,
    added: Option<String>,
    is_dropped: bool,
    deleted: Vec<u64>,
    new: Vec<(u64, Listed)>,
}

/// Changes the families as a record says.
pub(super) fn apply(families: &mut BTreeMap<u32, Family>, record: &[u8]) -> Option<()> {
    let edit = read_edit(record)?;
    if edit.is_dropped {
        families.remove(&edit.family);
        return Some(());
    }
    if let Some(name) = edit.added {
        let files = BTreeMap::new();
        families.insert(
            edit.family,
            Family {
                name,
                files,
                arrived: 0,
            },
        );
    }
    let family = families.get_mut(&edit.family)?;
    if edit.deleted.is_empty() {
        let arrived = edit.new.iter().filter(|(_, file)| file.level == 0).count();
        family.arrived += arrived as u64;
    }
    for number in edit.deleted {
        family.files.remove(&number);
    }
    family.files.extend(edit.new);
    Some(())
}

fn read_edit(mut rest: &[u8]) -> Option<Edit> {
    let mut edit = Edit::default();
    let rest = &mut rest;
    while !rest.is_empty() {
        match varint(rest)? {
            LOG_NUMBER | NEXT_FILE | LAST_SEQUENCE | PREVIOUS_LOG | MIN_LOG | MAX_FAMILY
            | ATOMIC_GROUP => {
                varint(rest)?;
            }
            COMPARATOR => {
                sized(rest)?;
            }
            CURSOR => {
                varint(rest)?;
                sized(rest)?;
            }
            DELETED_FILE => {
                varint(rest)?;
                edit.deleted.push(varint(rest)?);
            }
            kind @ (NEW_FILE_2 | NEW_FILE_3 | NEW_FILE_4) => edit.new.push(new_file(kind, rest)?),
            FAMILY => edit.family = u32::try_from(varint(rest)?).ok()?,
            FAMILY_ADD => edit.added = Some(String::from_utf8(sized(rest)?.to_vec()).ok()?),
            FAMILY_DROP => edit.is_dropped = true,
            other if other & IGNORABLE != 0 => {
                sized(rest)?;
            }
            _ => return None,
        }
    }
    Some(edit)
}

fn new_file(kind: u64, rest: &mut &[u8]) -> Option<(u64, Listed)> {
    let level = u32::try_from(varint(rest)?).ok()?;
    let number = varint(rest)?;
    if kind == NEW_FILE_3 {
        varint(rest)?; // its path
    }
    varint(rest)?; // its size
    let (smallest, largest) = (user_key(rest)?, user_key(rest)?);
    varint(rest)?;
    varint(rest)?; // sequence numbers
    if kind == NEW_FILE_4 {
        pass_over_rest_of_file(rest)?;
    }
    let listed = Listed {
        level,
        smallest,
        largest,
    };
    Some((number, listed))
}

fn pass_over_rest_of_file(rest: &mut &[u8]) -> Option<()> {
    loop {
        match varint(rest)? {
            END => return Some(()),
            other if other & NEW_FILE_NEEDED != 0 && other != PATH => return None,
            _ => {
                sized(rest)?;
            }
        }
    }
}

fn user_key(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let key = sized(rest)?;
    Some(key.get(..key.len().checked_sub(TRAILER)?)?.to_vec())
}

/// Bytes behind their length.
fn sized<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(varint(rest)?).ok()?;
    take(rest, length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_record_brings_it_down(record in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut families = BTreeMap::new();
            let _ = apply(&mut families, &record);
        }
    }
}
