//! The machine: rows with the versions that wrote them, and who may write.
//!
//! | command | keys for witnesses | what it does |
//! |---|---|---|
//! | effects | those written | each key gets its value, unless it has a newer version |
//! | claim | all | names the owner; effects of earlier ones do nothing from then on |
//! | show | none | nothing |
//!
//! Keys that a transaction has read are in no record. They need not be: the primary lets transactions
//! read confirmed state alone, so that what is replayed after a failure depends on nothing that may be
//! missing. Effects of one owner may come in another order than that of their versions, when they
//! write different keys or were not answered; the highest version of a key wins. A key that was deleted
//! is remembered for as long as an older write of it may come.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_curp::ids::Stamp;
use manxdb_curp::{Declared, Execute, Executed};
use manxdb_storage::Version;
use serde::{Deserialize, Serialize};

use crate::effects::{Effects, Outcome, Owner, SqlCommand};

/// What a row costs beside its bytes, roughly.
const ROW_BYTES: usize = 96;

/// A key's newest version, and its value unless it is deleted.
pub type Cell = (u64, Option<Arc<[u8]>>);

/// Rows, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    cells: BTreeMap<Vec<u8>, Cell>,
    /// Deleted keys, by the version that deleted them.
    tombstones: BTreeMap<u64, Vec<Vec<u8>>>,
    latest: u64,
    bytes: usize,
}

impl Rows {
    /// Live keys, in order, with the versions that wrote them.
    pub fn live(&self) -> impl Iterator<Item = (&[u8], Version, &[u8])> {
        let cells = self.cells.iter();
        cells.filter_map(|(key, (version, value))| {
            Some((key.as_slice(), Version(*version), value.as_deref()?))
        })
    }

    /// The newest version of any key, deleted ones too.
    #[must_use]
    pub fn latest(&self) -> Version {
        Version(self.latest)
    }

    /// How many keys there are, deleted ones that are remembered included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Bytes that they take, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn write(&mut self, version: u64, key: Vec<u8>, value: Option<Vec<u8>>) {
        let old = self.cells.get(&key);
        if old.is_some_and(|(newer, _)| *newer >= version) {
            return;
        }
        if let Some((_, old)) = old {
            let gone = size(&key, old.as_deref());
            assert!(gone <= self.bytes, "a row was counted when it was written");
            self.bytes -= gone;
        }
        if value.is_none() {
            let deleted = self.tombstones.entry(version).or_default();
            deleted.push(key.clone());
        }
        let value = value.map(Arc::from);
        self.bytes += size(&key, value.as_deref());
        self.cells.insert(key, (version, value));
    }

    fn apply(&mut self, effects: Effects) {
        let version = effects.version;
        assert!(version > effects.shown, "decoded effects are sound");
        for (key, value) in effects.writes {
            self.write(version, key, value);
        }
        self.latest = self.latest.max(version);
        assert!(self.latest > effects.shown, "what was shown was written");
        self.forget_tombstones(effects.shown);
    }

    /// Forgets deleted keys of which no older write can come.
    fn forget_tombstones(&mut self, upto: u64) {
        let newer = self.tombstones.split_off(&upto.saturating_add(1));
        let old = std::mem::replace(&mut self.tombstones, newer);
        for (version, keys) in old {
            assert!(version <= upto, "an older write may come of newer ones");
            for key in keys {
                let is_same = |cell: &Cell| cell.0 == version && cell.1.is_none();
                if self.cells.get(&key).is_some_and(is_same) {
                    self.cells.remove(&key);
                    let gone = size(&key, None);
                    assert!(gone <= self.bytes, "a deleted key is counted too");
                    self.bytes -= gone;
                }
            }
        }
    }

    /// Checks that it counts what it has.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self) -> Result<(), String> {
        let cells = self.cells.iter();
        let bytes: usize = cells
            .map(|(key, (_, value))| size(key, value.as_deref()))
            .sum();
        if bytes != self.bytes {
            return Err(format!(
                "{} bytes are counted, there are {bytes}",
                self.bytes
            ));
        }
        let newest = self.cells.values().map(|(version, _)| *version).max();
        if newest.is_some_and(|newest| newest > self.latest) {
            return Err(format!(
                "version {newest:?} after the latest, {}",
                self.latest
            ));
        }
        Ok(())
    }
}

