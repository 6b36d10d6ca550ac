//! The object: entries by ID, and what was ever in it.

mod group;
pub(crate) mod id;
pub(crate) mod rows;

use std::collections::BTreeMap;

use crate::error::CommandError;
use crate::objects::Pending;
use id::NewId;
use rows::RowName;

pub use group::{Consumer, ConsumerGroup, Delivery};
pub use id::StreamId;

/// What a stream knows beside its entries. It is in the key's own row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamHead {
    /// The largest ID that an entry ever had, or XSETID gave.
    pub last_id: StreamId,
    /// The largest ID that XDEL removed.
    pub max_deleted_id: StreamId,
    /// Entries ever added.
    pub entries_added: u64,
}

impl StreamHead {
    /// Bytes of its row form.
    pub const BYTES: usize = 2 * StreamId::BYTES + 8;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..16].copy_from_slice(&self.last_id.to_bytes());
        out[16..32].copy_from_slice(&self.max_deleted_id.to_bytes());
        out[32..].copy_from_slice(&self.entries_added.to_be_bytes());
        out
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (last, rest) = bytes.split_first_chunk::<16>()?;
        let (deleted, added) = rest.split_first_chunk::<16>()?;
        Some(Self {
            last_id: StreamId::from_bytes(last)?,
            max_deleted_id: StreamId::from_bytes(deleted)?,
            entries_added: u64::from_be_bytes(added.try_into().ok()?),
        })
    }
}

/// A stream. A key keeps it when it has no entries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stream {
    pub(crate) head: StreamHead,
    entries: BTreeMap<StreamId, Box<[u8]>>,
    pub(crate) groups: BTreeMap<Box<[u8]>, ConsumerGroup>,
    rows: usize,
    bytes: usize,
    pending: Pending,
}

impl Stream {
    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of rows: of entries, groups, consumers and deliveries.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of all rows, names and values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What it knows beside its entries.
    #[must_use]
    pub fn head(&self) -> StreamHead {
        self.head
    }

    /// The ID of the first entry, 0-0 when there is none.
    #[must_use]
    pub fn first_id(&self) -> StreamId {
        self.entries
            .first_key_value()
            .map_or(StreamId::MIN, |(id, _)| *id)
    }

    /// The ID of the last entry, 0-0 when there is none.
    #[must_use]
    pub fn last_entry_id(&self) -> StreamId {
        self.entries
            .last_key_value()
            .map_or(StreamId::MIN, |(id, _)| *id)
    }

    /// The packed fields of an entry.
    #[must_use]
    pub fn get(&self, id: StreamId) -> Option<&[u8]> {
        self.entries.get(&id).map(|packed| &**packed)
    }

    /// Entries from `start` to `end`, both inside.
    pub fn range(
        &self,
        start: StreamId,
        end: StreamId,
    ) -> impl DoubleEndedIterator<Item = (StreamId, &[u8])> {
        // A BTreeMap refuses ranges that end before they start.
        let found = (start <= end).then(|| self.entries.range(start..=end));
        let entries = found.into_iter().flatten();
        entries.map(|(id, packed)| (*id, &**packed))
    }

    /// How many of the first entries have an ID below `id`.
    #[must_use]
    pub fn count_below(&self, id: StreamId) -> usize {
        self.entries.range(..id).count()
    }

    /// The ID that a new entry gets.
    ///
    /// # Errors
    /// Redis's texts for one that is not above all before it.
    pub fn choose_id(&self, wanted: NewId, now_millis: u64) -> Result<StreamId, CommandError> {
        const NOT_ABOVE: CommandError = CommandError::text(
            "ERR The ID specified in XADD is equal or smaller than the target stream top item",
        );
        let last = self.head.last_id;
        let next = last.next().ok_or(CommandError::text(
            "ERR The stream has exhausted the last possible ID, unable to add more items",
        ))?;
        let chosen = match wanted {
            NewId::Automatic if now_millis > last.millis => StreamId {
                millis: now_millis,
                sequence: 0,
            },
            NewId::Automatic => next,
            NewId::Within(millis) if millis == last.millis && next.millis == millis => next,
            NewId::Within(millis) => StreamId {
                millis,
                sequence: 0,
            },
            NewId::Exact(id) => id,
        };
        (chosen > last).then_some(chosen).ok_or(NOT_ABOVE)
    }

    /// Adds an entry, whose ID is above all before it.
    pub fn append(&mut self, id: StreamId, packed: Box<[u8]>) {
        assert!(
            id > self.head.last_id,
            "an entry's ID is above all before it"
        );
        assert!(
            rows::are_fields(&packed),
            "an entry has pairs of fields and values"
        );
        self.head.last_id = id;
        self.head.entries_added = self.head.entries_added.saturating_add(1);
        self.count_row(&RowName::Entry(id), None, Some(packed.len()));
        self.entries.insert(id, packed);
    }

