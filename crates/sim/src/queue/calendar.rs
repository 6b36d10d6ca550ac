//! A calendar queue: a ring of buckets, each a short span of time.
//!
//! Only the bucket that is being emptied is sorted. What lies further ahead than the ring
//! reaches waits in a heap and moves into the ring as time passes. Empty buckets are skipped
//! 64 at a time over a bitmap, so that an idle cluster costs as little as a busy one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::SimTime;

/// A bucket spans 2^15 ns, about 33 µs.
const WIDTH_BITS: u32 = 15;
/// The ring has 64 × 128 buckets and spans about 268 ms: a WAN round trip fits.
const WORDS: usize = 128;
const RING: u64 = 64 * WORDS as u64;

/// When, which of those at that time, and where its payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// When it happens.
    pub at: SimTime,
    /// Counts pushes: what was pushed first happens first.
    pub seq: u64,
    /// The number of its payload.
    pub slot: u32,
}

impl Entry {
    fn bucket(self) -> u64 {
        self.at.0 >> WIDTH_BITS
    }
}

/// Entries, given back in the order of their keys.
#[derive(Debug)]
pub struct Calendar {
    /// Entries of the current bucket and earlier ones, the next one last.
    current: Vec<Entry>,
    current_bucket: u64,
    /// Buckets `current_bucket + 1 .. current_bucket + RING`, by number modulo `RING`.
    ring: Vec<Vec<Entry>>,
    /// Which of `ring` are not empty.
    occupied: [u64; WORDS],
    /// What lies beyond the ring.
    far: BinaryHeap<Reverse<Entry>>,
}

impl Default for Calendar {
    fn default() -> Self {
        Self {
            current: Vec::new(),
            current_bucket: 0,
            ring: (0..RING).map(|_| Vec::new()).collect(),
            occupied: [0; WORDS],
            far: BinaryHeap::new(),
        }
    }
}

/// The place of a bucket in the ring.
fn place(bucket: u64) -> usize {
    (bucket % RING) as usize
}

impl Calendar {
    /// Adds an entry, at any time.
    pub fn push(&mut self, entry: Entry) {
        let bucket = entry.bucket();
        if bucket <= self.current_bucket {
            let position = self.current.partition_point(|other| *other > entry);
            self.current.insert(position, entry);
        } else if bucket < self.current_bucket + RING {
            self.push_ring(entry);
        } else {
            self.far.push(Reverse(entry));
        }
    }

    /// The next entry, left where it is.
    pub fn peek(&mut self) -> Option<Entry> {
        if self.current.is_empty() {
            self.advance();
        }
        self.current.last().copied()
    }

    /// Takes the next entry.
    pub fn pop(&mut self) -> Option<Entry> {
        if self.current.is_empty() {
            self.advance();
        }
        self.current.pop()
    }

    fn push_ring(&mut self, entry: Entry) {
        let place = place(entry.bucket());
        self.occupied[place / 64] |= 1 << (place % 64);
        self.ring[place].push(entry);
    }

    /// Makes the next bucket that has entries the current one, which is empty.
    fn advance(&mut self) {
        let near = self.next_occupied();
        let far = self.far.peek().map(|Reverse(entry)| entry.bucket());
        let Some(next) = near.into_iter().chain(far).min() else {
            return;
        };
        self.current_bucket = next;
        let place = place(next);
        std::mem::swap(&mut self.current, &mut self.ring[place]);
        self.occupied[place / 64] &= !(1 << (place % 64));
        while let Some(Reverse(entry)) = self.far.peek().copied() {
            if entry.bucket() >= next + RING {
                break;
            }
            self.far.pop();
            if entry.bucket() == next {
                self.current.push(entry);
            } else {
                self.push_ring(entry);
            }
        }
        self.current.sort_unstable_by(|one, other| other.cmp(one));
    }

    /// The number of the first bucket after the current one that is not empty.
    fn next_occupied(&self) -> Option<u64> {
        let first = place(self.current_bucket + 1);
        for step in 0..=WORDS {
            let index = (first / 64 + step) % WORDS;
            let mut word = self.occupied[index];
            if step == 0 {
                word &= u64::MAX << (first % 64);
            }
            if word != 0 {
                let place = index as u64 * 64 + u64::from(word.trailing_zeros());
                let ahead = (place + RING - first as u64) % RING;
                return Some(self.current_bucket + 1 + ahead);
            }
        }
        None
    }
}
