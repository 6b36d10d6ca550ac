//! Spares that follow the log before they are needed: what a failure costs with them and without.

use manxdb_core::{Nanos, NodeId};
use manxdb_curp::Durability;
use manxdb_sim::{SimTime, World};

use crate::common::{Cluster, Load, Setting, plan};

/// The first master, its backup, and the spare.
const MASTER: NodeId = NodeId(1);
const BACKUP: NodeId = NodeId(2);
const SPARE: NodeId = NodeId(3);

/// A copy takes long: a piece has few bytes of many keys.
fn setting(spares_follow: bool) -> Setting {
    Setting {
        piece_bytes: 4,
        keys: 240,
        clients: 4,
        reader: true,
        think: Nanos::from_millis(4),
        until: SimTime::from_millis(3_000),
        spares_follow,
        ..Setting::default()
    }
}

/// The view in use: its master, and whether the spare is in it.
fn view(world: &World<Cluster>) -> Option<(NodeId, bool)> {
    let coordinator = world.core(NodeId(0))?.coordinator()?;
    let config = coordinator.config()?;
    let mut backups = config.backups.iter();
    Some((
        config.master.node,
        backups.any(|member| member.node == SPARE),
    ))
}

/// Pieces of copies that a server has sent as a master, and the bytes in them.
fn copied(world: &World<Cluster>, server: NodeId) -> (u64, u64) {
    let server = world.core(server).and_then(|node| node.server());
    let counts = server.and_then(manxdb_curp::server::Server::counts);
    counts.map_or((0, 0), |counts| (counts.pieces, counts.copied_bytes))
}

/// What the master knows that a spare lacks; nothing when it does not follow.
fn lag(world: &World<Cluster>, spare: NodeId) -> Option<u64> {
    let (master, _) = view(world)?;
    let followers = world.core(master)?.server()?.followers()?;
    let found = followers.iter().find(|(node, _)| *node == spare)?;
    found.1
}

fn answers(load: &Load) -> usize {
    load.completions.values().sum()
}

/// What it took to replace a process.
#[derive(Debug)]
struct Replaced {
    /// Entries of the log that the spare had not applied when the process failed.
    lacked: u64,
    /// Pieces of the copy, and bytes.
    copied: (u64, u64),
    /// From the failure until the spare was in the view in use.
    took: Nanos,
}

/// A process fails a second after the beginning, and the spare comes into the view.
fn replaced(setting: &Setting, failed: NodeId) -> Replaced {
    let mut world = setting.world(3);
    world.schedule_all(&plan(&format!("1s+3s crash n{}", failed.0)));
    let mut load = Load::new(*setting);
    let at = SimTime::from_micros(999_999);
    world.run_until(&mut load, at).unwrap();
    assert_eq!(view(&world), Some((MASTER, false)));
    let applied = |node| {
        let server = world.core(node).and_then(|node| node.server());
        server.map_or(0, |server| server.applied().0)
    };
    let lacked = applied(BACKUP).saturating_sub(applied(SPARE));
    let master = if failed == MASTER { BACKUP } else { MASTER };
    let before = copied(&world, master);
    let mut now = at;
    while view(&world) != Some((master, true)) {
        now = now + Nanos::from_micros(250);
        assert!(now < SimTime::from_millis(2_900), "the spare is not used");
        world.run_until(&mut load, now).unwrap();
    }
    let after = copied(&world, master);
    Replaced {
        lacked,
        copied: (after.0 - before.0, after.1 - before.1),
        took: now.since(at),
    }
}

#[test]
fn a_spare_that_followed_needs_no_copy_when_a_backup_or_the_master_fails() {
    for failed in [BACKUP, MASTER] {
        let (with, without) = (
            replaced(&setting(true), failed),
            replaced(&setting(false), failed),
        );
        println!("n{} fails: {with:?}; nobody follows: {without:?}", failed.0);
        assert_eq!(with.copied, (0, 0), "{with:?}");
        assert!(with.lacked < 50, "{with:?}");
        assert!(without.copied.0 > 100, "{without:?}");
        assert!(without.lacked > 400, "{without:?}");
        // The failure is noticed after 60 ms, whoever follows.
        assert!(
            with.took + Nanos::from_millis(50) < without.took,
            "{with:?} {without:?}"
        );
    }
}

/// Answers in half a second in which the spare stands still, or does not.
fn answers_while(text: &str) -> (usize, World<Cluster>) {
    let setting = Setting {
        kept_bytes: 10_000,
        ..setting(true)
    };
    let mut world = setting.world(5);
    world.schedule_all(&plan(text));
    let mut load = Load::new(setting);
    let begin = SimTime::from_millis(1_000);
    world.run_until(&mut load, begin).unwrap();
    let before = answers(&load);
    assert!(lag(&world, SPARE).is_some_and(|lacks| lacks < 20), "{text}");
    let end = begin + Nanos::from_millis(500);
    world.run_until(&mut load, end).unwrap();
    let during = answers(&load) - before;
    let later = end + Nanos::from_millis(500);
    world.run_until(&mut load, later).unwrap();
    (during, world)
}

#[test]
fn nobody_waits_for_a_spare_that_stands_still_and_it_gets_a_copy_later() {
    let (alone, world) = answers_while("");
    assert_eq!(copied(&world, MASTER), (0, 0), "the log was enough");
    // It is out of reach of the master alone, too: then it is still to follow.
    for text in ["1s+500ms pause n3", "1s+500ms part n1 n3"] {
        let (during, world) = answers_while(text);
        assert!(during * 20 > alone * 19, "{during} of {alone}: {text}");
        assert_eq!(view(&world), Some((MASTER, false)), "{text}");
        assert!(copied(&world, MASTER).0 > 0, "more than was kept: {text}");
        assert!(lag(&world, SPARE).is_some_and(|lacks| lacks < 20), "{text}");
    }
}

#[test]
fn a_backup_that_starts_again_goes_on_from_its_disk() {
    let setting = Setting {
        durability: Durability::Fsync,
        spares: 0,
        ..setting(true)
    };
    let mut world = setting.world(3);
    // Shorter than what is kept for it, and there is nobody else.
    world.schedule_all(&plan("1s+100ms crash n2"));
    let mut load = Load::new(setting);
    world
        .run_until(&mut load, SimTime::from_millis(1_050))
        .unwrap();
    let before = answers(&load);
    world
        .run_until(&mut load, SimTime::from_millis(1_200))
        .unwrap();
    assert!(answers(&load) > before + 20, "the next view is in use");
    assert_eq!(copied(&world, MASTER), (0, 0));
}
