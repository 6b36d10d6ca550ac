//! What databases were given is remembered while control planes come and go: bursts beside a greedy
//! database, in the simulator.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::common::{Load, Pool, Shape};
use manxdb_core::{NodeId, RequestId};
use manxdb_jobs::client::Answer;
use manxdb_jobs::job::{Facts, Spec};
use manxdb_jobs::mutants::Mutant;
use manxdb_jobs::node::NodeAnswer;
use manxdb_sim::{Driver, Outside, SimTime, World};

const SHAPE: Shape = Shape {
    workers: 12,
    databases: 5,
    slots: 1, // none is kept for level 0
};
/// From when on, and until when, the others have much to do,
const FROM: SimTime = SimTime::from_secs(40);
const UNTIL: SimTime = SimTime::from_secs(60);
/// each so many jobs at a time.
const JOBS: u32 = 8;
const WAKE: u64 = 1 << 61;

/// One database asks for more than there is, all the time; the others for a while.
struct Bursts(Load);

impl Bursts {
    fn others() -> impl Iterator<Item = NodeId> {
        (1..SHAPE.databases).map(|place| SHAPE.database(place))
    }

    /// A job that does not relieve level 0.
    fn ask(&mut self, outside: &mut Outside<'_, Pool>, node: NodeId) {
        let facts = Facts {
            start_level: 5,
            bytes: 64 << 20,
            ..Facts::default()
        };
        let input = (self.0.asked.len() as u64).to_be_bytes().to_vec().into();
        self.0.submit(outside, node, Spec { facts, input });
    }

    /// MiB that the pool has done meanwhile for the greedy one, and for the others.
    fn done(&self) -> (u64, u64) {
        let (mut greedy, mut others) = (0, 0);
        for one in &self.0.asked {
            let meanwhile = |at: &SimTime| (FROM..UNTIL).contains(at);
            let done = matches!(&one.answer, Some((at, Answer::Done { .. })) if meanwhile(at));
            if done {
                let is_greedy = Some(one.node) == self.0.greedy;
                let whose = if is_greedy { &mut greedy } else { &mut others };
                *whose += one.spec.facts.bytes >> 20;
            }
        }
        (greedy, others)
    }
}

impl Driver<Pool> for Bursts {
    fn begin(&mut self, outside: &mut Outside<'_, Pool>) {
        self.0.begin(outside);
        outside.wake_at(FROM, WAKE);
    }

    fn reply(
        &mut self,
        outside: &mut Outside<'_, Pool>,
        node: NodeId,
        id: RequestId,
        body: NodeAnswer,
    ) {
        let wants_more = matches!(body, NodeAnswer::Client(_))
            && Self::others().any(|other| other == node)
            && (FROM..UNTIL).contains(&outside.now());
        self.0.reply(outside, node, id, body);
        if wants_more {
            self.ask(outside, node);
        }
    }

    fn wake(&mut self, outside: &mut Outside<'_, Pool>, key: u64) {
        if key != WAKE {
            return self.0.wake(outside, key);
        }
        for node in Self::others() {
            for _ in 0..JOBS {
                self.ask(outside, node);
            }
        }
    }

    fn crashed(&mut self, outside: &mut Outside<'_, Pool>, node: NodeId) {
        self.0.crashed(outside, node);
    }

    fn restarted(&mut self, outside: &mut Outside<'_, Pool>, node: NodeId) {
        self.0.restarted(outside, node);
    }
}

/// The greedy one's share of all that the pool does while the others have much to do, in percent.
fn share_of_the_greedy(restarts: &[&str], mutant: Option<Mutant>) -> u64 {
    let mut pool = Pool::new(SHAPE, 5);
    pool.options.mutant = mutant;
    let mut world = World::new(pool, SHAPE.world(5));
    for restart in restarts {
        world.schedule(restart.parse().unwrap());
    }
    let mut load = Load::new(SHAPE, UNTIL);
    load.gap = 12.0;
    load.greedy = Some(SHAPE.database(0));
    let mut load = Bursts(load);
    world.run_until(&mut load, SimTime::from_secs(100)).unwrap();
    assert_eq!((load.0.problems.len(), load.0.open()), (0, 0));
    let (greedy, others) = load.done();
    assert!(others > 5_000, "{others} MiB for the others");
    greedy * 100 / (greedy + others)
}

#[test]
fn a_greedy_database_gains_nothing_by_restarts_of_the_control_plane() {
    let restarts = [
        "39s+300ms crash n0",
        "44s+300ms crash n0",
        "49s+300ms crash n0",
        "54s+300ms crash n0",
    ];
    let calm = share_of_the_greedy(&[], None);
    let restarted = share_of_the_greedy(&restarts, None);
    let forgetful = share_of_the_greedy(&restarts, Some(Mutant::ForgetsAccounts));
    assert!(
        calm < 10 && restarted < 10,
        "{calm} %, with restarts {restarted} %"
    );
    assert!(forgetful > 25, "{forgetful} %: nothing is shown");
}
