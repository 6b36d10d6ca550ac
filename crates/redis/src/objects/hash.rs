//! The object: fields in an order of their own, some of which expire.

use std::collections::BTreeSet;

use crate::objects::{Map, Pending};

/// Fields up to which their order is that of their coming.
const ORDERED_MAX: usize = 128;
/// Bytes of an expiry before a value.
const EXPIRY_BYTES: usize = 8;
/// What a field that expires takes in the order of expiries beside its bytes.
const DUE_BYTES: usize = 48;

/// A hash.
///
/// Where fields may expire, a value is kept as its row has it: when its field expires, in milliseconds since
/// 1970 (u64, big-endian; 0: never), and the value. A hash whose fields never could keeps values as they are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hash {
    fields: Map<Box<[u8]>, Box<[u8]>>,
    bytes: usize,
    pending: Pending,
    /// `None` as long as no field could ever expire.
    due: Option<Box<Due>>,
}

/// Fields that expire.
#[derive(Debug, Clone, Default, PartialEq)]
struct Due {
    /// Earliest first.
    by_time: BTreeSet<(u64, Box<[u8]>)>,
    /// Bytes of their names.
    bytes: usize,
}

impl Due {
    fn add(&mut self, at_millis: u64, field: &[u8]) {
        if at_millis > 0 && self.by_time.insert((at_millis, field.into())) {
            self.bytes += field.len();
        }
    }

    fn remove(&mut self, at_millis: u64, field: &[u8]) {
        if at_millis > 0 {
            let was_there = self.by_time.remove(&(at_millis, field.into()));
            assert!(
                was_there,
                "a field that expires is in the order of expiries"
            );
            self.bytes -= field.len();
        }
    }
}

/// A kept value's expiry and value, where fields may expire.
fn split(kept: &[u8]) -> Option<(u64, &[u8])> {
    let (at, value) = kept.split_first_chunk::<EXPIRY_BYTES>()?;
    Some((u64::from_be_bytes(*at), value))
}

impl Hash {
    /// A hash whose rows have expiries before their values.
    #[must_use]
    pub fn with_expiries() -> Self {
        Self {
            due: Some(Box::default()),
            ..Self::default()
        }
    }

    /// Whether fields may expire, so that rows have expiries.
    #[must_use]
    pub fn has_expiries(&self) -> bool {
        self.due.is_some()
    }

    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Bytes of fields and values, as rows have them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that the order of expiries takes.
    #[must_use]
    pub fn due_bytes(&self) -> usize {
        let of = |due: &Due| due.bytes + due.by_time.len() * DUE_BYTES;
        self.due.as_deref().map_or(0, of)
    }

    /// [`Hash::due_bytes`], from the fields themselves.
    pub(crate) fn recounted_due_bytes(&self) -> usize {
        let expiring = self
            .fields
            .iter()
            .filter(|(_, kept)| self.shown(kept).0 > 0);
        expiring.map(|(field, _)| field.len() + DUE_BYTES).sum()
    }