    /// Removes an entry for XDEL, which remembers it; whether it was there.
    pub fn delete(&mut self, id: StreamId) -> bool {
        let Some(packed) = self.entries.remove(&id) else {
            return false;
        };
        self.count_row(&RowName::Entry(id), Some(packed.len()), None);
        self.head.max_deleted_id = self.head.max_deleted_id.max(id);
        true
    }

    /// Removes the first `count` entries.
    pub fn trim_first(&mut self, count: usize) {
        assert!(count <= self.len(), "no more entries go than there are");
        for _ in 0..count {
            if let Some((id, packed)) = self.entries.pop_first() {
                self.count_row(&RowName::Entry(id), Some(packed.len()), None);
            }
        }
    }

    /// Sets what XSETID sets.
    pub fn set_head(&mut self, head: StreamHead) {
        assert!(
            head.last_id >= self.last_entry_id(),
            "the last ID is not below an entry's"
        );
        self.head = head;
    }

    /// Counts and notes that a row's value has another length, `None` where there is no row.
    pub(crate) fn count_row(
        &mut self,
        name: &RowName<'_>,
        before: Option<usize>,
        after: Option<usize>,
    ) {
        let sub = name.encode();
        if let Some(length) = before {
            assert!(
                self.rows > 0 && self.bytes >= sub.len() + length,
                "a row that was not counted"
            );
            self.rows -= 1;
            self.bytes -= sub.len() + length;
        }
        if let Some(length) = after {
            self.rows += 1;
            self.bytes += sub.len() + length;
        }
        self.pending.note(&sub);
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.pending
    }

    pub(crate) fn pending_mut(&mut self) -> &mut Pending {
        &mut self.pending
    }

    pub(crate) fn head_bytes(&self) -> [u8; StreamHead::BYTES] {
        self.head.to_bytes()
    }

    /// Takes the head of its key's row, before any other row.
    pub(crate) fn take_head(&mut self, bytes: &[u8]) -> bool {
        assert!(self.rows == 0, "a head comes before all rows");
        match StreamHead::from_bytes(bytes) {
            Some(head) => {
                self.head = head;
                true
            }
            None => false,
        }
    }

    pub(crate) fn row(&self, sub: &[u8]) -> Option<Vec<u8>> {
        match RowName::decode(sub)? {
            RowName::Entry(id) => self.get(id).map(<[u8]>::to_vec),
            RowName::Group(group) => Some(self.groups.get(group)?.row()),
            RowName::Consumer(group, consumer) => {
                Some(self.groups.get(group)?.consumer(consumer)?.row())
            }
            RowName::Pending(group, id) => Some(self.groups.get(group)?.delivery(id)?.row()),
        }
    }

    pub(crate) fn each_row(&self, take: &mut dyn FnMut(&[u8], &[u8])) {
        for (id, packed) in &self.entries {
            take(&RowName::Entry(*id).encode(), packed);
        }
        for (name, group) in &self.groups {
            take(&RowName::Group(name).encode(), &group.row());
        }
        for (name, group) in &self.groups {
            for (consumer, state) in group.consumers() {
                take(&RowName::Consumer(name, consumer).encode(), &state.row());
            }
        }
        for (name, group) in &self.groups {
            for (id, delivery) in group.deliveries() {
                take(&RowName::Pending(name, id).encode(), &delivery.row());
            }
        }
    }

    /// Rows come in the order of their names; the head came before them.
    pub(crate) fn take_row(&mut self, sub: &[u8], value: &[u8]) -> bool {
        let Some(name) = RowName::decode(sub) else {
            return false;
        };
        let is_taken = match name {
            RowName::Entry(id) => {
                let is_next = id > self.last_entry_id() && id <= self.head.last_id;
                if is_next && rows::are_fields(value) {
                    self.entries.insert(id, value.into()).is_none()
                } else {
                    false
                }
            }
            RowName::Group(group) => match ConsumerGroup::from_row(value) {
                Some(state) => self.groups.insert(group.into(), state).is_none(),
                None => false,
            },
            RowName::Consumer(group, consumer) => self
                .groups
                .get_mut(group)
                .is_some_and(|group| group.take_consumer(consumer, value)),
            RowName::Pending(group, id) => self
                .groups
                .get_mut(group)
                .is_some_and(|group| group.take_delivery(id, value)),
        };
        if is_taken {
            self.count_row(&name, None, Some(value.len()));
        }
        is_taken
    }
}
