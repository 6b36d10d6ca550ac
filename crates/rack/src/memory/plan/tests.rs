//! Where everything lies, and where it lies after a loss.

use manxdb_rsi::Event;

use super::super::geometry::tests::GEOMETRY;
use super::*;

fn thread(number: u16) -> ThreadId {
    ThreadId::new(number).unwrap()
}

#[test]
fn nothing_lies_over_anything_else() {
    let plan = Plan::of(GEOMETRY).unwrap();
    let client_slots = plan.client_slots().bytes();
    const { assert!(NEXT + WORD <= TABLES) };
    let vector = plan.vector.bytes();
    let log = |number: u16| {
        let server = number % GEOMETRY.servers;
        plan.log_here(server, thread(number)).unwrap()
    };
    assert!(plan.table.offset + client_slots + vector <= log(0));
    for number in 1..GEOMETRY.places {
        assert!(log(number - 1) + GEOMETRY.log_bytes <= log(number));
    }
    let root = plan.keyspace.tree.root().address().offset;
    assert!(log(GEOMETRY.places - 1) + GEOMETRY.log_bytes <= root);
    assert!(matches!(plan.unused, UnusedMemory::Servers(begin) if begin > root));
}

#[test]
fn each_log_has_its_copies() {
    for replicas in [1, 2] {
        let geometry = Geometry {
            replicas,
            ..GEOMETRY
        };
        let plan = Plan::of(geometry).unwrap();
        for number in 0..GEOMETRY.places {
            let has = |server: &u16| plan.log_here(*server, thread(number)).is_some();
            assert_eq!((0..GEOMETRY.servers).filter(has).count(), 2);
        }
        assert_eq!(plan.ward(plan.chart()).logs.len(), 8);
    }
}

/// Bytes that a server's regions end behind.
fn ends(map: &Map) -> Vec<u64> {
    let end = |server: ServerId| {
        let regions = map.regions().iter();
        let ends = regions.flat_map(|region| {
            let here = region.replicas().iter();
            let here = here.filter(move |replica| replica.at.server == server);
            here.map(|replica| replica.at.offset + region.bytes())
        });
        ends.max().unwrap_or(0)
    };
    map.servers().map(end).collect()
}

#[test]
fn after_one_loss_every_region_has_its_replicas_again() {
    for (servers, replicas) in [(4, 3), (5, 3), (3, 2), (8, 3), (20, 4)] {
        let geometry = Geometry {
            servers,
            replicas,
            log_copies: replicas,
            bytes: 256 << 20,
            places: 30,
            ..GEOMETRY
        };
        let plan = Plan::of(geometry).unwrap();
        let (_, map) = plan.first.unwrap();
        let UnusedMemory::ChunkRegions(chunk_regions) = plan.unused else {
            panic!("it has chunk regions");
        };
        for lost in map.servers() {
            let next = map.after(Event::Lost(lost));
            let has_all = |region: &manxdb_rsi::ReplicatedRegion| {
                region.replicas().len() == usize::from(replicas)
            };
            assert!(next.regions().iter().all(has_all), "{servers} {replicas}");
            assert!(ends(&next).iter().all(|end| *end <= geometry.bytes));
        }
        // What is left to no region is not much more than the share of one server.
        let records = chunk_regions.records.len() as u64 * chunk_regions.chunks * Chunk::RECORDS;
        let all = records * bytes(plan.keyspace.records)
            + records / Chunk::RECORDS * Chunk::NODES * bytes(plan.keyspace.tree.layout());
        let used = all * u64::from(replicas) / u64::from(servers - 1);
        assert!(used * 2 > geometry.bytes, "{servers} {replicas}: {used}");
    }
}

#[test]
fn where_all_servers_have_all_nothing_is_left_over() {
    let geometry = Geometry {
        replicas: 3,
        log_copies: 3,
        bytes: 64 << 20,
        ..GEOMETRY
    };
    let plan = Plan::of(geometry).unwrap();
    let (_, map) = plan.first.unwrap();
    let ends = ends(&map);
    assert!(
        ends.iter().all(|end| *end > geometry.bytes / 10 * 8),
        "{ends:?}"
    );
    let next = map.after(Event::Lost(ServerId(1)));
    assert!(
        next.regions()
            .iter()
            .all(|region| region.replicas().len() == 2)
    );
}
