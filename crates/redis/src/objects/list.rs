//! The object: elements in order, each under a number that does not change while others come and
//! go at the ends.

use std::collections::VecDeque;

use crate::objects::Pending;

/// Where the first element of a list is numbered: in the middle, with room at both ends.
const MIDDLE: u64 = 1 << 63;

/// A list.
#[derive(Debug, Clone)]
pub struct List {
    elements: VecDeque<Box<[u8]>>,
    /// The number of the first element.
    head: u64,
    bytes: usize,
    pending: Pending,
}

impl Default for List {
    fn default() -> Self {
        Self {
            elements: VecDeque::new(),
            head: MIDDLE,
            bytes: 0,
            pending: Pending::default(),
        }
    }
}

impl PartialEq for List {
    /// Numbers are not what a list is.
    fn eq(&self, other: &Self) -> bool {
        self.elements == other.elements
    }
}

impl List {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Bytes of elements.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The element at a place.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<&[u8]> {
        self.elements.get(place).map(|element| &**element)
    }

    /// All elements.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        self.elements.iter().map(|element| &**element)
    }

    /// Elements from `start` to `end`, both inside.
    pub fn range(&self, start: usize, end: usize) -> impl Iterator<Item = &[u8]> {
        self.elements.range(start..=end).map(|element| &**element)
    }

    fn note(&mut self, place: usize) {
        if self.pending.in_rows {
            let number = self.head.wrapping_add(place as u64);
            self.pending.note(&number.to_be_bytes());
        }
    }

    /// Notes as many numbers from one on: their elements changed, came or went.
    fn note_numbers(&mut self, from: u64, count: usize) {
        if self.pending.in_rows {
            for step in 0..count as u64 {
                let number = from.wrapping_add(step);
                self.pending.note(&number.to_be_bytes());
            }
        }
    }

    /// Adds an element at an end.
    pub fn push(&mut self, element: &[u8], at_front: bool) {
        self.bytes += element.len();
        if at_front {
            self.head = self.head.wrapping_sub(1);
            self.elements.push_front(element.into());
            self.note(0);
        } else {
            self.elements.push_back(element.into());
            self.note(self.elements.len() - 1);
        }
    }

    /// Removes the element at an end.
    pub fn pop(&mut self, at_front: bool) -> Option<Vec<u8>> {
        let last = self.elements.len().checked_sub(1)?;
        let element = if at_front {
            self.note(0);
            self.head = self.head.wrapping_add(1);
            self.elements.pop_front()
        } else {
            self.note(last);
            self.elements.pop_back()
        }?;
        self.bytes -= element.len();
        Some(element.into_vec())
    }

    /// Replaces the element at a place that there is.
    pub fn set(&mut self, place: usize, element: &[u8]) {
        if let Some(before) = self.elements.get_mut(place) {
            self.bytes = self.bytes - before.len() + element.len();
            *before = element.into();
            self.note(place);
        }
    }

    /// Inserts an element before a place.
    pub fn insert(&mut self, place: usize, element: &[u8]) {
        self.bytes += element.len();
        let (before, place) = (self.elements.len(), place.min(self.elements.len()));
        self.elements.insert(place, element.into());
        // The fewer elements get other numbers.
        if place < before - place {
            self.head = self.head.wrapping_sub(1);
            self.note_numbers(self.head, place + 1);
        } else {
            let from = self.head.wrapping_add(place as u64);
            self.note_numbers(from, before + 1 - place);
        }
    }

    /// Removes elements equal to `element`, at most `limit`, from an end on; how many.
    pub fn remove(&mut self, element: &[u8], limit: usize, from_front: bool) -> usize {
        let mut places: Vec<usize> = if from_front {
            self.places(element).take(limit).collect()
        } else {
            let all: Vec<usize> = self.places(element).collect();
            all[all.len().saturating_sub(limit)..].to_vec()
        };
        if places.is_empty() {
            return 0;
        }
        let removed = places.len();
        self.bytes -= removed * element.len();
        let (first, behind_last) = (places[0], places[removed - 1] + 1);
        let before = self.elements.len();
        // The fewer elements get other numbers.
        if behind_last < before - first {
            self.note_numbers(self.head, behind_last);
            self.head = self.head.wrapping_add(removed as u64);
        } else {
            let from = self.head.wrapping_add(first as u64);
            self.note_numbers(from, before - first);
        }
        places.reverse();
        let mut place = 0;
        self.elements.retain(|_| {
            let is_removed = places.last() == Some(&place);
            if is_removed {
                places.pop();
            }
            place += 1;
            !is_removed
        });
        assert!(places.is_empty(), "elements were there and are not");
        removed
    }

    fn places<'a>(&'a self, element: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        let all = self.iter().enumerate();
        all.filter(move |(_, found)| *found == element)
            .map(|(place, _)| place)
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.pending
    }

    pub(crate) fn pending_mut(&mut self) -> &mut Pending {
        &mut self.pending
    }

    pub(crate) fn row(&self, sub: &[u8]) -> Option<Vec<u8>> {
        let number = u64::from_be_bytes(sub.try_into().ok()?);
        let place = usize::try_from(number.checked_sub(self.head)?).ok()?;
        self.get(place).map(<[u8]>::to_vec)
    }

    pub(crate) fn each_row(&self, take: &mut dyn FnMut(&[u8], &[u8])) {
        for (place, element) in self.iter().enumerate() {
            let number = self.head.wrapping_add(place as u64);
            take(&number.to_be_bytes(), element);
        }
    }

    /// Rows come in the order of their numbers, without gaps.
    pub(crate) fn take_row(&mut self, sub: &[u8], value: &[u8]) -> bool {
        let Ok(number) = sub.try_into() else {
            return false;
        };
        let number = u64::from_be_bytes(number);
        if self.is_empty() {
            self.head = number;
        }
        if number != self.head.wrapping_add(self.len() as u64) {
            return false;
        }
        self.bytes += value.len();
        self.elements.push_back(value.into());
        true
    }
}
