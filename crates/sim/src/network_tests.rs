use super::*;
use crate::topology::RegionId;

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);

fn network(link: Link, transport: Transport) -> Network<u32> {
    Network::new(1, Topology::single(3, link), transport)
}

fn millis(link: u64) -> Link {
    Link::after(Nanos::from_millis(link))
}

fn send(network: &mut Network<u32>, at: SimTime, from: NodeId, to: NodeId) -> Fate {
    network.send(at, from, to, &mut Counters::default())
}

fn arrivals(network: &mut Network<u32>, count: u64) -> Vec<Fate> {
    let send = |number| send(network, SimTime::from_micros(number * 10), A, B);
    (0..count).map(send).collect()
}

#[test]
fn a_message_takes_the_delay_of_its_link_and_none_to_itself() {
    let wan = Topology::even(2, 1, millis(2), millis(50));
    let mut network: Network<u32> = Network::new(1, wan, Transport::default());
    let start = SimTime::from_secs(1);
    assert_eq!(send(&mut network, start, A, A), Fate::Arrives(start));
    let late = start + Nanos::from_millis(50);
    assert_eq!(send(&mut network, start, A, B), Fate::Arrives(late));
}

#[test]
fn jitter_stays_in_its_bounds_and_a_fifo_link_keeps_its_order() {
    let link = millis(5).with_jitter(Nanos::from_millis(1));
    let mut times = Vec::new();
    for fate in arrivals(&mut network(link, Transport::Datagram), 1_000) {
        let Fate::Arrives(at) = fate else {
            panic!("lost without loss");
        };
        times.push(at);
    }
    let spans = times.iter().enumerate();
    let spans = spans.map(|(number, at)| at.since(SimTime::from_micros(number as u64 * 10)));
    assert!(
        spans
            .clone()
            .all(|span| (4_000..=6_000).contains(&span.as_micros()))
    );
    assert!(spans.clone().any(|span| span.as_micros() < 4_050));
    assert!(spans.clone().any(|span| span.as_micros() > 5_950));
    assert!(!times.is_sorted(), "jitter reorders datagrams");

    let mut fifo = network(link, Transport::default());
    let fates = arrivals(&mut fifo, 1_000).into_iter();
    let times: Vec<_> = fates
        .map(|fate| match fate {
            Fate::Arrives(at) => at,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(times.is_sorted());
}

#[test]
fn datagrams_are_lost_and_doubled_in_the_shares_asked_for() {
    let link = Link {
        loss: Ppm::percent(20),
        duplicate: Ppm::percent(10),
        ..millis(5)
    };
    let fates = arrivals(&mut network(link, Transport::Datagram), 10_000);
    let lost = fates.iter().filter(|fate| **fate == Fate::Lost).count();
    let twice = fates
        .iter()
        .filter(|fate| matches!(fate, Fate::ArrivesTwice(..)));
    assert!((1_850..2_150).contains(&lost), "{lost}");
    let twice = twice.count();
    assert!((700..900).contains(&twice), "{twice}");
}

#[test]
fn loss_makes_a_fifo_link_late_not_lossy() {
    let link = Link {
        loss: Ppm::percent(100),
        ..millis(5)
    };
    let resend_after = Nanos::from_millis(10);
    let mut network = network(link, Transport::Fifo { resend_after });
    let at = SimTime::from_millis(5 + 16 * 10);
    assert_eq!(send(&mut network, SimTime::ZERO, A, B), Fate::Arrives(at));
}

#[test]
fn a_partition_can_be_one_way_and_holds_fifo_messages_until_its_end() {
    let mut network = network(millis(5), Transport::default());
    network.set_partitions(&[(vec![A], vec![B])]);
    assert_eq!(send(&mut network, SimTime::ZERO, A, B), Fate::Held);
    assert_ne!(send(&mut network, SimTime::ZERO, B, A), Fate::Held);
    network.hold(A, B, 1);
    network.hold(A, B, 2);
    assert_eq!(network.release(), []);
    network.set_partitions(&[]);
    assert_eq!(network.release(), [((A, B), vec![1, 2])]);
    network.hold(A, B, 3);
    assert_eq!(network.disconnect(B), 1);
    assert_eq!(network.release(), []);
}

#[test]
fn a_new_connection_does_not_wait_for_the_last_one() {
    let mut network = network(millis(5), Transport::default());
    let late = SimTime::from_secs(9);
    send(&mut network, late, A, B);
    let behind = send(&mut network, SimTime::ZERO, A, B);
    assert_eq!(behind, Fate::Arrives(late + Nanos::from_millis(5)));
    network.disconnect(A);
    let first = send(&mut network, SimTime::ZERO, A, B);
    assert_eq!(first, Fate::Arrives(SimTime::from_millis(5)));
}

#[test]
fn losses_leave_the_delays_of_other_messages_as_they_were() {
    let link = millis(5).with_jitter(Nanos::from_millis(1));
    let lossy = Link {
        loss: Ppm::percent(30),
        ..link
    };
    let whole = arrivals(&mut network(link, Transport::Datagram), 500);
    let holed = arrivals(&mut network(lossy, Transport::Datagram), 500);
    let same = |(one, other): (&Fate, &Fate)| one == other || *other == Fate::Lost;
    assert!(whole.iter().zip(&holed).all(same));
    assert!(holed.contains(&Fate::Lost));
}

#[test]
fn weather_comes_and_goes() {
    let mut network = network(millis(5), Transport::Datagram);
    network.set_weather(|topology, links| {
        links[topology.index(RegionId(0), RegionId(0))].delay += Nanos::from_millis(7);
    });
    let late = Fate::Arrives(SimTime::from_millis(12));
    assert_eq!(send(&mut network, SimTime::ZERO, A, B), late);
    network.set_weather(|_, _| {});
    let usual = Fate::Arrives(SimTime::from_millis(5));
    assert_eq!(send(&mut network, SimTime::ZERO, A, B), usual);
}