fn size(key: &[u8], value: Option<&[u8]>) -> usize {
    ROW_BYTES + key.len() + value.map_or(0, <[u8]>::len)
}

/// The replicated state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SqlMachine {
    owner: Owner,
    /// Shared with whoever loads them into an engine, and with a store whose master recovers.
    rows: Arc<Rows>,
}

impl SqlMachine {
    /// Who may write.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// All rows.
    #[must_use]
    pub fn rows(&self) -> &Arc<Rows> {
        &self.rows
    }
}

impl Execute for SqlMachine {
    fn declare(command: &[u8]) -> Option<Declared> {
        Some(match SqlCommand::decode(command)? {
            SqlCommand::Commit(effects) => Declared {
                keys: effects.writes.into_iter().map(|(key, _)| key).collect(),
                reads_only: false,
            },
            SqlCommand::Claim(_) => Declared::default(),
            SqlCommand::Show => Declared {
                keys: Vec::new(),
                reads_only: true,
            },
        })
    }

    fn execute(&mut self, command: &[u8], _: Stamp) -> Executed {
        let Some(decoded) = SqlCommand::decode(command) else {
            return Executed::default();
        };
        let (outcome, touched, touches_all) = match decoded {
            SqlCommand::Commit(effects) => {
                let outcome = if effects.owner == self.owner {
                    Outcome::Done
                } else {
                    Outcome::NotOwner
                };
                let keys = effects.writes.into_iter().map(|(key, _)| key);
                (outcome, keys.collect(), false)
            }
            SqlCommand::Claim(owner) if owner > self.owner => (Outcome::Done, Vec::new(), true),
            SqlCommand::Claim(_) => (Outcome::NotOwner, Vec::new(), true),
            SqlCommand::Show => {
                return Executed {
                    answer: Outcome::Done.bytes(),
                    ..Executed::default()
                };
            }
        };
        let effects = match outcome {
            Outcome::Done => command.to_vec(),
            Outcome::NotOwner => Vec::new(),
        };
        assert!(
            touches_all || !touched.is_empty(),
            "what changes something conflicts with something"
        );
        Executed {
            answer: outcome.bytes(),
            effects,
            touched,
            touches_all,
        }
    }

    fn apply(&mut self, effects: &[u8]) {
        match SqlCommand::decode(effects) {
            Some(SqlCommand::Commit(effects)) => {
                assert_eq!(effects.owner, self.owner, "the owner alone writes");
                Arc::make_mut(&mut self.rows).apply(effects);
            }
            Some(SqlCommand::Claim(owner)) => {
                assert!(owner > self.owner, "owners only grow");
                self.owner = owner;
                let rows = Arc::make_mut(&mut self.rows);
                // Nothing that an earlier owner has ordered will come.
                rows.forget_tombstones(rows.latest);
                assert!(
                    rows.tombstones.is_empty(),
                    "a new owner begins with rows alone"
                );
            }
            Some(SqlCommand::Show) | None => {}
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        // Nothing in it can fail to be written.
        postcard::to_stdvec(&(self.owner, self.rows.as_ref())).unwrap_or_default()
    }

    fn restore(snapshot: &[u8]) -> Option<Self> {
        let (owner, rows): (Owner, Rows) = postcard::from_bytes(snapshot).ok()?;
        rows.check().ok()?;
        Some(Self {
            owner,
            rows: Arc::new(rows),
        })
    }

    fn empty() -> Self {
        Self::default()
    }
}
