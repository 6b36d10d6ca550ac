//! One transaction after the other, each a chain of pieces: for latencies without load.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use manxdb_common::{Answer, Ask, Level};
use manxdb_core::{Core, Nanos, NodeId, RequestId};
use manxdb_lab::why::Why;
use manxdb_sim::{Driver, Outside, SimTime, System, World};
use manxdb_storage::KeyRange;
use manxdb_txn::procedure::{
    Placement, Procedure, ProcedureError, ProcedurePiece, RowView, ShardId, Slot, Touch, Values,
};
use manxdb_workloads::Partition;

/// Writes a row on each of some shards. Arguments: pairs of a shard and the place of the piece
/// whose value it waits for, or [`NOTHING`].
pub struct Chain;

/// Waits for no value.
pub const NOTHING: u8 = 255;

impl Procedure for Chain {
    fn name(&self) -> &'static str {
        "chain"
    }
    fn plan(&self, args: &[u8], _: &dyn Placement) -> Result<Vec<ProcedurePiece>, ProcedureError> {
        let piece = |(part, pair): (u32, &[u8])| ProcedurePiece {
            part,
            shard: ShardId(pair[0].into()),
            needs: (pair[1] != NOTHING)
                .then(|| Slot(pair[1].into()))
                .into_iter()
                .collect(),
            gives: vec![Slot(part)],
            steps: 1,
        };
        Ok((0..).zip(args.chunks(2)).map(piece).collect())
    }
    fn run(
        &self,
        piece: &ProcedurePiece,
        args: &[u8],
        _: &Values,
        rows: &mut dyn RowView,
    ) -> Result<Values, ProcedureError> {
        let shard = args[piece.part as usize * 2];
        rows.write(key_of(shard), Some(vec![1]))?;
        Ok(Values::from([(Slot(piece.part), vec![1])]))
    }
    fn touches(&self, piece: &ProcedurePiece, args: &[u8]) -> Vec<Touch> {
        vec![Touch::write(&key_of(args[piece.part as usize * 2]))]
    }
}

/// The one row of a shard.
fn key_of(shard: u8) -> Vec<u8> {
    Partition(shard.into()).prefix().to_vec()
}

/// A key begins with the number of its shard.
pub struct ByPartition;

impl Placement for ByPartition {
    fn shard_of(&self, key: &[u8]) -> ShardId {
        ShardId(Partition::of(key).0)
    }
    fn shards_of(&self, _range: &KeyRange) -> Vec<ShardId> {
        Vec::new()
    }
}

/// Pieces: the shard of each, and the place of the piece whose value it waits for.
pub type Chained = &'static [(u8, u8)];

/// A call of a chain.
pub fn chain(pieces: impl IntoIterator<Item = (u8, u8)>, level: Level, home: ShardId) -> Ask {
    let pairs = pieces.into_iter().map(|(shard, needs)| [shard, needs]);
    Ask {
        procedure: "chain".into(),
        args: pairs.flatten().collect(),
        level,
        home,
    }
}

/// What a call takes that is asked in each of so many seconds, so long after it has begun: the last
/// time, and why.
pub fn last_of<S>(
    mut world: World<S>,
    client: NodeId,
    ask: Ask,
    seconds: u64,
    after: Nanos,
) -> (Nanos, Why)
where
    S: System,
    S::Core: Core<Request = Ask, Reply = Answer>,
{
    let times = (1..=seconds).map(|second| SimTime::from_secs(second) + after);
    let mut again = Again {
        client,
        ask,
        times: times.collect(),
        asked: BTreeMap::new(),
        last: None,
    };
    let until = SimTime::from_secs(seconds + 2);
    world.run_until(&mut again, until).unwrap();
    assert!(again.asked.is_empty(), "every call ends");
    again.last.unwrap()
}

/// A line of a table: a name, milliseconds, and what they went into.
pub fn line(name: &str, width: usize, (latency, why): (Nanos, Why)) -> String {
    let mut line = format!("{name:<width$} {:>8.3}", latency.as_millis_f64());
    for (reason, span) in why.parts {
        let _ = write!(line, "  {:.3} {reason}", span.as_millis_f64());
    }
    line
}

/// Asks the same again and again, at these times.
struct Again {
    client: NodeId,
    ask: Ask,
    times: Vec<SimTime>,
    asked: BTreeMap<RequestId, SimTime>,
    /// What the last one took, and why.
    last: Option<(Nanos, Why)>,
}

impl<S> Driver<S> for Again
where
    S: System,
    S::Core: Core<Request = Ask, Reply = Answer>,
{
    fn begin(&mut self, outside: &mut Outside<'_, S>) {
        for at in &self.times {
            let id = outside.request_at(*at, self.client, self.ask.clone());
            self.asked.insert(id, *at);
        }
    }

    fn reply(&mut self, outside: &mut Outside<'_, S>, _: NodeId, id: RequestId, body: Answer) {
        assert!(body.given.is_ok(), "{body:?}");
        let (asked, now) = (self.asked.remove(&id).unwrap(), outside.now());
        let steps = outside.take_steps(body.id.for_traces());
        self.last = Some((now.since(asked), Why::of(asked, now, &steps)));
    }

    fn done(&self) -> bool {
        self.last.is_some() && self.asked.is_empty()
    }
}
