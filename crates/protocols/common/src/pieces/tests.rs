use std::collections::VecDeque;

use manxdb_core::{NodeId, Random};
use manxdb_storage::KeyRange;
use manxdb_txn::procedure::{ProcedureError, ProcedurePiece, RowView, Slot};
use manxdb_txn::rows::{NoRows, run_serially};

use super::*;
use crate::call::{Call, Level};
use crate::topology::Topology;

const TOPOLOGY: Topology = Topology {
    regions: 2,
    shards_per_region: 1,
};
const NOTHING: u8 = 255;

/// Three bytes a piece: its shard, its row there, and the piece whose value it waits for. Each piece
/// appends what it was given, or its call's last byte, to its row and gives the row's length. A row
/// of number 9 fails.
struct Script;

impl Procedure for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn plan(&self, args: &[u8], _: &dyn Placement) -> Result<Vec<ProcedurePiece>, ProcedureError> {
        let piece = |(part, bytes): (u32, &[u8; 3])| ProcedurePiece {
            part,
            shard: ShardId(bytes[0].into()),
            needs: (bytes[2] != NOTHING)
                .then(|| Slot(bytes[2].into()))
                .into_iter()
                .collect(),
            gives: vec![Slot(part)],
            steps: 1,
        };
        Ok((0..).zip(args.as_chunks().0).map(piece).collect())
    }

    fn run(
        &self,
        piece: &ProcedurePiece,
        args: &[u8],
        inputs: &Values,
        rows: &mut dyn RowView,
    ) -> Result<Values, ProcedureError> {
        let bytes = args.as_chunks::<3>().0[piece.part as usize];
        if bytes[1] == 9 {
            return Err(ProcedureError::Aborted("row 9".into()));
        }
        let key = vec![bytes[0], bytes[1]];
        let mut value = rows.get(&key)?.unwrap_or_default();
        let own = vec![args[args.len() - 1]];
        value.extend(inputs.values().next().unwrap_or(&own));
        let length = vec![u8::try_from(value.len()).unwrap()];
        rows.write(key, Some(value))?;
        Ok(Values::from([(Slot(piece.part), length)]))
    }

    fn touches(&self, piece: &ProcedurePiece, args: &[u8]) -> Vec<Touch> {
        let bytes = args.as_chunks::<3>().0[piece.part as usize];
        vec![Touch::write(&bytes[..2])]
    }
}

struct ByFirstByte;

impl Placement for ByFirstByte {
    fn shard_of(&self, key: &[u8]) -> ShardId {
        ShardId(key[0].into())
    }
    fn shards_of(&self, _range: &KeyRange) -> Vec<ShardId> {
        vec![ShardId(0), ShardId(1)]
    }
}

fn planned(number: u64, args: Vec<u8>) -> Arc<Planned> {
    let pieces = Script.plan(&args, &ByFirstByte).unwrap();
    let call = Call {
        id: CallId {
            client: NodeId(9),
            number,
        },
        procedure: "script".into(),
        args,
        level: Level::Serializable,
        ended_below: 0,
    };
    Planned::new(call, NodeId(0), pieces, TOPOLOGY).unwrap()
}

fn shard(number: u32, release: Release) -> Pieces {
    let known = Registry::default();
    known.register(Arc::new(Script));
    let rows = Rows::new(Arc::new(NoRows));
    Pieces::new(
        ShardId(number),
        Arc::new(known),
        Arc::new(ByFirstByte),
        rows,
        release,
    )
}

/// A call of up to four pieces on two shards with two rows each.
fn draw(random: &mut Random, number: u64) -> Arc<Planned> {
    let count = 1 + random.below(4);
    let mut args = Vec::new();
    for part in 0..count {
        let needs = if part > 0 && random.below(2) == 0 {
            u8::try_from(random.below(part)).unwrap()
        } else {
            NOTHING
        };
        args.extend([
            u8::try_from(random.below(2)).unwrap(),
            u8::try_from(random.below(2)).unwrap(),
            needs,
        ]);
    }
    args.push(u8::try_from(number).unwrap());
    planned(number, args)
}

