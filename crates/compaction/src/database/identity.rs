//! A database's identity, for volumes that do not contain its directory.
//!
//! On a shared directory the path identifies a database. In an object store, data directories of
//! two machines may have the same path, so a database draws a number and keeps it beside its files.
//! A copy of the directory (a cloned machine, files copied by hand) would keep the number too, and
//! each of the two databases would take the other's objects for those of an earlier session of its
//! own. So the identity file records its own inode and machine: a file that does not match was
//! copied, and the copy draws a new number.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use manxdb_core::Digest;
use manxdb_jobs::job::DatabaseId;
use serde::{Deserialize, Serialize};

use crate::seal::{pack, unpack};

/// The file, in a data directory.
const FILE: &str = "compaction-identity";
/// Before it is whole.
const PART: &str = "compaction-identity.part";

/// The only format there is: sealed, in postcard.
const CURRENT: u32 = 1;

/// Content of the identity file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    format: u32,
    number: u64,
    machine: u64,
    inode: u64,
}

/// The machine that this runs on, as a number that tells nothing about it; 0 where the system does
/// not say.
#[must_use]
pub fn machine() -> u64 {
    fs::read("/etc/machine-id").map_or(0, |id| Digest::default().bytes(&id).value())
}

/// The identity of the database in `directory`; `drawn` becomes it when there is none yet.
///
/// # Errors
/// The file can be neither read nor made.
pub fn identity(directory: &Path, machine: u64, drawn: u64) -> io::Result<DatabaseId> {
    let path = directory.join(FILE);
    let number = match read(&path)? {
        Found::Own(found) if found.machine == machine => found.number,
        Found::Own(found) | Found::Copied(found) => {
            let (former, now) = (format!("{:x}", found.number), format!("{drawn:x}"));
            tracing::info!(
                former,
                now,
                "this data directory is a copy: it gets a name of its own"
            );
            write(directory, machine, drawn)?
        }
        Found::Damaged => {
            let path = path.display();
            tracing::warn!(%path, "cannot be read: the database gets another name");
            write(directory, machine, drawn)?
        }
        Found::Nothing => write(directory, machine, drawn)?,
    };
    Ok(DatabaseId(number))
}

/// State of the identity file.
enum Found {
    Nothing,
    Damaged,
    /// It speaks of another file.
    Copied(Identity),
    Own(Identity),
}

fn read(path: &Path) -> io::Result<Found> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        bytes => bytes?,
    };
    let whole: Option<Identity> = unpack(&bytes);
    let inode = fs::metadata(path)?.ino();
    Ok(match whole {
        Some(found) if found.format != CURRENT => Found::Damaged,
        Some(found) if found.inode == inode => Found::Own(found),
        Some(found) => Found::Copied(found),
        None => Found::Damaged,
    })
}

/// Writes a new file, whole or not at all.
fn write(directory: &Path, machine: u64, number: u64) -> io::Result<u64> {
    let part = directory.join(PART);
    // An earlier one's number of the file would be that of the whole file which it became.
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::create(&part)?;
    let identity = Identity {
        format: CURRENT,
        number,
        machine,
        inode: file.metadata()?.ino(),
    };
    file.write_all(&pack(&identity).map_err(io::Error::other)?)?;
    file.sync_all()?;
    fs::rename(&part, directory.join(FILE))?;
    File::open(directory)?.sync_all()?;
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: u64 = 7;

    fn directory() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_database_keeps_its_name_wherever_it_is_moved_to() {
        let parent = directory();
        let (first, second) = (parent.path().join("a"), parent.path().join("b"));
        fs::create_dir(&first).unwrap();
        assert_eq!(identity(&first, HERE, 1).unwrap(), DatabaseId(1));
        assert_eq!(identity(&first, HERE, 2).unwrap(), DatabaseId(1));
        fs::rename(&first, &second).unwrap();
        assert_eq!(identity(&second, HERE, 3).unwrap(), DatabaseId(1));
    }

    #[test]
    fn a_copy_is_another_database() {
        let (original, copy) = (directory(), directory());
        assert_eq!(identity(original.path(), HERE, 1).unwrap(), DatabaseId(1));
        fs::copy(original.path().join(FILE), copy.path().join(FILE)).unwrap();
        assert_eq!(identity(copy.path(), HERE, 2).unwrap(), DatabaseId(2));
        assert_eq!(identity(copy.path(), HERE, 3).unwrap(), DatabaseId(2));
        assert_eq!(identity(original.path(), HERE, 4).unwrap(), DatabaseId(1));
    }

    #[test]
    fn the_clone_of_a_machine_has_databases_of_its_own() {
        let clone = directory();
        assert_eq!(identity(clone.path(), HERE, 1).unwrap(), DatabaseId(1));
        assert_eq!(identity(clone.path(), HERE + 1, 2).unwrap(), DatabaseId(2));
        assert_eq!(identity(clone.path(), HERE + 1, 3).unwrap(), DatabaseId(2));
    }

    #[test]
    fn a_damaged_file_is_replaced_and_a_part_of_one_is_no_obstacle() {
        let place = directory();
        fs::write(place.path().join(PART), "half").unwrap();
        assert_eq!(identity(place.path(), HERE, 1).unwrap(), DatabaseId(1));
        let path = place.path().join(FILE);
        let whole = fs::read(&path).unwrap();
        for byte in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[byte] ^= 1;
            fs::write(&path, &damaged).unwrap();
            let drawn = 100 + byte as u64;
            assert_eq!(
                identity(place.path(), HERE, drawn).unwrap(),
                DatabaseId(drawn)
            );
        }
        assert!(!place.path().join(PART).exists());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_said() {
        let place = directory();
        assert!(identity(&place.path().join("missing"), HERE, 1).is_err());
    }
}
