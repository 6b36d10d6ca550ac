//! The object: fields in an order of their own.

use crate::objects::{Map, Pending};

/// Fields up to which their order is that of their coming.
const ORDERED_MAX: usize = 128;

/// A hash.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hash {
    fields: Map<Box<[u8]>, Box<[u8]>>,
    bytes: usize,
    pending: Pending,
}

impl Hash {
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

    /// Bytes of fields and values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, field: &[u8]) -> Option<&[u8]> {
        self.fields.get(field).map(|value| &**value)
    }

    /// The field at a place, and its value.
    #[must_use]
    pub fn at(&self, place: usize) -> Option<(&[u8], &[u8])> {
        let (field, value) = self.fields.get_index(place)?;
        Some((field, value))
    }

    /// All fields and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields
            .iter()
            .map(|(field, value)| (&**field, &**value))
    }

    /// Sets a field; whether it is new.
    pub fn insert(&mut self, field: &[u8], value: &[u8]) -> bool {
        self.pending.note(field);
        self.bytes += value.len();
        if let Some(before) = self.fields.get_mut(field) {
            self.bytes -= before.len();
            *before = value.into();
            return false;
        }
        self.bytes += field.len();
        self.fields.insert(field.into(), value.into());
        true
    }

    /// Removes a field; whether it was there.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        let removed = if self.fields.len() <= ORDERED_MAX {
            self.fields.shift_remove(field)
        } else {
            self.fields.swap_remove(field)
        };
        let Some(value) = removed else {
            return false;
        };
        self.bytes -= field.len() + value.len();
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
        self.get(sub).map(<[u8]>::to_vec)
    }

    pub(crate) fn each_row(&self, take: &mut dyn FnMut(&[u8], &[u8])) {
        for (field, value) in self.iter() {
            take(field, value);
        }
    }

    pub(crate) fn take_row(&mut self, sub: &[u8], value: &[u8]) -> bool {
        self.insert(sub, value)
    }
}
