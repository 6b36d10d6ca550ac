//! The object.

use indexmap::IndexSet;

use crate::objects::Pending;

/// A set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Set {
    members: IndexSet<Box<[u8]>, foldhash::fast::RandomState>,
    bytes: usize,
    pending: Pending,
}

impl Set {
    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Bytes of members.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether `member` is one.
    #[must_use]
    pub fn contains(&self, member: &[u8]) -> bool {
        self.members.contains(member)
    }

    /// The member at a place.
    #[must_use]
    pub fn at(&self, place: usize) -> Option<&[u8]> {
        self.members.get_index(place).map(|member| &**member)
    }

    /// All members.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.members.iter().map(|member| &**member)
    }

    /// Whether all members are numbers, as OBJECT ENCODING tells.
    #[must_use]
    pub fn are_numbers(&self) -> bool {
        self.iter()
            .all(|member| crate::number::integer(member).is_some())
    }

    /// Adds a member; whether it is new.
    pub fn insert(&mut self, member: &[u8]) -> bool {
        if self.members.contains(member) {
            return false;
        }
        self.bytes += member.len();
        self.pending.note(member);
        self.members.insert(member.into())
    }

    /// Removes a member; whether it was one.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        let is_removed = self.members.swap_remove(member);
        if is_removed {
            self.bytes -= member.len();
            self.pending.note(member);
        }
        is_removed
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.pending
    }

    pub(crate) fn pending_mut(&mut self) -> &mut Pending {
        &mut self.pending
    }

    pub(crate) fn row(&self, sub: &[u8]) -> Option<Vec<u8>> {
        self.contains(sub).then(Vec::new)
    }

    pub(crate) fn each_row(&self, take: &mut dyn FnMut(&[u8], &[u8])) {
        for member in self.iter() {
            take(member, &[]);
        }
    }

    pub(crate) fn take_row(&mut self, sub: &[u8], value: &[u8]) -> bool {
        value.is_empty() && self.insert(sub)
    }
}
