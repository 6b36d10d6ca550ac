//! The properties of a sorted file of RocksDB, and where the part begins that RocksDB reads on
//! opening.
//!
//! A file ends with blocks that describe it (filter, index, properties, their own index) and a
//! footer. RocksDB reads only these when it opens a file, so a worker needs only the end of a file
//! that it opens and does not compact. The properties contain the offset of that end. The format is
//! RocksDB's own; unexpected content is an error or an absent value, never a guess.

use std::fs::File;
use std::io;

use crate::file_io::read_at;

/// Length of the footer.
const FOOTER: u64 = 53;
/// The last eight bytes of a file of the block-based format.
const MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
/// Versions in which the footer holds handles, and in which it holds a size instead.
const HANDLES: std::ops::RangeInclusive<u32> = 2..=5;
const SIZES: std::ops::RangeInclusive<u32> = 6..=7;
/// Bytes behind each block: its compression and its sum.
const TRAILER: u64 = 5;
/// Blocks that describe a file are small; a larger one is a misunderstanding.
const BLOCK_MAX: u64 = 64 << 20;

/// A file's description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Anatomy {
    /// Everything from here on is read when the file is opened. 0 when it does not say.
    pub tail: u64,
    /// Its column family, when it says.
    pub family: Option<String>,
    /// Counts of its entries, if its properties have them.
    pub content: Option<Content>,
}

/// Counts of the entries in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// Entries, deleted ranges included.
    pub entries: u64,
    /// Deleted ranges.
    pub ranges: u64,
}

/// Reads a file's end; nothing when it is not whole yet, or no file of the block-based format.
///
/// # Errors
/// It cannot be read.
pub fn anatomy(file: &File, size: u64) -> io::Result<Option<Anatomy>> {
    let Some(footer_at) = size.checked_sub(FOOTER) else {
        return Ok(None);
    };
    let footer = read_at(file, footer_at, FOOTER)?;
    if number(&footer, 45, 8) != Some(MAGIC) {
        return Ok(None);
    }
    let properties = properties(file, &footer, footer_at)?;
    Ok(Some(properties.map_or_else(Anatomy::default, |block| {
        described(&block, footer_at)
    })))
}

/// The block of properties.
fn properties(file: &File, footer: &[u8], footer_at: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(meta) = meta_index(footer, footer_at) else {
        return Ok(None);
    };
    let Some(index) = block(file, meta, footer_at)? else {
        return Ok(None);
    };
    let handle = find(&index, b"rocksdb.properties").and_then(|value| handle(&mut &value[..]));
    match handle {
        Some(handle) => block(file, handle, footer_at),
        None => Ok(None),
    }
}

fn described(properties: &[u8], footer_at: u64) -> Anatomy {
    let count = |name: &[u8]| varint(&mut &find(properties, name)?[..]);
    let tail = count(b"rocksdb.tail.start.offset");
    let family = find(properties, b"rocksdb.column.family.name");
    let entries = count(b"rocksdb.num.entries");
    let content = entries.map(|entries| Content {
        entries,
        // Left out when there are none.
        ranges: count(b"rocksdb.num.range-deletions").unwrap_or(0),
    });
    Anatomy {
        tail: tail.filter(|tail| *tail <= footer_at).unwrap_or(0),
        family: family.and_then(|name| String::from_utf8(name).ok()),
        content,
    }
}

/// Where a block is: offset and length.
type Handle = (u64, u64);

/// The block that lists the blocks which describe the file.
fn meta_index(footer: &[u8], footer_at: u64) -> Option<Handle> {
    let version = u32::try_from(number(footer, 41, 4)?).ok()?;
    if HANDLES.contains(&version) {
        return handle(&mut footer.get(1..)?);
    }
    if !SIZES.contains(&version) {
        return None;
    }
    // Behind the kind of sum, another magic number and two sums.
    let size = number(footer, 13, 4)?;
    Some((footer_at.checked_sub(TRAILER + size)?, size))
}

