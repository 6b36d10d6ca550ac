//! Which servers have what, and what a loss changes of it.

use super::*;

fn map(servers: u16) -> Map {
    let servers: Vec<_> = (0..servers)
        .map(|number| (ServerId(number), 64, 4096))
        .collect();
    Map::new(&servers, 3).unwrap()
}

fn servers(map: &Map, region: usize) -> Vec<(u16, bool)> {
    let replicas = map.regions()[region].replicas().iter();
    replicas
        .map(|replica| (replica.at.server.0, replica.is_whole))
        .collect()
}

#[test]
fn primaries_take_turns_and_a_loss_moves_them_on() {
    let mut map = map(4);
    let entries = map.add(RegionKind::Entries, 512).unwrap();
    let lines = map.add(RegionKind::Lines, 512).unwrap();
    assert_eq!(
        (entries.server, lines.server),
        (ServerId(512), ServerId(513))
    );
    assert_eq!(servers(&map, 0), [(0, true), (1, true), (2, true)]);
    assert_eq!(servers(&map, 1), [(1, true), (2, true), (3, true)]);
    let next = map.after(Event::Lost(ServerId(1)));
    assert_eq!((next.epoch(), next.version()), (1, 1));
    assert_eq!(servers(&next, 0), [(0, true), (2, true), (3, false)]);
    assert_eq!(servers(&next, 1), [(2, true), (3, true), (0, true)]);
    let filled = next.after(Event::Filled(0));
    assert_eq!((filled.epoch(), filled.version()), (1, 2));
    assert_eq!(servers(&filled, 0), [(0, true), (2, true), (3, true)]);
}

#[test]
fn what_is_not_whole_is_never_a_primary() {
    let mut map = map(4);
    let at = map.add(RegionKind::Entries, 512).unwrap();
    let mut next = map;
    for lost in [0, 1, 2] {
        next = next.after(Event::Lost(ServerId(lost)));
    }
    assert_eq!(servers(&next, 0), [(3, false)]);
    assert_eq!(next.all(at), [], "what it has is not all that there was");
}

#[test]
fn what_a_map_has_no_room_for_is_refused() {
    let mut map = map(3);
    let full = MapError::Full {
        wanted: 3,
        bytes: 5000,
    };
    assert_eq!(map.add(RegionKind::Logs, 5000), Err(full));
    map.add(RegionKind::Logs, 4032).unwrap();
    assert!(map.add(RegionKind::Logs, 64).is_err());
    let region = ServerId(Map::FIRST);
    let refused = Map::new(&[(region, 0, 64)], 1);
    assert_eq!(refused, Err(MapError::NoServer(region)));
}
