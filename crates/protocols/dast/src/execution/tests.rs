//! Deferred pieces of one shard: what ends them, and what a transaction gives before they have run.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use manxdb_core::NodeId;
use manxdb_txn::procedure::{
    OneShard, Placement, Procedure, ProcedureError, ProcedurePiece, Registry, RowView, ShardId,
    Slot, Touch, Values,
};
use manxdb_txn::rows::{NoRows, Rows};

use super::{Execution, Progress};
use crate::call::{Call, CallId, Level, Planned};
use crate::timestamp::Timestamp;
use crate::topology::Topology;

const HERE: ShardId = ShardId(0);
const OTHER: ShardId = ShardId(1);
const ROW: &[u8] = b"row";
/// What the other shard gives.
const INPUT: Slot = Slot(7);

/// Appends its argument to the row: after the value of the other shard (`w`), at once and telling
/// nothing (`b`), or telling what it found (`r`).
struct AppendTo;

impl Procedure for AppendTo {
    fn name(&self) -> &'static str {
        "append to"
    }

    fn plan(&self, args: &[u8], _: &dyn Placement) -> Result<Vec<ProcedurePiece>, ProcedureError> {
        let waits = args[0] == b'w';
        let tells = args[0] == b'r';
        let piece = |part, shard, needs: &[Slot], gives: &[Slot]| ProcedurePiece {
            part,
            shard,
            needs: needs.to_vec(),
            gives: gives.to_vec(),
            steps: 1,
        };
        let (input, found) = ([INPUT], [Slot(0)]);
        Ok(vec![
            piece(1, OTHER, &[], if waits { &input } else { &[] }),
            piece(
                0,
                HERE,
                if waits { &input } else { &[] },
                if tells { &found } else { &[] },
            ),
        ])
    }

    fn run(
        &self,
        _piece: &ProcedurePiece,
        args: &[u8],
        _inputs: &Values,
        rows: &mut dyn RowView,
    ) -> Result<Values, ProcedureError> {
        let found = rows.get(ROW)?.unwrap_or_default();
        let mut longer = found.clone();
        longer.push(args[0]);
        rows.write(ROW.to_vec(), Some(longer))?;
        let tells = args[0] == b'r';
        Ok(tells.then_some((Slot(0), found)).into_iter().collect())
    }

    fn touches(&self, _: &ProcedurePiece, _: &[u8]) -> Vec<Touch> {
        vec![Touch::write(ROW)]
    }

    fn predetermined(&self, _: &ProcedurePiece, args: &[u8]) -> Option<Values> {
        (args[0] == b'b').then(Values::new)
    }
}

/// A shard on which the first transaction waits for the other shard, and a second one, which does
/// what `second` says, comes behind it on the same row.
fn behind_one_that_waits(second: u8) -> (Execution, Progress, CallId, CallId) {
    let procedures = Registry::default();
    procedures.register(Arc::new(AppendTo));
    let mut execution = Execution::new(
        HERE,
        Arc::new(procedures),
        Arc::new(OneShard),
        Rows::new(Arc::new(NoRows)),
        true,
    );
    let topology = Topology {
        regions: 2,
        shards_per_region: 1,
    };
    let mut progress = Progress::default();
    let mut ids = [1, 2].map(|number| CallId {
        client: NodeId(9),
        number,
    });
    for (id, what) in ids.iter_mut().zip([b'w', second]) {
        let call = Call {
            id: *id,
            procedure: AppendTo.name().into(),
            args: vec![what],
            level: Level::Serializable,
            ended_below: 0,
        };
        let pieces = AppendTo.plan(&call.args, &OneShard).unwrap();
        let planned = Planned::new(call, NodeId(0), pieces, topology).unwrap();
        let at = Timestamp {
            micros: id.number,
            stretch: 0,
            site: 0,
        };
        execution.insert(at, planned, true);
        progress = execution.run(at);
    }
    let [first, second] = ids;
    (execution, progress, first, second)
}

fn row(execution: &Execution) -> Vec<u8> {
    execution.rows().get(ROW).unwrap_or_default()
}

#[test]
fn a_blind_update_is_answerable_before_the_row_is_free_and_runs_in_its_place() {
    let (mut execution, progress, first, second) = behind_one_that_waits(b'b');
    let answerable: Vec<CallId> = progress.answerable.iter().map(|it| it.id).collect();
    assert_eq!(answerable, [second]);
    assert_eq!(execution.answer(second).unwrap().given, Ok(Vec::new()));
    assert!(execution.answer(first).is_none());
    assert_eq!(row(&execution), b"", "neither has run");

    execution.give(first, OTHER, Ok(vec![(INPUT.0, Vec::new())]));
    let progress = execution.run(Timestamp::ZERO);
    assert_eq!(progress.ended.len(), 2);
    assert!(progress.answerable.is_empty(), "it is said once");
    assert_eq!(row(&execution), b"wb");
}

#[test]
fn an_update_that_tells_what_it_found_is_not() {
    let (mut execution, progress, first, second) = behind_one_that_waits(b'r');
    assert!(progress.answerable.is_empty());
    assert!(execution.answer(second).is_none());
    execution.give(first, OTHER, Ok(vec![(INPUT.0, Vec::new())]));
    execution.run(Timestamp::ZERO);
    let given = execution.answer(second).unwrap().given;
    assert_eq!(given, Ok(vec![(0, b"w".to_vec())]));
}

#[test]
fn a_failure_elsewhere_ends_only_pieces_that_wait_for_that_shard() {
    // Only the coordinator's replica hears of it: a piece that needs nothing of that shard must run
    // on all replicas alike.
    let (mut execution, _, first, second) = behind_one_that_waits(b'r');
    execution.give(second, OTHER, Err("refused".into()));
    execution.give(first, OTHER, Ok(vec![(INPUT.0, Vec::new())]));
    execution.run(Timestamp::ZERO);
    assert_eq!(row(&execution), b"wr");

    let (mut execution, _, first, second) = behind_one_that_waits(b'r');
    execution.give(first, OTHER, Err("refused".into()));
    execution.run(Timestamp::ZERO);
    assert_eq!(row(&execution), b"r");
    assert_eq!(
        execution.answer(first).unwrap().given,
        Err("refused".into())
    );
    assert!(execution.answer(second).is_some());
}