/// A block's bytes; nothing when it is compressed, or not inside of the file.
fn block(file: &File, (offset, length): Handle, end: u64) -> io::Result<Option<Vec<u8>>> {
    let is_inside = offset
        .checked_add(length)
        .and_then(|sum| sum.checked_add(TRAILER))
        .is_some_and(|sum| sum <= end);
    if !is_inside || length > BLOCK_MAX {
        return Ok(None);
    }
    let mut bytes = read_at(file, offset, length + 1)?;
    let is_plain = bytes.pop() == Some(0);
    Ok(is_plain.then_some(bytes))
}

/// The value of a key in a block: entries share prefixes with those before them, and behind them
/// stands where they begin anew.
fn find(block: &[u8], wanted: &[u8]) -> Option<Vec<u8>> {
    let count = number(block, block.len().checked_sub(4)?, 4)?;
    let restarts = usize::try_from(count).ok()?.checked_mul(4)?;
    let length = block.len().checked_sub(4)?.checked_sub(restarts)?;
    let mut rest = block.get(..length)?;
    let mut key = Vec::new();
    while !rest.is_empty() {
        let shared = usize::try_from(varint(&mut rest)?).ok()?;
        let own = usize::try_from(varint(&mut rest)?).ok()?;
        let value = usize::try_from(varint(&mut rest)?).ok()?;
        if shared > key.len() {
            return None;
        }
        key.truncate(shared);
        key.extend_from_slice(take(&mut rest, own)?);
        let value = take(&mut rest, value)?;
        if key == wanted {
            return Some(value.to_vec());
        }
    }
    None
}

pub(crate) fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn handle(rest: &mut &[u8]) -> Option<Handle> {
    Some((varint(rest)?, varint(rest)?))
}

/// Seven bits a byte, lowest first; the highest bit says that more follow.
pub(crate) fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *take(rest, 1)?.first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// A number of fixed length, lowest byte first.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| (sum << 8) | u64::from(*byte)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rocksdb::{BlockBasedOptions, DB, Options};
    use std::path::Path;

    fn first_table(directory: &Path) -> File {
        let is_table = |path: &std::path::PathBuf| path.extension().is_some_and(|it| it == "sst");
        let files = std::fs::read_dir(directory).unwrap();
        let path = files.map(|one| one.unwrap().path()).find(is_table).unwrap();
        File::open(path).unwrap()
    }

    fn made(version: i32) -> (tempfile::TempDir, File) {
        let directory = tempfile::tempdir().unwrap();
        let mut table = BlockBasedOptions::default();
        table.set_format_version(version);
        table.set_bloom_filter(10.0, false);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&table);
        let db = DB::open(&options, directory.path()).unwrap();
        for number in 0..20_000_u32 {
            db.put(number.to_be_bytes(), [7; 40]).unwrap();
        }
        let mut ranges = rocksdb::WriteBatch::default();
        ranges.delete_range([8, 0], [9, 9]);
        db.write(ranges).unwrap();
        db.flush().unwrap();
        let file = first_table(directory.path());
        (directory, file)
    }

    #[test]
    fn the_end_of_a_file_of_each_format_is_found() {
        for version in [2, 5, 6, 7] {
            let (_directory, file) = made(version);
            let size = file.metadata().unwrap().len();
            let found = anatomy(&file, size).unwrap().unwrap();
            assert_eq!(found.family.as_deref(), Some("default"), "{version}");
            assert!(found.tail > size / 2, "{version}: {found:?} of {size}");
            assert!(found.tail < size - FOOTER, "{version}: {found:?} of {size}");
            let content = found.content.unwrap();
            assert_eq!((content.entries, content.ranges), (20_001, 1), "{version}");
        }
    }

    #[test]
    fn a_file_that_is_still_written_says_nothing() {
        let (_directory, file) = made(6);
        let size = file.metadata().unwrap().len();
        assert_eq!(anatomy(&file, size - 1).unwrap(), None);
        assert_eq!(anatomy(&file, 20).unwrap(), None);
    }

    proptest! {
        #[test]
        fn noise_is_no_block_and_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = find(&bytes, b"rocksdb.properties");
            let _ = meta_index(&bytes, bytes.len() as u64);
        }
    }
}
