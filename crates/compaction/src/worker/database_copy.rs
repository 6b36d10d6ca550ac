//! A worker's side of an object store: a directory that RocksDB takes for the database.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::answer::is_plain;
use crate::object_store::objects::{Object, ObjectError, Transfer, local};
use crate::object_store::parallel;
use crate::object_store::view::{Copies, FilePart, Named, View};

/// Ends that lie nearer to each other in an object than this are fetched in one piece,
const GAP: u64 = 64 << 10;
/// of at most this many bytes.
const RUN: u64 = 8 << 20;

/// Makes a copy of the job's database in `directory`, which is empty.
///
/// # Errors
/// [`ObjectError`]; files that were made are left.
pub(super) fn build(
    transfer: &Transfer,
    ends: &Ends,
    copies: &Copies,
    directory: &Path,
) -> Result<(), ObjectError> {
    let view = transfer.fetch(&copies.view)?;
    let view: View = postcard::from_bytes(&view).map_err(|error| ObjectError::Differs {
        key: copies.view.key.clone(),
        what: format!("it is no view of a database: {error}"),
    })?;
    let current = directory.join("CURRENT");
    fs::write(&current, format!("{}\n", view.manifest.name)).map_err(local(&current))?;
    let (whole, mut partly): (Vec<&FilePart>, Vec<&FilePart>) =
        view.files.iter().partition(|part| part.from == 0);
    partly.sort_by(|one, other| (&one.key, one.skip).cmp(&(&other.key, other.skip)));
    let named = [&view.manifest, &view.options].map(Fetch::Named);
    let whole = whole.into_iter().map(Fetch::Whole);
    let runs = runs(&partly, |part| ends.has(transfer, part));
    let fetches = named.into_iter().chain(whole);
    let fetches: Vec<Fetch<'_>> = fetches.chain(runs.into_iter().map(Fetch::Ends)).collect();
    parallel::each(&fetches, |fetch| fetch.run(transfer, ends, directory))?;
    for part in partly {
        let bytes = match ends.get(transfer, part) {
            Some(bytes) => bytes,
            None => fetch_one(transfer, part)?, // pushed out by those that came after it
        };
        let path = directory.join(plain(&part.name)?);
        let file = File::create(&path).map_err(local(&path))?;
        file.set_len(part.size).map_err(local(&path))?;
        file.write_all_at(&bytes, part.from).map_err(local(&path))?;
    }
    Ok(())
}

/// A download, in no order.
enum Fetch<'a> {
    /// Something small by its name.
    Named(&'a Named),
    /// An input.
    Whole(&'a FilePart),
    /// Ends that lie side by side.
    Ends(Vec<&'a FilePart>),
}

impl Fetch<'_> {
    fn run(&self, transfer: &Transfer, ends: &Ends, directory: &Path) -> Result<(), ObjectError> {
        match self {
            Self::Named(Named { name, object }) => {
                transfer.fetch_file(object, &directory.join(plain(name)?))
            }
            Self::Whole(part) => {
                let object = Object {
                    key: part.key.clone(),
                    bytes: part.size,
                    sum: part.sum,
                };
                let path = directory.join(plain(&part.name)?);
                transfer.fetch_part(&object, part.skip, &path).map(|_| ())
            }
            Self::Ends(run) => ends.fetch(transfer, run),
        }
    }
}

fn plain(name: &str) -> Result<&str, ObjectError> {
    if is_plain(name) {
        Ok(name)
    } else {
        Err(ObjectError::Name(name.to_owned()))
    }
}

/// Neighbours that are fetched together: parts that are not here yet, sorted by where they are.
fn runs<'a>(
    parts: &'a [&'a FilePart],
    is_here: impl Fn(&FilePart) -> bool,
) -> Vec<Vec<&'a FilePart>> {
    let mut runs: Vec<Vec<&FilePart>> = Vec::new();
    for part in parts.iter().copied().filter(|part| !is_here(part)) {
        let end = part.skip.saturating_add(part.bytes());
        let near = |run: &Vec<&FilePart>| {
            let (Some(first), Some(last)) = (run.first(), run.last()) else {
                return false;
            };
            let gap = part
                .skip
                .checked_sub(last.skip.saturating_add(last.bytes()));
            first.key == part.key && gap.is_some_and(|gap| gap <= GAP) && end - first.skip <= RUN
        };
        match runs.last_mut().filter(|run| near(run)) {
            Some(run) => run.push(part),
            None => runs.push(vec![part]),
        }
    }
    runs
}

/// A part, among those of all databases of a volume.
type Which = (String, String, u32);

/// Ends of files that were fetched lately: every job of a database needs the same ones.
pub(super) struct Ends {
    kept: Mutex<Kept>,
    bytes_max: u64,
}

