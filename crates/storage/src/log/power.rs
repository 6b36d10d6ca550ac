//! Disks that fail and lose power, for the tests of the log.
//!
//! What the log does to the files of a watched folder ([`super::disk`]) is noted. From the notes
//! follows what may be on disk when the power goes at any moment: what was waited for, and of
//! the rest any part, in any order — a write sector by sector, each name for itself.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

const SECTOR_BYTES: usize = 512;

/// Something done to a file.
#[derive(Debug, Clone)]
pub enum Change {
    CreateFolder {
        path: PathBuf,
    },
    Create {
        path: PathBuf,
    },
    Write {
        path: PathBuf,
        offset: u64,
        bytes: Vec<u8>,
    },
    Sync {
        path: PathBuf,
    },
    /// A wait that failed: what was written before is in memory, and will never be on disk.
    FailedSync {
        path: PathBuf,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Remove {
        path: PathBuf,
    },
    SyncFolder {
        path: PathBuf,
    },
}

impl Change {
    fn path(&self) -> &Path {
        match self {
            Self::CreateFolder { path }
            | Self::Create { path }
            | Self::Write { path, .. }
            | Self::Sync { path }
            | Self::FailedSync { path }
            | Self::Rename { from: path, .. }
            | Self::Remove { path }
            | Self::SyncFolder { path } => path,
        }
    }
}

#[derive(Debug, Default)]
struct Notes {
    changes: Vec<Change>,
    /// Changes until one fails.
    failing_after: Option<usize>,
}

type Watched = Vec<(PathBuf, Arc<Mutex<Notes>>)>;
static WATCHED: Mutex<Watched> = Mutex::new(Vec::new());

/// Called before each change.
pub fn before(change: Change) -> io::Result<()> {
    let watched = WATCHED.lock();
    let Some((_, notes)) = watched
        .iter()
        .find(|(root, _)| change.path().starts_with(root))
    else {
        return Ok(());
    };
    let mut notes = notes.lock();
    match notes.failing_after.as_mut() {
        Some(0) => {
            notes.failing_after = None;
            if let Change::Sync { path } = change {
                notes.changes.push(Change::FailedSync { path });
            }
            return Err(io::Error::other("made to fail"));
        }
        Some(left) => *left -= 1,
        None => {}
    }
    notes.changes.push(change);
    Ok(())
}

/// A folder whose changes are noted while this lives.
pub struct Watch {
    root: tempfile::TempDir,
    notes: Arc<Mutex<Notes>>,
}

impl Watch {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let notes = Arc::<Mutex<Notes>>::default();
        WATCHED
            .lock()
            .push((root.path().to_owned(), Arc::clone(&notes)));
        Self { root, notes }
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Changes so far.
    pub fn count(&self) -> usize {
        self.notes.lock().changes.len()
    }

    /// Lets one change fail, after `successes` more.
    pub fn fail_after(&self, successes: usize) {
        self.notes.lock().failing_after = Some(successes);
    }

    /// Whether the change that was to fail did.
    pub fn has_failed(&self) -> bool {
        self.notes.lock().failing_after.is_none()
    }

