//! What a node does with rows that have met: divides them until tables fit a cache, and joins.

use std::ops::Range;

use crate::error::OlapError;
use crate::hash::{hash, share, slot};
use crate::rows::{Key, Rows};

/// Rows by partition.
pub(super) struct Divided {
    /// All of them.
    pub rows: Rows,
    /// Where each partition begins, and the last ends.
    starts: Vec<usize>,
}

impl Divided {
    /// The places of a partition's rows.
    pub fn part(&self, part: usize) -> Range<usize> {
        match self.starts.get(part..=part + 1) {
            Some([start, end]) => *start..*end,
            _ => 0..0,
        }
    }
}

/// Divides rows of one of so many shares into so many partitions: counts them first, so that each
/// row is copied once.
///
/// # Errors
/// [`OlapError::Partition`]: they cannot be divided so finely.
pub(super) fn divide(rows: &Rows, shares: usize, parts: usize) -> Result<Divided, OlapError> {
    let all = shares.checked_mul(parts).filter(|all| *all > 0);
    let all = all.ok_or(OlapError::Partition(rows.len()))?;
    let part_of = |row: &[u8]| share(hash(Key::of(row)), all) % parts;
    let mut starts = vec![0; parts + 1];
    for row in rows {
        starts[part_of(row) + 1] += 1;
    }
    for part in 0..parts {
        starts[part + 1] += starts[part];
    }
    let mut next = starts.clone();
    let mut divided = Rows::zeroed(rows.width(), rows.len());
    for row in rows {
        let place = &mut next[part_of(row)];
        divided.set(*place, row);
        *place += 1;
    }
    let rows = divided;
    Ok(Divided { rows, starts })
}

/// Rows by their keys. Those of one slot are a chain; its links are numbers of rows from 1 on.
pub(super) struct Table<'a> {
    rows: &'a Rows,
    first: usize,
    heads: Vec<u32>,
    links: Vec<u32>,
}

impl<'a> Table<'a> {
    /// Of the rows at these places.
    ///
    /// # Errors
    /// [`OlapError::Partition`]: there are more than links can name.
    pub fn of(rows: &'a Rows, places: Range<usize>) -> Result<Self, OlapError> {
        let count = places.len();
        if u32::try_from(count).is_err() {
            return Err(OlapError::Partition(count));
        }
        let slots = count.next_power_of_two();
        let mut table = Self {
            rows,
            first: places.start,
            heads: vec![0; slots],
            links: vec![0; count],
        };
        for (place, number) in places.zip(1..) {
            let slot = slot(hash(Key::of(rows.get(place))), slots - 1);
            let head = &mut table.heads[slot];
            table.links[place - table.first] = *head;
            *head = number;
        }
        Ok(table)
    }

    /// Calls a function for every row of its own and every one of these that have equal keys.
    pub fn probe<'b>(
        &self,
        rows: impl Iterator<Item = &'b [u8]>,
        each: &mut impl FnMut(&[u8], &[u8]),
    ) {
        for row in rows {
            let key = Key::of(row);
            let mut link = self.heads[slot(hash(key), self.heads.len() - 1)];
            while let Some(place) = link.checked_sub(1) {
                let place = usize::try_from(place).unwrap_or(usize::MAX);
                let own = self.rows.get(self.first + place);
                if Key::of(own) == key {
                    each(own, row);
                }
                link = self.links[place];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Width;

    fn rows(keys: impl IntoIterator<Item = u32>) -> Rows {
        let mut rows = Rows::new(Width::new(8).unwrap());
        for (number, key) in (0_u32..).zip(keys) {
            rows.push(Key(key), &number.to_le_bytes());
        }
        rows
    }

    #[test]
    fn a_division_keeps_every_row_and_the_keys_of_a_partition_together() {
        let all = rows((0..1_000).chain(0..1_000));
        let divided = divide(&all, 1, 7).unwrap();
        let mut seen = std::collections::BTreeMap::new();
        for part in 0..7 {
            for place in divided.part(part) {
                let key = Key::of(divided.rows.get(place));
                assert_eq!(*seen.entry(key).or_insert(part), part);
            }
        }
        assert_eq!(seen.len(), 1_000);
        assert_eq!(divided.part(6).end, 2_000);
        assert!(divided.part(7).is_empty());
        assert!(divide(&all, usize::MAX, 2).is_err());
    }

    #[test]
    fn a_table_finds_all_rows_of_a_key_within_its_places() {
        let own = rows([5, 1, 5, 5, 2, 5]);
        let table = Table::of(&own, 1..5).unwrap();
        let mut found = Vec::new();
        let asked = rows([5, 9, 1]);
        table.probe(asked.iter(), &mut |own, row| {
            found.push((Key::of(own), own[4], row[4]));
        });
        found.sort_unstable();
        assert_eq!(found, [(Key(1), 1, 2), (Key(5), 2, 0), (Key(5), 3, 0)]);
        let none = rows([]);
        let empty = Table::of(&none, 0..0).unwrap();
        empty.probe(asked.iter(), &mut |_, _| panic!("nothing is there"));
    }
}
