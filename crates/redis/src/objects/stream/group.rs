//! Consumer groups: who got which entry and has not said that it is done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::rows::RowName;
use super::{Stream, StreamId};

/// A group of consumers that share a stream's entries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConsumerGroup {
    /// The last entry that was delivered as new.
    pub last_delivered: StreamId,
    /// How many entries were read up to that one, when that is known.
    pub entries_read: Option<i64>,
    consumers: BTreeMap<Arc<[u8]>, Consumer>,
    deliveries: BTreeMap<StreamId, Delivery>,
}

/// A consumer.
#[derive(Debug, Clone, PartialEq)]
pub struct Consumer {
    /// When it last tried something, milliseconds since 1970.
    pub seen_millis: u64,
    /// When it last got something.
    pub active_millis: Option<u64>,
    pending: BTreeSet<StreamId>,
}

/// An entry that a consumer got and has not acknowledged.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Who got it.
    pub consumer: Arc<[u8]>,
    /// When, milliseconds since 1970.
    pub delivered_millis: u64,
    /// How often.
    pub deliveries: u64,
}

fn numbers(one: u64, other: u64) -> Vec<u8> {
    [one.to_be_bytes(), other.to_be_bytes()].concat()
}

impl ConsumerGroup {
    /// A consumer's state.
    #[must_use]
    pub fn consumer(&self, name: &[u8]) -> Option<&Consumer> {
        self.consumers.get(name)
    }

    /// All consumers, by name.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = (&[u8], &Consumer)> {
        self.consumers.iter().map(|(name, state)| (&**name, state))
    }

    /// What became of an entry that was delivered and not acknowledged.
    #[must_use]
    pub fn delivery(&self, id: StreamId) -> Option<&Delivery> {
        self.deliveries.get(&id)
    }

    /// Entries that were delivered and not acknowledged.
    pub fn deliveries(&self) -> impl DoubleEndedIterator<Item = (StreamId, &Delivery)> {
        self.deliveries.iter().map(|(id, delivery)| (*id, delivery))
    }

    /// Those of them from an ID on.
    pub fn deliveries_from(&self, id: StreamId) -> impl Iterator<Item = (StreamId, &Delivery)> {
        let found = self.deliveries.range(id..);
        found.map(|(id, delivery)| (*id, delivery))
    }

    /// Number of entries that were delivered and not acknowledged.
    #[must_use]
    pub fn pending_len(&self) -> usize {
        self.deliveries.len()
    }

    pub(crate) fn row(&self) -> Vec<u8> {
        let read = self.entries_read.unwrap_or(-1);
        [&self.last_delivered.to_bytes()[..], &read.to_be_bytes()[..]].concat()
    }

    pub(crate) fn from_row(value: &[u8]) -> Option<Self> {
        let (id, read) = value.split_first_chunk::<16>()?;
        let read = i64::from_be_bytes(read.try_into().ok()?);
        Some(Self {
            last_delivered: StreamId::from_bytes(id)?,
            entries_read: (read >= 0).then_some(read),
            ..Self::default()
        })
    }

    pub(crate) fn take_consumer(&mut self, name: &[u8], value: &[u8]) -> bool {
        let Some(consumer) = Consumer::from_row(value) else {
            return false;
        };
        self.consumers.insert(name.into(), consumer).is_none()
    }

    pub(crate) fn take_delivery(&mut self, id: StreamId, value: &[u8]) -> bool {
        let Some((numbers, name)) = value.split_first_chunk::<16>() else {
            return false;
        };
        let Some((shared, _)) = self.consumers.get_key_value(name) else {
            return false;
        };
        let (delivered, deliveries) = numbers.split_at(8);
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_be_bytes);
        let delivery = Delivery {
            consumer: Arc::clone(shared),
            delivered_millis: number(delivered),
            deliveries: number(deliveries),
        };
        let is_new = self.deliveries.insert(id, delivery).is_none();
        if let Some(consumer) = self.consumers.get_mut(name) {
            consumer.pending.insert(id);
        }
        is_new
    }
}

impl Consumer {
    /// IDs of entries that it has not acknowledged.
    pub fn pending(&self) -> impl ExactSizeIterator<Item = StreamId> {
        self.pending.iter().copied()
    }

    /// Those of them from an ID on.
    pub fn pending_from(&self, id: StreamId) -> impl Iterator<Item = StreamId> {
        self.pending.range(id..).copied()
    }