    /// When a field with a kept value expires, and its value.
    fn shown<'a>(&self, kept: &'a [u8]) -> (u64, &'a [u8]) {
        if self.due.is_none() {
            return (0, kept);
        }
        let shown = split(kept);
        assert!(shown.is_some(), "a value has its expiry before it");
        shown.unwrap_or((0, kept))
    }

    /// A value as it is kept.
    fn kept(&self, at_millis: u64, value: &[u8]) -> Box<[u8]> {
        if self.due.is_none() {
            assert_eq!(at_millis, 0, "no field expires without an expiry before it");
            return value.into();
        }
        [&at_millis.to_be_bytes()[..], value].concat().into()
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, field: &[u8]) -> Option<&[u8]> {
        self.fields.get(field).map(|kept| self.shown(kept).1)
    }

    /// When a field expires, in milliseconds since 1970; 0: never. `None` without the field.
    #[must_use]
    pub fn expiry(&self, field: &[u8]) -> Option<u64> {
        self.fields.get(field).map(|kept| self.shown(kept).0)
    }

    /// The field at a place, and its value.
    #[must_use]
    pub fn at(&self, place: usize) -> Option<(&[u8], &[u8])> {
        let (field, kept) = self.fields.get_index(place)?;
        Some((field, self.shown(kept).1))
    }

    /// All fields and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields
            .iter()
            .map(|(field, kept)| (&**field, self.shown(kept).1))
    }

    /// Sets a field, which never expires then; whether it is new.
    pub fn insert(&mut self, field: &[u8], value: &[u8]) -> bool {
        self.set(field, 0, value)
    }

    /// Sets a field that expires when it did before; whether it is new.
    pub fn update(&mut self, field: &[u8], value: &[u8]) -> bool {
        let at_millis = self.expiry(field).unwrap_or(0);
        self.set(field, at_millis, value)
    }

    fn set(&mut self, field: &[u8], at_millis: u64, value: &[u8]) -> bool {
        let kept = self.kept(at_millis, value);
        self.put(field, at_millis, kept)
    }

    fn put(&mut self, field: &[u8], at_millis: u64, kept: Box<[u8]>) -> bool {
        self.pending.note(field);
        self.bytes += kept.len();
        let before = match self.fields.get_mut(field) {
            Some(place) => Some(std::mem::replace(place, kept)),
            None => {
                self.fields.insert(field.into(), kept);
                self.bytes += field.len();
                None
            }
        };
        let expired_at = before.as_ref().map_or(0, |before| self.shown(before).0);
        self.bytes -= before.as_ref().map_or(0, |before| before.len());
        if let Some(due) = &mut self.due {
            due.remove(expired_at, field);
            due.add(at_millis, field);
        }
        before.is_none()
    }

    /// Lets a field expire, or never with 0; whether it is there. The first one that expires changes the form
    /// of all rows of the hash, for as long as it is there.
    pub fn set_expiry(&mut self, field: &[u8], at_millis: u64) -> bool {
        if !self.fields.contains_key(field) {
            return false;
        }
        if self.due.is_none() && at_millis > 0 {
            self.begin_expiries();
        }
        if self.due.is_some() {
            let value = self.get(field).unwrap_or_default().to_vec();
            self.set(field, at_millis, &value);
        }
        true
    }

    fn begin_expiries(&mut self) {
        self.due = Some(Box::default());
        for kept in self.fields.values_mut() {
            *kept = [&[0; EXPIRY_BYTES][..], kept].concat().into();
        }
        self.bytes += self.fields.len() * EXPIRY_BYTES;
        self.pending.write_anew();
    }

    /// When the next field expires, in milliseconds since 1970.
    #[must_use]
    pub fn next_due(&self) -> Option<u64> {
        let first = self.due.as_ref()?.by_time.first();
        first.map(|(at, _)| *at)
    }

    /// Removes fields whose time is over at `now`, at most `limit`; how many.
    pub fn expire(&mut self, now: u64, limit: usize) -> usize {
        let mut expired = 0;
        while expired < limit
            && let Some(due) = &self.due
            && let Some((at, field)) = due.by_time.first()
            && *at <= now
        {
            let field = field.clone();
            let was_there = self.remove(&field);
            assert!(was_there, "a field that expires is there");
            expired += 1;
        }
        expired
    }

    /// Removes a field; whether it was there.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        let removed = if self.fields.len() <= ORDERED_MAX {
            self.fields.shift_remove(field)
        } else {
            self.fields.swap_remove(field)
        };
        let Some(kept) = removed else {
            return false;
        };
        self.bytes -= field.len() + kept.len();
        let (at_millis, _) = self.shown(&kept);
        if let Some(due) = &mut self.due {
            due.remove(at_millis, field);
        }
        self.pending.note(field);
        true
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.pending
    }

    pub(crate) fn pending_mut(&mut self) -> &mut Pending {
        &mut self.pending
    }

    pub(crate) fn row(&self, sub: &[u8]) -> Option<Vec<u8>> {
        self.fields.get(sub).map(|kept| kept.to_vec())
    }

    pub(crate) fn each_row(&self, take: &mut dyn FnMut(&[u8], &[u8])) {
        for (field, kept) in &self.fields {
            take(field, kept);
        }
    }

    pub(crate) fn take_row(&mut self, sub: &[u8], row: &[u8]) -> bool {
        let at_millis = match &self.due {
            None => 0,
            Some(_) => match split(row) {
                Some((at_millis, _)) => at_millis,
                None => return false,
            },
        };
        self.put(sub, at_millis, row.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against a map of values and expiries.
        #[test]
        fn fields_expire_when_they_were_told_to_and_no_others_do(
            steps in prop::collection::vec((0..5_u8, 0..6_u8, 1..40_u64), 1..80),
        ) {
            let mut hash = Hash::default();
            let mut model: BTreeMap<[u8; 1], (u64, [u8; 8])> = BTreeMap::new();
            for (step, field, number) in steps {
                let (field, value) = ([field], number.to_be_bytes());
                match step {
                    0 => {
                        prop_assert_eq!(hash.insert(&field, &value), !model.contains_key(&field));
                        model.insert(field, (0, value));
                    }
                    1 => {
                        hash.update(&field, &value);
                        model.entry(field).or_insert((0, value)).1 = value;
                    }
                    2 => {
                        prop_assert_eq!(hash.set_expiry(&field, number), model.contains_key(&field));
                        model.entry(field).and_modify(|kept| kept.0 = number);
                    }
                    3 => prop_assert_eq!(hash.remove(&field), model.remove(&field).is_some()),
                    _ => {
                        let before = model.len();
                        model.retain(|_, kept| kept.0 == 0 || kept.0 > number);
                        prop_assert_eq!(hash.expire(number, usize::MAX), before - model.len());
                    }
                }
                prop_assert_eq!(hash.len(), model.len());
                let next = model.values().map(|kept| kept.0).filter(|at| *at > 0).min();
                prop_assert_eq!(hash.next_due(), next);
                prop_assert_eq!(hash.due_bytes(), hash.recounted_due_bytes());
                let mut rows = 0;
                hash.each_row(&mut |field, row| rows += field.len() + row.len());
                prop_assert_eq!(hash.bytes(), rows);
                for (field, (at, value)) in &model {
                    prop_assert_eq!(hash.expiry(field), Some(*at));
                    prop_assert_eq!(hash.get(field), Some(&value[..]));
                }
            }
        }
    }
}
