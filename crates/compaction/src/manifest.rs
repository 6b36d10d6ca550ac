//! Which files a database has, as its manifest says: the log of all that was ever added to it and
//! removed, which RocksDB syncs before it uses a file. Read by another reader than the database, as
//! far as it is written, and later on from there.
//!
//! The format is RocksDB's own: a log of records in blocks of 32 KiB, each with a sum; in a record
//! numbered fields, of which unknown ones below a limit cannot be passed over. What is not as
//! expected is an error, never a guess.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::objects::read_at;
use crate::table::{take, varint};

/// Length of a block of a log.
const BLOCK: usize = 32 << 10;
/// Sum, length and kind of a piece of a record.
const HEADER: usize = 7;
/// A record with more bytes is a misunderstanding.
const RECORD_MAX: usize = 256 << 20;

/// A file of a column family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its level.
    pub level: u32,
    /// Its smallest user key.
    pub smallest: Vec<u8>,
    /// Its largest one; a deleted range may end there.
    pub largest: Vec<u8>,
}

/// A column family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// Its files by their numbers.
    pub files: BTreeMap<u64, Listed>,
    /// Files that were ever added on level 0 without others being removed: by flushes, or from
    /// outside.
    pub arrived: u64,
}

impl Family {
    /// Files on level 0.
    pub fn level0(&self) -> usize {
        self.files.values().filter(|file| file.level == 0).count()
    }
}

/// A manifest, read so far.
#[derive(Debug)]
pub struct Manifest {
    directory: PathBuf,
    open: Option<Open>,
    families: BTreeMap<u32, Family>,
}

#[derive(Debug)]
struct Open {
    name: String,
    file: File,
    /// Read up to here: a border between records.
    at: u64,
}

impl Manifest {
    /// Of the database in `directory`; nothing is read yet.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            open: None,
            families: BTreeMap::new(),
        }
    }

    /// Reads what was written since the last time.
    ///
    /// # Errors
    /// It cannot be read, or not be understood; the next time it is read from its beginning.
    pub fn refresh(&mut self) -> Result<(), String> {
        let done = self.read_on();
        if done.is_err() {
            self.open = None;
        }
        done
    }

    fn read_on(&mut self) -> Result<(), String> {
        let current = self.directory.join("CURRENT");
        let named = |error: std::io::Error| format!("{}: {error}", current.display());
        let name = fs::read_to_string(&current)
            .map_err(named)?
            .trim()
            .to_owned();
        if self.open.as_ref().is_none_or(|open| open.name != name) {
            self.begin(name)?;
        }
        let Some(open) = &mut self.open else {
            return Ok(()); // `begin` opened one
        };
        let named = |error: std::io::Error| format!("{}: {error}", open.name);
        // A record may begin in the middle of a block: blocks are counted from the file's start.
        let skip = open.at % BLOCK as u64;
        let size = open.file.metadata().map_err(named)?.len();
        let from = open.at - skip;
        let bytes = read_at(&open.file, from, size.saturating_sub(from)).map_err(named)?;
        let mut log = Log::new(&bytes, usize::try_from(skip).unwrap_or(0));
        while let Some(record) = log
            .next_record()
            .map_err(|why| format!("{}: {why}", open.name))?
        {
            let applied = apply(&mut self.families, &record);
            applied.ok_or_else(|| format!("{} has a record that is not understood", open.name))?;
        }
        open.at = from + log.read as u64;
        Ok(())
    }

    fn begin(&mut self, name: String) -> Result<(), String> {
        let path = self.directory.join(&name);
        let named = |error: std::io::Error| format!("{}: {error}", path.display());
        let file = File::open(&path).map_err(named)?;
        self.families = BTreeMap::from([(
            0,
            Family {
                name: "default".to_owned(),
                ..Family::default()
            },
        )]);
        self.open = Some(Open { name, file, at: 0 });
        Ok(())
    }

    /// A column family by its name.
    pub fn family(&self, name: &str) -> Option<&Family> {
        self.families.values().find(|family| family.name == name)
    }

    /// All column families.
    pub fn families(&self) -> impl Iterator<Item = &Family> {
        self.families.values()
    }
}

/// Records of a log.
struct Log<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Behind the last whole record.
    read: usize,
}