    /// What the disk may hold when the power goes after `count` changes, in a folder of its own.
    pub fn power_lost(&self, count: usize, random: &mut Random) -> tempfile::TempDir {
        let mut disk = Disk::default();
        for change in &self.notes.lock().changes[..count] {
            disk.change(change);
        }
        let left = tempfile::tempdir().unwrap();
        for (path, node) in disk.left(random) {
            let path = left.path().join(path.strip_prefix(self.root()).unwrap());
            match node {
                None => fs::create_dir_all(path).unwrap(),
                // Without its folder a file is lost too.
                Some(bytes) if path.parent().unwrap().exists() => fs::write(path, bytes).unwrap(),
                Some(_) => {}
            }
        }
        left
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut watched = WATCHED.lock();
        watched.retain(|(root, _)| root != self.root.path());
    }
}

/// Numbers that look random, the same for the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// A file or a folder, whatever its names.
#[derive(Debug, Default)]
struct Node {
    is_folder: bool,
    on_disk: Vec<u8>,
    /// Written and not waited for.
    pending: Vec<(usize, Vec<u8>)>,
}

#[derive(Debug, Clone)]
enum Naming {
    Add(PathBuf, usize),
    Move(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl Naming {
    fn folder(&self) -> &Path {
        let (Self::Add(path, _) | Self::Move(path, _) | Self::Remove(path)) = self;
        path.parent().unwrap()
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Self::Add(path, node) => {
                names.insert(path.clone(), *node);
            }
            Self::Move(from, to) => {
                if let Some(node) = names.remove(from) {
                    names.insert(to.clone(), node);
                }
            }
            Self::Remove(path) => {
                names.remove(path);
            }
        }
    }
}

#[derive(Debug, Default)]
struct Disk {
    nodes: Vec<Node>,
    names: BTreeMap<PathBuf, usize>,
    safe_names: BTreeMap<PathBuf, usize>,
    pending: Vec<Naming>,
}

impl Disk {
    fn change(&mut self, change: &Change) {
        match change {
            Change::CreateFolder { path } => self.add(path, true),
            Change::Create { path } => self.add(path, false),
            Change::Write {
                path,
                offset,
                bytes,
            } => {
                let offset = usize::try_from(*offset).unwrap();
                self.node(path).pending.push((offset, bytes.clone()));
            }
            Change::Sync { path } => {
                let node = self.node(path);
                for (offset, bytes) in std::mem::take(&mut node.pending) {
                    overwrite(&mut node.on_disk, offset, &bytes);
                }
            }
            Change::FailedSync { path } => self.node(path).pending.clear(),
            Change::Rename { from, to } => self.name(Naming::Move(from.clone(), to.clone())),
            Change::Remove { path } => self.name(Naming::Remove(path.clone())),
            Change::SyncFolder { path } => {
                let pending = std::mem::take(&mut self.pending).into_iter();
                let (done, left) = pending.partition(|naming| naming.folder() == path);
                self.pending = left;
                let done: Vec<Naming> = done;
                for naming in done {
                    naming.apply(&mut self.safe_names);
                }
            }
        }
    }

    fn node(&mut self, path: &Path) -> &mut Node {
        &mut self.nodes[self.names[path]]
    }

    fn add(&mut self, path: &Path, is_folder: bool) {
        self.nodes.push(Node {
            is_folder,
            ..Node::default()
        });
        self.name(Naming::Add(path.to_owned(), self.nodes.len() - 1));
    }

    fn name(&mut self, naming: Naming) {
        naming.apply(&mut self.names);
        self.pending.push(naming);
    }

    /// Names that are left, with what their files hold; folders hold nothing and come first.
    fn left(&self, random: &mut Random) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let mut names = self.safe_names.clone();
        for naming in &self.pending {
            if random.below(2) == 0 {
                naming.apply(&mut names);
            }
        }
        let contents: Vec<Vec<u8>> = self.nodes.iter().map(|node| node.left(random)).collect();
        names
            .into_iter()
            .map(|(path, node)| {
                let is_file = !self.nodes[node].is_folder;
                (path, is_file.then(|| contents[node].clone()))
            })
            .collect()
    }
}

impl Node {
    fn left(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.on_disk.clone();
        let likely = 1 + random.below(4);
        for (offset, written) in &self.pending {
            let mut at = 0;
            while at < written.len() {
                let to_sector_end = SECTOR_BYTES - (offset + at) % SECTOR_BYTES;
                let end = written.len().min(at + to_sector_end);
                if random.below(4) < likely {
                    overwrite(&mut bytes, offset + at, &written[at..end]);
                }
                at = end;
            }
        }
        bytes
    }
}

fn overwrite(bytes: &mut Vec<u8>, offset: usize, written: &[u8]) {
    let end = offset + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(written);
}
