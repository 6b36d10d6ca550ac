//! Datagrams beside ordered channels, prices of single nodes, and what a process meets after a pause.

use std::cell::RefCell;
use std::rc::Rc;

use manxdb_core::channel::Life;
use manxdb_core::{Actions, Core, Event, EventOf, LocalTime, Message, Nanos, NodeId, Weight};
use manxdb_sim::cost::Wakeup;
use manxdb_sim::{AfterPause, CostModel, Ppm, SimTime, System, World, WorldOptions};

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);

#[derive(Debug, Clone, PartialEq)]
struct Word {
    number: u64,
    datagram: bool,
}

impl Message for Word {
    fn weight(&self) -> Weight {
        Weight::Report
    }

    fn label(&self) -> &'static str {
        "word"
    }

    fn is_datagram(&self) -> bool {
        self.datagram
    }

    fn with_bit_flipped(&self, bit: u64) -> Option<Self> {
        let number = self.number ^ 1 << (32 + bit % 2);
        bit.is_multiple_of(2).then_some(Self { number, ..*self })
    }
}

type Heard = Rc<RefCell<Vec<String>>>;

/// Sends what it is asked for to [`B`], which keeps what it hears.
struct Talker {
    me: NodeId,
    heard: Heard,
}

impl Core for Talker {
    type Message = Word;
    type Timer = &'static str;
    type Request = Word;
    type Reply = ();
    type Record = ();

    fn step(&mut self, _: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        let text = match event {
            Event::Request { body, .. } => return out.send(B, body),
            Event::Start if self.me == B => return out.set_timer(Nanos::from_millis(20), "timer"),
            Event::Message { body, .. } => body.number.to_string(),
            Event::Timer(name) => name.to_string(),
            Event::Start | Event::Persisted(_) => return,
        };
        self.heard.borrow_mut().push(text);
    }

    fn check(&self) -> Result<(), String> {
        let heard = self.heard.borrow();
        manxdb_core::check::ensure(heard.len() < 10_000, || "it hears its own words".to_owned())
    }

    fn digest(&self) -> u64 {
        0
    }
}

#[derive(Default)]
struct Talkers {
    heard: Heard,
    cost: Option<CostModel>,
}

impl System for Talkers {
    type Core = Talker;

    fn start(&mut self, me: NodeId, _: Life, _: Vec<()>) -> Talker {
        let heard = self.heard.clone();
        Talker { me, heard }
    }

    fn cost(&self, node: NodeId) -> Option<CostModel> {
        self.cost.clone().filter(|_| node == B)
    }
}

fn world(options: WorldOptions, cost: Option<CostModel>) -> (World<Talkers>, Heard) {
    let heard = Heard::default();
    let system = Talkers {
        heard: heard.clone(),
        cost,
    };
    (World::new(system, options), heard)
}

fn ask(world: &mut World<Talkers>, at: u64, number: u64, datagram: bool) {
    let word = Word { number, datagram };
    let at = SimTime::from_millis(at);
    world.outside().request_at(at, A, word);
}

#[test]
fn datagrams_are_lost_and_doubled_while_channels_are_not() {
    let (mut world, heard) = world(WorldOptions::small(1, 2), None);
    world.schedule("0s+10s loss *>* 300000ppm".parse().unwrap());
    world.schedule("0s+10s duplicate *>* 300000ppm".parse().unwrap());
    for number in 0..1_000 {
        ask(&mut world, number, number, number % 2 == 0);
    }
    world.run_alone(SimTime::from_secs(9)).unwrap();
    let numbers: Vec<u64> = heard
        .borrow()
        .iter()
        .flat_map(|text| text.parse())
        .collect();
    let (even, odd): (Vec<u64>, Vec<u64>) = numbers.iter().partition(|number| *number % 2 == 0);
    assert_eq!(odd, (0..500).map(|half| half * 2 + 1).collect::<Vec<_>>());
    let mut once = even.clone();
    once.sort_unstable();
    once.dedup();
    assert!(
        once.len() < 400 && even.len() > once.len() + 50,
        "{}",
        even.len()
    );
}

#[test]
fn a_datagram_with_a_flipped_bit_is_what_its_receiver_makes_of_it() {
    let (mut world, heard) = world(WorldOptions::small(1, 2), None);
    world.schedule("0s+10s flip *>* 500000ppm".parse().unwrap());
    for number in 0..1_000 {
        ask(&mut world, 1, number, true);
        ask(&mut world, 1, number, false);
    }
    world.run_alone(SimTime::from_secs(9)).unwrap();
    let flips = world.counters().troubles()["bit flipped"];
    assert!((400..600).contains(&flips), "{flips}");
    let flipped = heard.borrow().iter().filter(|text| text.len() > 5).count() as u64;
    let dropped = 2_001 - heard.borrow().len() as u64;
    assert_eq!(flips, flipped + dropped);
    assert!(flipped > 100 && dropped > 100, "{flipped} {dropped}");
}

#[test]
fn a_datagram_waits_for_whoever_lives_there_next() {
    let (mut world, heard) = world(WorldOptions::small(1, 2), None);
    for datagram in [true, false] {
        let number = u64::from(datagram);
        ask(&mut world, 10, number, datagram);
    }
    world.schedule("10500us+100us crash n1".parse().unwrap());
    world.run_alone(SimTime::from_millis(15)).unwrap();
    assert_eq!(*heard.borrow(), ["1"]);
}

#[test]
fn a_process_that_stood_still_meets_first_what_its_driver_looks_at_first() {
    for (after_pause, expected) in [
        (AfterPause::ByTime, ["1", "timer", "2", "3"]),
        (AfterPause::DueTimers, ["timer", "1", "2", "3"]),
        (AfterPause::Arrivals, ["1", "2", "timer", "3"]),
    ] {
        let mut options = WorldOptions::small(1, 2);
        options.after_pause = after_pause;
        let (mut world, heard) = world(options, None);
        world.schedule("5ms+30ms pause n1".parse().unwrap());
        for (at, number) in [(10, 1), (24, 2), (40, 3)] {
            ask(&mut world, at, number, false);
        }
        world.run_alone(SimTime::from_millis(100)).unwrap();
        assert_eq!(*heard.borrow(), expected, "{after_pause:?}");
    }
}

#[test]
fn one_node_has_prices_of_its_own() {
    let cost = CostModel {
        report_receive: Nanos::from_micros(7),
        wakeup: Wakeup {
            usual: Nanos::from_micros(20),
            busy: Ppm(0),
            busy_mean: Nanos::ZERO,
        },
        ..CostModel::free()
    };
    let (mut world, _) = world(WorldOptions::small(1, 2), Some(cost));
    for number in 0..10 {
        ask(&mut world, 1 + number, number, true);
    }
    world.run_alone(SimTime::from_millis(15)).unwrap();
    assert_eq!(world.cpu_busy(A), Nanos::ZERO);
    assert_eq!(
        world.cpu_busy(B),
        Nanos::from_micros(70),
        "waking up is no work"
    );
}