#[test]
fn the_rows_are_those_of_one_transaction_after_the_other_whenever_values_come() {
    for seed in 0..200 {
        for release in [Release::Transaction, Release::Piece] {
            let mut random = Random::new(seed);
            let calls: Vec<_> = (1..12).map(|number| draw(&mut random, number)).collect();
            let mut shards = [shard(0, release), shard(1, release)];
            let mut turns = [0, 1].map(|at| -> VecDeque<_> {
                let here = calls.iter().filter(|call| call.touches(ShardId(at)));
                here.cloned().collect()
            });
            let mut under_way: Vec<ForOthers> = Vec::new();
            let mut ended = 0;
            loop {
                let open: Vec<usize> = (0..2).filter(|at| !turns[*at].is_empty()).collect();
                let choices = open.len() + under_way.len();
                if choices == 0 {
                    break;
                }
                let choice = usize::try_from(random.below(choices as u64)).unwrap();
                let progress = if let Some(at) = open.get(choice) {
                    let next = turns[*at].pop_front().unwrap();
                    shards[*at].turn(next)
                } else {
                    let values = under_way.remove(choice - open.len());
                    let at = values.to.0 as usize;
                    shards[at].give(values.planned.id(), values.passed)
                };
                ended += progress.ended.len();
                under_way.extend(progress.passed);
                for shard in &shards {
                    assert_eq!(shard.check(), Ok(()), "seed {seed}");
                }
            }
            let expected: usize = calls.iter().map(|call| call.shards.len()).sum();
            assert_eq!(ended, expected, "seed {seed}, {release:?}: all have run");
            let mut rows = [(); 2].map(|()| Rows::new(Arc::new(NoRows)));
            for call in &calls {
                run_serially(&Script, &ByFirstByte, &call.call.args, &mut rows).unwrap();
            }
            for (shard, rows) in shards.iter().zip(&rows) {
                assert_eq!(
                    shard.rows().digest(),
                    rows.digest(),
                    "seed {seed}, {release:?}"
                );
            }
        }
    }
}

/// Row 0 of shard 0 with a value of shard 1, and row 1 of shard 0 without.
fn waiting() -> Arc<Planned> {
    planned(1, vec![1, 0, NOTHING, 0, 0, 0, 0, 1, NOTHING, 7])
}

#[test]
fn rows_are_held_by_the_whole_transaction_or_by_the_piece() {
    let next = planned(2, vec![0, 1, NOTHING, 8]);
    for (release, passes) in [(Release::Transaction, false), (Release::Piece, true)] {
        let mut shard = shard(0, release);
        assert_eq!(shard.turn(waiting()).ended, []);
        assert_eq!(
            shard.turn(Arc::clone(&next)).ended.len(),
            usize::from(passes)
        );
        let first = shard.obstacles().next();
        assert_eq!(first, Some((waiting().id(), Obstacle::Input)));
        if !passes {
            let second = shard.obstacles().nth(1);
            assert_eq!(second, Some((next.id(), Obstacle::Row(waiting().id()))));
        }
        let progress = shard.give(waiting().id(), vec![(0, Ok(vec![3]))]);
        assert_eq!(progress.ended.len(), 2 - usize::from(passes));
    }
}

#[test]
fn what_waits_for_a_failed_piece_fails_and_the_rest_runs() {
    let call = planned(1, vec![1, 9, NOTHING, 0, 0, 0, 0, 1, NOTHING, 7]);
    let mut other = shard(1, Release::Piece);
    let failed = other.turn(Arc::clone(&call));
    assert!(failed.ended[0].given.is_err());
    let mut here = shard(0, Release::Piece);
    here.turn(Arc::clone(&call));
    let passed = failed.passed[0].passed.clone();
    assert!(passed[0].1.is_err());
    let progress = here.give(call.id(), passed.clone());
    assert!(progress.ended[0].given.is_err());
    assert_eq!(here.rows().get(&[0, 0]), None);
    assert_eq!(here.rows().get(&[0, 1]), Some(vec![7]));
    assert_eq!(
        here.give(call.id(), passed),
        Progress::default(),
        "once more"
    );
}

#[test]
fn a_procedure_that_is_not_known_fails_in_its_turn() {
    let mut call = Planned::clone(&planned(1, vec![0, 0, NOTHING, 7]));
    call.call.procedure = "other".into();
    let progress = shard(0, Release::Transaction).turn(Arc::new(call));
    assert_eq!(
        progress.ended[0].given,
        Err("unknown procedure other".into())
    );
}
