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
//!
//! Rows are in memory, as in the simulator, or in a store of their own ([`stored`](crate::stored)), as in
//! processes. The rules are the same; the store has what is settled.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_curp::execute::{CollectedBytes, UNREADABLE};
use manxdb_curp::ids::Stamp;
use manxdb_curp::image::BytesImage;
use manxdb_curp::{
    Declared, Execute, Executed, ReadImage, ReceiveImage, Recorded, Settled, StateError,
};
use manxdb_storage::{StorageError, Version};
use serde::{Deserialize, Serialize};

use crate::effects::{Effects, Outcome, Owner, SqlCommand};
use crate::stored::{Home, Receiver, StoredImage, StoredRows, StoredView};

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

/// All rows of one moment, wherever they are.
#[derive(Debug, Clone)]
pub enum RowsView {
    /// In memory.
    Memory(Arc<Rows>),
    /// In a store.
    Stored(StoredView),
}

impl RowsView {
    /// The newest version of any key, deleted ones too.
    #[must_use]
    pub fn latest(&self) -> Version {
        match self {
            Self::Memory(rows) => rows.latest(),
            Self::Stored(view) => view.latest(),
        }
    }

    /// How many keys there are, deleted ones that are remembered included.
    #[must_use]
    pub fn keys(&self) -> u64 {
        match self {
            Self::Memory(rows) => rows.len() as u64,
            Self::Stored(view) => view.keys(),
        }
    }

    /// Shows live keys in order, with the versions that wrote them.
    ///
    /// # Errors
    /// That of the store, and that of `each`, which ends it.
    pub fn each_live<E: From<StorageError>>(
        &self,
        mut each: impl FnMut(&[u8], Version, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::Memory(rows) => rows
                .live()
                .try_for_each(|(key, version, value)| each(key, version, value)),
            Self::Stored(view) => view.each_live(each),
        }
    }
}

/// The layout of a record that names a store.
const RECORD: u8 = 1;

/// The replicated state.
#[derive(Debug, Clone, Default)]
pub struct SqlMachine {
    owner: Owner,
    /// Shared with whoever loads them into an engine, and with a store whose master recovers. Empty where
    /// a store has them.
    rows: Arc<Rows>,
    stored: Option<StoredRows>,
}

impl PartialEq for SqlMachine {
    fn eq(&self, other: &Self) -> bool {
        let number = |machine: &Self| machine.stored.as_ref().map(StoredRows::number);
        self.owner == other.owner && self.rows == other.rows && number(self) == number(other)
    }
}

impl Eq for SqlMachine {}

impl SqlMachine {
    /// Who may write.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Who may write as far as the state is settled: everything before that owner's claim is settled too.
    #[must_use]
    pub fn settled_owner(&self) -> Owner {
        let settled = self.stored.as_ref().map(|stored| stored.facts().owner);
        let owner = settled.unwrap_or(self.owner);
        assert!(owner <= self.owner, "what is settled was applied before");
        owner
    }

    /// No rows, kept in a store from the first one on.
    #[must_use]
    pub fn stored(home: &Arc<Home>) -> Self {
        Self::of_stored(StoredRows::empty(home))
    }

    fn of_stored(stored: StoredRows) -> Self {
        Self {
            owner: stored.facts().owner,
            rows: Arc::default(),
            stored: Some(stored),
        }
    }

    /// All rows in memory.
    #[must_use]
    pub fn rows(&self) -> &Arc<Rows> {
        assert!(self.stored.is_none(), "the rows are in a store");
        &self.rows
    }

    /// All rows as they are now; of those in a store what is settled.
    #[must_use]
    pub fn view(&self) -> RowsView {
        match &self.stored {
            None => RowsView::Memory(Arc::clone(&self.rows)),
            Some(stored) => RowsView::Stored(stored.view()),
        }
    }

    /// How many keys there are.
    #[must_use]
    pub fn keys(&self) -> u64 {
        match &self.stored {
            None => self.rows.len() as u64,
            Some(stored) => stored.facts().keys,
        }
    }

    /// Bytes that rows in memory take, roughly.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.rows.bytes()
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
        if self.stored.is_some() && !SqlCommand::is_claim(effects) {
            return; // the store looks at what is written once it is settled
        }
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
        let Some(stored) = &self.stored else {
            // Nothing in it can fail to be written.
            return postcard::to_stdvec(&(self.owner, self.rows.as_ref())).unwrap_or_default();
        };
        let mut image = StoredImage::new(stored.view());
        let chunks = std::iter::from_fn(|| image.read().ok().flatten());
        chunks.flatten().collect()
    }

    fn restore(snapshot: &[u8]) -> Option<Self> {
        let (owner, rows): (Owner, Rows) = postcard::from_bytes(snapshot).ok()?;
        rows.check().ok()?;
        Some(Self {
            owner,
            rows: Arc::new(rows),
            stored: None,
        })
    }

    fn empty() -> Self {
        Self::default()
    }

    fn image(&self) -> Box<dyn ReadImage> {
        match &self.stored {
            None => Box::new(BytesImage::new(self.snapshot())),
            Some(stored) => Box::new(StoredImage::new(stored.view())),
        }
    }

    fn receive(&self) -> Box<dyn ReceiveImage<Self>> {
        match &self.stored {
            None => Box::new(CollectedBytes::<Self>::default()),
            Some(stored) => Box::new(Receiver::new(stored.home(), Self::of_stored)),
        }
    }

    fn has_store(&self) -> bool {
        self.stored.is_some()
    }

    fn settle(&mut self, settled: &Settled<'_>) -> Result<(), StateError> {
        self.stored
            .as_mut()
            .map_or(Ok(()), |stored| stored.settle(settled))
    }

    fn fresh(&self) -> Self {
        self.stored
            .as_ref()
            .map_or_else(Self::default, |stored| Self::stored(stored.home()))
    }

    fn to_record(&mut self) -> Result<Vec<u8>, StateError> {
        let Some(stored) = &mut self.stored else {
            return Ok(self.snapshot());
        };
        stored.sync()?;
        let mut record = vec![RECORD];
        record.extend_from_slice(&stored.number().to_le_bytes());
        Ok(record)
    }

    fn open_record(&self, record: &[u8]) -> Result<Recorded<Self>, String> {
        let Some(stored) = &self.stored else {
            let state = Self::restore(record).ok_or(UNREADABLE)?;
            let settled = None;
            return Ok(Recorded { state, settled });
        };
        let number = record.strip_prefix(&[RECORD]).map(<[u8; 8]>::try_from);
        let Some(Ok(number)) = number else {
            return Err(format!("it names no store of rows: {UNREADABLE}"));
        };
        let number = u64::from_le_bytes(number);
        let stored = StoredRows::reopen(stored.home(), number).map_err(|why| why.to_string())?;
        let settled = Some((stored.facts().end, stored.facts().completed.clone()));
        let state = Self::of_stored(stored);
        Ok(Recorded { state, settled })
    }

    fn forget_earlier(&mut self) {
        if let Some(stored) = &self.stored {
            stored.forget_earlier();
        }
    }
}
