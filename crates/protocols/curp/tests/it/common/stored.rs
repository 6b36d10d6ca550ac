//! A machine that keeps its state in a store of its own: here one that outlives the node in a map.
//!
//! What is settled is in the store at once, as what a process has handed to its operating system; the
//! record of the whole log makes it durable. So a process that crashes finds more in its store than its
//! journal tells of, and a machine that loses power finds less.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use manxdb_curp::ids::LogId;
use manxdb_curp::image::BytesImage;
use manxdb_curp::rifl::Rifl;
use manxdb_curp::{ReadImage, ReceiveImage, Settled, StateError};

use super::machine::{Answer, Value, bytes};

#[derive(Debug, Clone, Default)]
pub struct Kept {
    pub values: BTreeMap<u8, Value>,
    pub end: LogId,
    pub completed: Rifl,
}

/// The states of a node, by number: as they are, and as they are on disk.
#[derive(Debug, Default)]
pub struct States {
    next: u64,
    kept: BTreeMap<u64, Kept>,
    durable: BTreeMap<u64, Kept>,
}

impl States {
    /// Power is lost.
    pub fn lose_power(&mut self) {
        self.kept = self.durable.clone();
    }
}

pub type Home = Arc<Mutex<States>>;

#[derive(Debug, Clone)]
pub struct Stored {
    home: Home,
    number: u64,
}

/// As states in memory are compared: by what they are.
impl PartialEq for Stored {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Stored {}

impl Stored {
    pub fn new(home: &Home) -> Self {
        let mut states = home.lock().unwrap();
        states.next += 1;
        Self {
            home: Arc::clone(home),
            number: states.next,
        }
    }

    pub fn fresh(&self) -> Self {
        Self::new(&self.home)
    }

    pub fn kept(&self) -> Kept {
        let states = self.home.lock().unwrap();
        states.kept.get(&self.number).cloned().unwrap_or_default()
    }

    pub fn settle(&self, settled: &Settled<'_>) {
        let mut states = self.home.lock().unwrap();
        let kept = states.kept.entry(self.number).or_default();
        assert!(settled.end.at > kept.end.at, "settled twice");
        for effects in &settled.effects {
            let effects: Answer = postcard::from_bytes(effects).unwrap_or_default();
            for (key, value) in effects {
                match value {
                    Some(value) => kept.values.insert(key, value),
                    None => kept.values.remove(&key),
                };
            }
        }
        kept.end = settled.end;
        kept.completed = settled.completed.clone();
    }

    pub fn to_record(&self) -> Vec<u8> {
        let kept = self.kept();
        let mut states = self.home.lock().unwrap();
        states.durable.insert(self.number, kept);
        bytes(&self.number)
    }

    pub fn open_record(&self, record: &[u8]) -> Option<(Self, Kept)> {
        let number = postcard::from_bytes(record).ok()?;
        let opened = Self {
            home: Arc::clone(&self.home),
            number,
        };
        let kept = opened.kept();
        Some((opened, kept))
    }

    pub fn forget_earlier(&self) {
        let mut states = self.home.lock().unwrap();
        let own = self.number;
        states.kept.retain(|number, _| *number >= own);
        states.durable.retain(|number, _| *number >= own);
    }

    pub fn image(&self) -> Box<dyn ReadImage> {
        Box::new(BytesImage::new(bytes(&self.kept().values)))
    }

    pub fn receive<E>(&self, becomes: fn(Stored, Kept) -> E) -> Box<dyn ReceiveImage<E>>
    where
        E: 'static,
    {
        Box::new(Received {
            stored: self.fresh(),
            bytes: Vec::new(),
            becomes,
        })
    }
}

struct Received<E> {
    stored: Stored,
    bytes: Vec<u8>,
    becomes: fn(Stored, Kept) -> E,
}

impl<E> ReceiveImage<E> for Received<E> {
    fn take(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>, end: LogId, completed: &Rifl) -> Result<E, StateError> {
        let values = postcard::from_bytes(&self.bytes).map_err(|_| StateError::Unreadable)?;
        let kept = Kept {
            values,
            end,
            completed: completed.clone(),
        };
        let mut states = self.stored.home.lock().unwrap();
        states.kept.insert(self.stored.number, kept.clone());
        drop(states);
        Ok((self.becomes)(self.stored, kept))
    }
}