#[derive(Default)]
struct Kept {
    ends: BTreeMap<Which, Arc<[u8]>>,
    /// Oldest first.
    order: VecDeque<Which>,
    bytes: u64,
}

impl Ends {
    /// A cache of at most `bytes_max` bytes.
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            kept: Mutex::default(),
            bytes_max,
        }
    }

    fn which(transfer: &Transfer, part: &FilePart) -> Which {
        (transfer.place(), part.name.clone(), part.sum)
    }

    fn get(&self, transfer: &Transfer, part: &FilePart) -> Option<Arc<[u8]>> {
        let kept = self.kept.lock();
        let end = kept.ends.get(&Self::which(transfer, part)).cloned();
        end.filter(|end| end.len() as u64 == part.bytes())
    }

    fn has(&self, transfer: &Transfer, part: &FilePart) -> bool {
        self.get(transfer, part).is_some()
    }

    /// Fetches parts that lie side by side.
    fn fetch(&self, transfer: &Transfer, run: &[&FilePart]) -> Result<(), ObjectError> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return Ok(());
        };
        if run.len() == 1 {
            let bytes = fetch_one(transfer, first)?;
            self.keep(Self::which(transfer, first), bytes);
            return Ok(());
        }
        let length = last.skip.saturating_add(last.bytes()) - first.skip; // sorted
        let bytes = transfer.fetch_range(&first.key, first.skip, length)?;
        for part in run {
            let at = usize::try_from(part.skip - first.skip).unwrap_or(usize::MAX);
            let length = usize::try_from(part.bytes()).unwrap_or(usize::MAX);
            let end = at.checked_add(length).and_then(|end| bytes.get(at..end));
            let end = end.unwrap_or_default();
            check(part, end)?;
            self.keep(Self::which(transfer, part), end.into());
        }
        Ok(())
    }

    fn keep(&self, which: Which, end: Arc<[u8]>) {
        let mut kept = self.kept.lock();
        kept.bytes += end.len() as u64;
        match kept.ends.insert(which.clone(), end) {
            Some(before) => kept.bytes -= before.len() as u64,
            None => kept.order.push_back(which),
        }
        while kept.bytes > self.bytes_max {
            let Some(oldest) = kept.order.pop_front() else {
                return;
            };
            if let Some(end) = kept.ends.remove(&oldest) {
                kept.bytes -= end.len() as u64;
            }
        }
    }
}

fn fetch_one(transfer: &Transfer, part: &FilePart) -> Result<Arc<[u8]>, ObjectError> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < part.bytes() {
        let done = bytes.len() as u64;
        let length = RUN.min(part.bytes() - done);
        bytes.extend(transfer.fetch_range(&part.key, part.skip.saturating_add(done), length)?);
    }
    check(part, &bytes)?;
    Ok(bytes.into())
}

fn check(part: &FilePart, bytes: &[u8]) -> Result<(), ObjectError> {
    let found = crc32fast::hash(bytes);
    if found == part.sum && bytes.len() as u64 == part.bytes() {
        return Ok(());
    }
    let name = &part.name;
    Err(ObjectError::Differs {
        key: part.key.clone(),
        what: format!(
            "its part of {name} has sum {found:08x}, not {:08x}",
            part.sum
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(key: &str, skip: u64, bytes: u64) -> FilePart {
        FilePart {
            name: format!("{skip}.sst"),
            size: 10 + bytes,
            from: 10,
            sum: 0,
            key: key.to_owned(),
            skip,
        }
    }

    fn lengths(parts: &[FilePart]) -> Vec<usize> {
        let parts: Vec<&FilePart> = parts.iter().collect();
        runs(&parts, |_| false).iter().map(Vec::len).collect()
    }

    #[test]
    fn neighbours_come_together() {
        assert_eq!(lengths(&[part("a", 0, 5), part("a", 5, 7)]), [2]);
        assert_eq!(lengths(&[part("a", 0, 5), part("b", 5, 7)]), [1, 1]);
        let far = part("a", GAP + 6, 7);
        assert_eq!(lengths(&[part("a", 0, 5), far]), [1, 1]);
        let large = part("a", 5, RUN);
        assert_eq!(
            lengths(&[part("a", 0, 5), large, part("a", RUN + 5, 1)]),
            [1, 1, 1]
        );
    }

    #[test]
    fn what_is_kept_stays_within_its_limit() {
        let ends = Ends::new(10);
        let which = |number: u32| (String::new(), String::new(), number);
        for number in 0..9 {
            ends.keep(which(number), Arc::from(&[0_u8; 4][..]));
            ends.keep(which(number), Arc::from(&[1_u8; 4][..]));
        }
        let kept = ends.kept.lock();
        assert_eq!((kept.bytes, kept.ends.len(), kept.order.len()), (8, 2, 2));
        assert!(kept.ends.contains_key(&which(8)) && kept.ends.contains_key(&which(7)));
    }
}