    pub(crate) fn row(&self) -> Vec<u8> {
        // No time that a clock tells is the last of 64 bits.
        numbers(self.seen_millis, self.active_millis.unwrap_or(u64::MAX))
    }

    fn from_row(value: &[u8]) -> Option<Self> {
        let (seen, active) = value.split_first_chunk::<8>()?;
        let active = u64::from_be_bytes(active.try_into().ok()?);
        Some(Self {
            seen_millis: u64::from_be_bytes(*seen),
            active_millis: (active != u64::MAX).then_some(active),
            pending: BTreeSet::new(),
        })
    }
}

impl Delivery {
    pub(crate) fn row(&self) -> Vec<u8> {
        let mut out = numbers(self.delivered_millis, self.deliveries);
        out.extend_from_slice(&self.consumer);
        out
    }

    fn row_bytes(&self) -> usize {
        16 + self.consumer.len()
    }
}

/// Bytes of a group's row, and of a consumer's.
const GROUP_BYTES: usize = 24;
const CONSUMER_BYTES: usize = 16;

/// Changes of groups. Each notes the rows it changes.
impl Stream {
    /// A group.
    #[must_use]
    pub fn group(&self, name: &[u8]) -> Option<&ConsumerGroup> {
        self.groups.get(name)
    }

    /// All groups, by name.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = (&[u8], &ConsumerGroup)> {
        self.groups.iter().map(|(name, group)| (&**name, group))
    }

    /// Makes a group, or moves one that is there; whether it is new.
    pub fn place_group(&mut self, name: &[u8], last: StreamId, read: Option<i64>) -> bool {
        assert!(
            read.is_none_or(|read| read >= 0),
            "a count is not below zero"
        );
        let is_new = !self.groups.contains_key(name);
        let group = self.groups.entry(name.into()).or_default();
        group.last_delivered = last;
        group.entries_read = read;
        let before = (!is_new).then_some(GROUP_BYTES);
        self.count_row(&RowName::Group(name), before, Some(GROUP_BYTES));
        is_new
    }

    /// Removes a group with all that belongs to it; whether it was there.
    pub fn remove_group(&mut self, name: &[u8]) -> bool {
        let Some(group) = self.groups.remove(name) else {
            return false;
        };
        for (id, delivery) in &group.deliveries {
            let bytes = Some(delivery.row_bytes());
            self.count_row(&RowName::Pending(name, *id), bytes, None);
        }
        for consumer in group.consumers.keys() {
            let row = RowName::Consumer(name, consumer);
            self.count_row(&row, Some(CONSUMER_BYTES), None);
        }
        self.count_row(&RowName::Group(name), Some(GROUP_BYTES), None);
        true
    }

    /// Notes that a consumer of a group that there is tried something at `now`, or got something;
    /// makes it when it is new. Whether anything changed, and whether it is new.
    pub fn see_consumer(
        &mut self,
        group: &[u8],
        name: &[u8],
        now: u64,
        is_active: bool,
    ) -> (bool, bool) {
        let Some(state) = self.groups.get_mut(group) else {
            return (false, false);
        };
        let known = state.consumers.get(name);
        let is_new = known.is_none();
        let is_same = known.is_some_and(|consumer| {
            consumer.seen_millis == now && (!is_active || consumer.active_millis == Some(now))
        });
        if is_same {
            return (false, false);
        }
        let consumer = state
            .consumers
            .entry(name.into())
            .or_insert_with(|| Consumer {
                seen_millis: now,
                active_millis: None,
                pending: BTreeSet::new(),
            });
        consumer.seen_millis = now;
        if is_active {
            consumer.active_millis = Some(now);
        }
        let before = (!is_new).then_some(CONSUMER_BYTES);
        let row = RowName::Consumer(group, name);
        self.count_row(&row, before, Some(CONSUMER_BYTES));
        (true, is_new)
    }

    /// Removes a consumer; how many entries it had not acknowledged, when it was there.
    pub fn remove_consumer(&mut self, group: &[u8], name: &[u8]) -> Option<usize> {
        let consumer = self.groups.get_mut(group)?.consumers.remove(name)?;
        for id in &consumer.pending {
            let removed = self
                .groups
                .get_mut(group)
                .and_then(|group| group.deliveries.remove(id));
            let bytes = removed.map(|delivery| delivery.row_bytes());
            assert!(bytes.is_some(), "a consumer's entry is its group's too");
            self.count_row(&RowName::Pending(group, *id), bytes, None);
        }
        let row = RowName::Consumer(group, name);
        self.count_row(&row, Some(CONSUMER_BYTES), None);
        Some(consumer.pending.len())
    }

    /// An entry is a consumer's from now on, which is there.
    pub fn deliver(
        &mut self,
        group: &[u8],
        consumer: &[u8],
        id: StreamId,
        delivered_millis: u64,
        deliveries: u64,
    ) {
        let before = self.drop_delivery(group, id);
        let Some(state) = self.groups.get_mut(group) else {
            return;
        };
        let found = state.consumers.get_key_value(consumer);
        let shared = found.map(|(shared, _)| Arc::clone(shared));
        assert!(
            shared.is_some(),
            "an entry is delivered to a known consumer"
        );
        let Some(shared) = shared else { return };
        if let Some(consumer) = state.consumers.get_mut(consumer) {
            consumer.pending.insert(id);
        }
        let delivery = Delivery {
            consumer: shared,
            delivered_millis,
            deliveries,
        };
        let after = delivery.row_bytes();
        state.deliveries.insert(id, delivery);
        self.count_row(&RowName::Pending(group, id), before, Some(after));
    }

    /// An entry is done; whether it was pending.
    pub fn acknowledge(&mut self, group: &[u8], id: StreamId) -> bool {
        let before = self.drop_delivery(group, id);
        if before.is_some() {
            self.count_row(&RowName::Pending(group, id), before, None);
        }
        before.is_some()
    }

    /// Takes a delivery out of its group and consumer; the bytes of its row.
    fn drop_delivery(&mut self, group: &[u8], id: StreamId) -> Option<usize> {
        let state = self.groups.get_mut(group)?;
        let delivery = state.deliveries.remove(&id)?;
        let owner = state.consumers.get_mut(&delivery.consumer);
        let was_its = owner.is_some_and(|consumer| consumer.pending.remove(&id));
        assert!(was_its, "a group's entry is one of its consumer's");
        Some(delivery.row_bytes())
    }

    /// Entries up to `id` since the stream began, when that can be told without counting.
    #[must_use]
    pub fn estimated_read(&self, id: StreamId) -> Option<i64> {
        let added = i64::try_from(self.head.entries_added).unwrap_or(i64::MAX);
        if added == 0 {
            return Some(0);
        }
        let last = self.head.last_id;
        if id == last || (self.is_empty() && id < last) {
            return Some(added);
        }
        if id > last {
            return None;
        }
        let first = self.first_id();
        let deleted = self.head.max_deleted_id;
        let is_whole = deleted == StreamId::MIN || deleted < first;
        let before = added - i64::try_from(self.len()).unwrap_or(i64::MAX);
        match () {
            () if is_whole && id < first => Some(before),
            () if is_whole && id == first => Some(before + 1),
            () => None,
        }
    }

    /// Whether an entry from `start` on may have been removed by XDEL.
    #[must_use]
    pub fn may_have_holes(&self, start: StreamId) -> bool {
        let deleted = self.head.max_deleted_id;
        !self.is_empty() && deleted > self.first_id() && start <= deleted
    }

    /// How many entries a group has still to deliver, when that can be told.
    #[must_use]
    pub fn lag(&self, group: &ConsumerGroup) -> Option<i64> {
        let added = i64::try_from(self.head.entries_added).unwrap_or(i64::MAX);
        if added == 0 {
            return Some(0);
        }
        match group.entries_read {
            Some(read) if !self.may_have_holes(group.last_delivered) => Some(added - read),
            _ => self
                .estimated_read(group.last_delivered)
                .map(|read| added - read),
        }
    }

    /// A group has delivered the entry `id` as new.
    pub fn advance_group(&mut self, name: &[u8], id: StreamId) {
        let Some(group) = self.groups.get(name) else {
            return;
        };
        assert!(id > group.last_delivered, "new entries come in order");
        let read = match group.entries_read {
            Some(read) if !self.may_have_holes(id) => Some(read.saturating_add(1)),
            _ if self.head.entries_added > 0 => self.estimated_read(id),
            unknown => unknown,
        };
        self.place_group(name, id, read);
    }
}
