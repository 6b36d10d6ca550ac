//! Many propose at once what comes after a map; some die over it, and one of the servers that
//! remember is lost.

use std::cell::RefCell;
use std::rc::Rc;

use manxdb_core::Random;
use manxdb_fabric::ServerId;
use manxdb_rsi::Event;
use manxdb_rsi::mutants::Mutant;

use crate::replicas::client_handle::{ClientHandle, REPLICAS};
use crate::replicas::cluster::TestCluster;

type MembershipEvent = Rc<RefCell<Vec<Event>>>;

async fn propose(handle: ClientHandle, number: u16, heard: MembershipEvent) {
    let event = Event::Lost(ServerId(number));
    let propose = handle.plan.epoch_log.propose(&handle.map, event).unwrap();
    if let Ok(agreed) = handle.run(propose.with(handle.mutant)).await {
        heard.borrow_mut().push(agreed);
    }
}

/// All that hear of something hear of the same, which somebody has proposed; and so does who comes
/// later.
pub fn agree(seed: u64, mutant: Option<Mutant>) {
    let mut cluster = TestCluster::slow(seed, REPLICAS, 4);
    cluster.mutant = mutant;
    let heard = MembershipEvent::default();
    let mut random = Random::stream(seed, &[13]);
    let mut proposers = Vec::new();
    for number in 0..4 {
        cluster.steps(random.below(12));
        proposers.push(cluster.client(|handle| propose(handle, number, Rc::clone(&heard))));
    }
    cluster.steps(random.below(30));
    cluster.kill(proposers[0]);
    cluster.steps(random.below(30));
    if random.below(2) == 0 {
        let archiver = u16::try_from(random.below(3)).unwrap();
        cluster.memory.lose(ServerId(archiver));
    }
    cluster.run();
    cluster.client(|handle| propose(handle, 4, Rc::clone(&heard)));
    cluster.run();
    let heard = heard.borrow();
    assert!(heard.len() >= 4, "seed {seed}: only {heard:?} was heard");
    let is_same = heard.windows(2).all(|pair| pair[0] == pair[1]);
    assert!(is_same, "seed {seed}: {heard:?}");
}

#[test]
fn all_hear_of_the_same_event() {
    for seed in 0..1_000 {
        agree(seed, None);
    }
}
