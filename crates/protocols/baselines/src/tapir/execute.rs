//! Runs pieces on a replica's rows as they are, and keeps what they read and would write.

use manxdb_common::pieces::touches_of_piece;
use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::TxnError;
use manxdb_txn::procedure::{RowView, ShardId, Slot, Values};
use manxdb_txn::rows::PieceRows;
use manxdb_txn::{Page, ReadSet};

use super::TapirShared;
use super::message::{Execute, Executed, Read, ReadWriteSet, Writes};
use super::store::{Store, Versions};

/// Runs pieces, and takes back what they wrote.
///
/// # Errors
/// Why one of them failed, in words; a piece that reaches beyond its touches does.
pub(super) fn execute(
    shared: &TapirShared,
    shard: ShardId,
    store: &mut Store,
    asked: &Execute,
) -> Result<Executed, String> {
    let placement = shared.placement.as_ref();
    let mut rows = PieceRows::new(&mut store.rows, placement, shard);
    for (key, value) in &asked.own {
        let written = rows.write(key.clone(), value.clone());
        written.map_err(|failure| failure.to_string())?;
    }
    let mut pieces = PiecesOnRows {
        shared,
        asked,
        versions: &store.versions,
        executed: Executed {
            sets: ReadWriteSet {
                writes: asked.own.clone(),
                ..ReadWriteSet::default()
            },
            given: asked.inputs.clone(),
        },
    };
    let mut ran = Ok(());
    for place in &asked.places {
        // Which pieces run at once follows from what they say they touch.
        let touches = touches_of_piece(&shared.procedures, &asked.planned, *place);
        rows = rows.keep_within(touches);
        ran = ran.and_then(|()| pieces.run(&mut rows, *place));
    }
    rows.undo();
    ran?;
    let mut executed = pieces.executed;
    executed
        .given
        .retain(|slot, _| !asked.inputs.contains_key(slot));
    Ok(executed)
}

struct PiecesOnRows<'a> {
    shared: &'a TapirShared,
    asked: &'a Execute,
    versions: &'a Versions,
    executed: Executed,
}

impl PiecesOnRows<'_> {
    fn run(&mut self, rows: &mut PieceRows<'_>, place: usize) -> Result<(), String> {
        let planned = &self.asked.planned;
        let procedure = self.shared.procedures.find(&planned.call.procedure);
        let procedure = procedure.map_err(|failure| failure.to_string())?;
        let piece = planned.pieces.get(place).ok_or("no such piece")?;
        let input = |slot: Slot| Some((slot, self.executed.given.get(&slot.0)?.clone()));
        let inputs: Values = piece.needs().filter_map(input).collect();
        if inputs.len() != piece.needs().count() {
            return Err("a piece ran without its inputs".into());
        }
        let sets = &mut self.executed.sets;
        sets.steps = sets.steps.saturating_add(piece.steps());
        let mut view = Recorded {
            rows,
            versions: self.versions,
            reads: &mut sets.reads,
            writes: &mut sets.writes,
        };
        let piece = piece.to_piece();
        let given = procedure.run(&piece, &planned.call.args, &inputs, &mut view);
        let given = given.map_err(|failure| failure.to_string())?;
        let as_planned = piece.gives.iter().all(|slot| given.contains_key(slot));
        if !as_planned || given.len() != piece.gives.len() {
            return Err(format!(
                "part {} gave other values than it planned",
                piece.part
            ));
        }
        let given = given.into_iter().map(|(slot, value)| (slot.0, value));
        self.executed.given.extend(given);
        Ok(())
    }
}

/// The rows of a piece; what it reads of other transactions, and what it writes, is kept.
struct Recorded<'a, 'b> {
    rows: &'a mut PieceRows<'b>,
    versions: &'a Versions,
    reads: &'a mut Vec<Read>,
    writes: &'a mut Writes,
}

impl Recorded<'_, '_> {
    fn note(&mut self, range: KeyRange) {
        let read = self.versions.read(range);
        if !self.reads.contains(&read) {
            self.reads.push(read);
        }
    }
}

impl RowView for Recorded<'_, '_> {
    fn holds(&self, key: &[u8]) -> bool {
        self.rows.holds(key)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError> {
        if !self.writes.contains_key(key) {
            self.note(KeyRange::point(key));
        }
        self.rows.get(key)
    }

    fn get_for_update(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError> {
        if !self.writes.contains_key(key) {
            self.note(KeyRange::point(key));
        }
        self.rows.get_for_update(key)
    }

    fn scan(
        &mut self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Page, TxnError> {
        let page = self.rows.scan(range, direction, limit)?;
        self.note(range_read(range, direction, limit, &page));
        Ok(page)
    }

    fn write(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> Result<(), TxnError> {
        self.rows.write(key.clone(), value.clone())?;
        self.writes.insert(key, value);
        Ok(())
    }

    fn still_true(&mut self, reads: &ReadSet) -> Result<bool, TxnError> {
        self.rows.still_true(reads)
    }
}

/// What a scan saw of the range that it was asked for: a full page ends at its last row.
fn range_read(range: &KeyRange, direction: Direction, limit: usize, page: &Page) -> KeyRange {
    let mut read = range.clone();
    if let (true, Some((last, _))) = (page.len() >= limit, page.last()) {
        let last = std::ops::Bound::Included(last.clone());
        match direction {
            Direction::Forward => read.end = last,
            Direction::Reverse => read.start = last,
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_page_reads_up_to_its_last_row() {
        let all = KeyRange::prefix(&[7]);
        let page: Page = vec![(vec![7, 1], vec![]), (vec![7, 2], vec![])];
        let read = |direction, limit| range_read(&all, direction, limit, &page);
        assert_eq!(read(Direction::Forward, 3), all);
        let forward = read(Direction::Forward, 2);
        assert!(forward.contains(&[7, 2]) && !forward.contains(&[7, 3]));
        let reverse = read(Direction::Reverse, 2);
        assert!(reverse.contains(&[7, 2]) && !reverse.contains(&[7, 1]));
    }
}