/// A piece of a record.
enum Piece<'a> {
    Full(&'a [u8]),
    First(&'a [u8]),
    Middle(&'a [u8]),
    Last(&'a [u8]),
}

impl<'a> Log<'a> {
    /// `bytes` begin with a block.
    fn new(bytes: &'a [u8], at: usize) -> Self {
        Self {
            bytes,
            at,
            read: at,
        }
    }

    /// The next record; nothing when no more is written, or not all of it.
    fn next_record(&mut self) -> Result<Option<Vec<u8>>, String> {
        // A first piece may have no bytes: RocksDB leaves one where a block has room for its header
        // and for nothing else.
        let mut record: Option<Vec<u8>> = None;
        while let Some(piece) = self.next_piece()? {
            let (is_first, is_last, bytes) = match piece {
                Piece::Full(bytes) => (true, true, bytes),
                Piece::First(bytes) => (true, false, bytes),
                Piece::Middle(bytes) => (false, false, bytes),
                Piece::Last(bytes) => (false, true, bytes),
            };
            let is_begun = record.is_some();
            let whole = record.get_or_insert_default();
            if is_first == is_begun || whole.len() + bytes.len() > RECORD_MAX {
                return Err("a record in it is not in one piece".to_owned());
            }
            whole.extend_from_slice(bytes);
            if is_last {
                self.read = self.at;
                return Ok(record);
            }
        }
        Ok(None)
    }

    fn next_piece(&mut self) -> Result<Option<Piece<'a>>, String> {
        let left = BLOCK - self.at % BLOCK;
        if left < HEADER {
            self.at += left; // filled up with zeros
        }
        let Some(header) = self.bytes.get(self.at..self.at + HEADER) else {
            return Ok(None);
        };
        let sum = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let length = usize::from(u16::from_le_bytes([header[4], header[5]]));
        let start = self.at + HEADER;
        let Some(bytes) = self.bytes.get(start..start + length) else {
            return Ok(None);
        };
        // What is being written may be there in part.
        if masked(crc32c(&[&header[6..7], bytes])) != sum {
            return Ok(None);
        }
        self.at = start + length;
        match header[6] {
            1 => Ok(Some(Piece::Full(bytes))),
            2 => Ok(Some(Piece::First(bytes))),
            3 => Ok(Some(Piece::Middle(bytes))),
            4 => Ok(Some(Piece::Last(bytes))),
            kind => Err(format!("a record in it is of the unknown kind {kind}")),
        }
    }
}

/// RocksDB's disguise of a sum, so that sums of sums are not simple.
fn masked(sum: u32) -> u32 {
    sum.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Castagnoli's CRC-32 of a few pieces.
fn crc32c(pieces: &[&[u8]]) -> u32 {
    let bytes = pieces.iter().flat_map(|piece| piece.iter());
    !bytes.fold(!0, |sum: u32, byte| {
        let place = (sum ^ u32::from(*byte)) & 0xff;
        (sum >> 8) ^ TABLE[place as usize] // below 256
    })
}

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut place = 0_u32;
    while place < 256 {
        let mut sum = place;
        let mut bit = 0;
        while bit < 8 {
            let low = sum & 1;
            sum = (sum >> 1) ^ (0x82f6_3b78 * low);
            bit += 1;
        }
        table[place as usize] = sum;
        place += 1;
    }
    table
}

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

/// What a record changes in one column family.
#[derive(Default)]
struct Edit {
    family: u32,
    added: Option<String>,
    is_dropped: bool,
    deleted: Vec<u64>,
    new: Vec<(u64, Listed)>,
}

/// Changes the families as a record says.
fn apply(families: &mut BTreeMap<u32, Family>, record: &[u8]) -> Option<()> {
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
    use rocksdb::{ColumnFamilyDescriptor, DB, Options};

    fn options() -> Options {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_target_file_size_base(16 << 10);
        options.set_disable_auto_compactions(true); // none between two looks
        options
    }

    fn open(directory: &Path, families: &[&str]) -> DB {
        let families = families.iter();
        let families = families.map(|name| ColumnFamilyDescriptor::new(*name, options()));
        DB::open_cf_descriptors(&options(), directory, families).unwrap()
    }

    /// What RocksDB says itself.
    fn live(db: &DB, family: &str) -> BTreeMap<u64, Listed> {
        let files = db.live_files().unwrap().into_iter();
        let files = files.filter(|file| file.column_family_name == family);
        let listed = files.map(|file| {
            let number = file.name.trim_start_matches('/').trim_end_matches(".sst");
            let listed = Listed {
                level: file.level.try_into().unwrap(),
                smallest: file.start_key.unwrap(),
                largest: file.end_key.unwrap(),
            };
            (number.parse().unwrap(), listed)
        });
        listed.collect()
    }

    fn write(db: &DB, family: &str, round: u64) {
        let handle = db.cf_handle(family).unwrap();
        for number in 0..400_u64 {
            let key = (number * 7919 + round * 13).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            db.put_cf(handle, key.to_be_bytes(), [7; 100]).unwrap();
        }
        db.flush_cf(handle).unwrap();
    }

    #[test]
    fn files_are_those_that_rocksdb_lists_itself() {
        let directory = tempfile::tempdir().unwrap();
        let families = ["default", "other"];
        let mut db = open(directory.path(), &families);
        let mut manifest = Manifest::new(directory.path());
        let (mut manifests, mut seen) = (std::collections::BTreeSet::new(), 0);
        for round in 0..40 {
            write(&db, families[usize::from(round % 3 == 0)], round);
            if round % 8 == 7 {
                let handle = db.cf_handle("default").unwrap();
                db.compact_range_cf::<&[u8], &[u8]>(handle, None, None);
            }
            if round % 2 == 0 {
                continue; // two at a time
            }
            if round == 21 {
                drop(db);
                db = open(directory.path(), &families); // with another manifest
            }
            manifest.refresh().unwrap();
            manifests.insert(manifest.open.as_ref().unwrap().name.clone());
            for name in families {
                let family = manifest.family(name).unwrap();
                assert_eq!(family.files, live(&db, name), "{name} in round {round}");
                seen += family.files.len();
            }
        }
        assert!(seen > 200 && manifests.len() > 1, "{seen} {manifests:?}");
        assert!(manifest.family("other").unwrap().arrived > 0);
        assert!(manifest.family("third").is_none());
    }

    #[test]
    fn what_is_not_whole_yet_is_read_later() {
        let directory = tempfile::tempdir().unwrap();
        let db = open(directory.path(), &["default"]);
        (0..5).for_each(|round| write(&db, "default", round));
        let mut manifest = Manifest::new(directory.path());
        manifest.refresh().unwrap();
        let name = manifest.open.as_ref().unwrap().name.clone();
        let whole = fs::read(directory.path().join(&name)).unwrap();
        let copy = tempfile::tempdir().unwrap();
        fs::write(copy.path().join("CURRENT"), format!("{name}\n")).unwrap();
        let mut read = Manifest::new(copy.path());
        for length in 0..=whole.len() {
            fs::write(copy.path().join(&name), &whole[..length]).unwrap();
            read.refresh().unwrap();
        }
        assert_eq!(read.families, manifest.families);
    }

    /// RocksDB's other log is of the same make, and how long its records are can be chosen.
    #[test]
    fn a_record_may_begin_where_a_block_has_room_for_its_header_alone() {
        let directory = tempfile::tempdir().unwrap();
        let db = open(directory.path(), &["default"]);
        // What is around a value: a batch's own header, kind and lengths, and the key.
        let around = 12 + 1 + 1 + 1 + 3;
        for length in [BLOCK - 2 * HEADER - around, 5] {
            db.put([7], vec![7; length]).unwrap();
        }
        let files = fs::read_dir(directory.path()).unwrap().flatten();
        let is_log = |path: &PathBuf| path.extension().is_some_and(|end| end == "log");
        let path = files.map(|file| file.path()).find(is_log).unwrap();
        let bytes = fs::read(path).unwrap();
        let mut log = Log::new(&bytes, 0);
        let first = log.next_record().unwrap().unwrap();
        assert_eq!(
            (first.len(), log.read),
            (BLOCK - 2 * HEADER, BLOCK - HEADER)
        );
        let second = log.next_record().unwrap().unwrap();
        assert!(second.ends_with(&[7; 5]), "{second:?}");
        assert_eq!(log.next_record(), Ok(None));
    }

    #[test]
    fn another_log_is_no_manifest() {
        let directory = tempfile::tempdir().unwrap();
        let mut manifest = Manifest::new(directory.path());
        assert!(manifest.refresh().unwrap_err().contains("CURRENT"));
        fs::write(directory.path().join("CURRENT"), "MANIFEST-1\n").unwrap();
        assert!(manifest.refresh().unwrap_err().contains("MANIFEST-1"));
        let record = [77_u8, 1];
        let sum = masked(crc32c(&[&[1], &record])).to_le_bytes();
        let log = [&sum[..], &[2, 0, 1], &record].concat();
        fs::write(directory.path().join("MANIFEST-1"), log).unwrap();
        let error = manifest.refresh().unwrap_err();
        assert!(error.contains("not understood"), "{error}");
    }

    proptest! {
        #[test]
        fn no_record_brings_it_down(record in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut families = BTreeMap::new();
            let _ = apply(&mut families, &record);
            let _ = Log::new(&record, 0).next_record();
        }
    }
}
