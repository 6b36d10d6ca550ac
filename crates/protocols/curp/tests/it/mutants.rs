//! Each planted defect is found, or the tests prove nothing.
//!
//! A mutant has a setting and a family of plans in which it does harm; some seed of few must show
//! it. The same settings and plans without the mutant go well. Three are found beside the code that they
//! break. No history shows two, because each operation runs once whatever else happens: a tail that is
//! not cut in `src/backup.rs`, a recovery from two witnesses in `src/master/views.rs`. Pieces of two
//! cuts (`src/copying.rs`) seldom make an image that can be read, and later writes hide what it lacks:
//! 300 seeds showed none.

use crate::common::{Setting, wrong_with};
use manxdb_core::{Nanos, Random};
use manxdb_curp::mutants::Mutant;
use manxdb_curp::options::PIECE_BYTES_MAX;
use manxdb_sim::hunt::Case;
use manxdb_sim::{Plan, SimTime};
use manxdb_test_harness::seeds;

/// Seeds in which a mutant has to be found.
const SEEDS: u64 = 300;

/// What happens to the first master while many operations are not synced.
#[derive(Debug, Clone, Copy)]
enum Harm {
    /// It stops.
    Crash,
    /// It stops, while records and their collection get lost, doubled and late.
    CrashInBadWeather,
    /// It can reach clients alone.
    CutOff,
    /// The coordinator does not hear it, and replaces it; all others do.
    Deposed,
    /// It stops; so does the next one, which reached its backups at no time.
    CrashTwice,
    /// It stands still.
    Pause,
    /// A backup stops, so that a spare is filled; while it is, or when it is, the master stops too.
    CrashInCopy,
    /// The coordinator does not hear a backup, so that a spare is filled while the view is served; some time
    /// later the master stops.
    Unheard,
    /// Its backup does not hear it for a while, in which it stops. A spare hears it.
    BackupIsDeaf,
    /// A spare stands still for longer than what it lacks is kept; then a backup stops.
    SpareLags,
    /// A spare starts, and gets a copy, while the backup does not hear the master; which then stops.
    SpareIsFilled,
}

const HARMS: [Harm; 11] = [
    Harm::Crash,
    Harm::CrashInBadWeather,
    Harm::CutOff,
    Harm::Deposed,
    Harm::CrashTwice,
    Harm::Pause,
    Harm::CrashInCopy,
    Harm::Unheard,
    Harm::BackupIsDeaf,
    Harm::SpareLags,
    Harm::SpareIsFilled,
];

impl Harm {
    /// How many crashes it needs to be survived.
    fn faults(self) -> usize {
        match self {
            Self::CrashTwice | Self::CrashInCopy => 2,
            _ => 1,
        }
    }
}

/// Seeds of runs without a defect, of each harm.
fn honest_seeds() -> u64 {
    seeds(6)
}

/// Many operations at once, on few keys, and syncs that come late.
fn busy(faults: usize) -> Setting {
    Setting {
        faults,
        until: SimTime::from_millis(600),
        think: Nanos::from_micros(1_500),
        sync_after: Nanos::from_millis(4),
        draws: true,
        reader: true,
        outstanding: 2,
        piece_bytes: PIECE_BYTES_MAX,
        ..Setting::default()
    }
}

/// Fewer operations on more keys: a deposed master has keys that are synced, and can be read.
fn calm() -> Setting {
    Setting {
        keys: 16,
        think: Nanos::from_millis(5),
        sync_after: Nanos::ZERO,
        outstanding: 3,
        ..busy(1)
    }
}

/// Copies that take long: a piece has few bytes. Of many keys, most are not written again before the end,
/// so that what a backup lacks of them stays.
fn copying() -> Setting {
    Setting {
        piece_bytes: 16,
        spares_follow: false,
        keys: 64,
        until: SimTime::from_millis(450),
        ..busy(2)
    }
}

/// Many scripts whose answers nobody got when the master stops.
fn scripted() -> Setting {
    Setting {
        clients: 6,
        sync_after: Nanos::from_millis(12),
        draws: false,
        reader: false,
        ..busy(1)
    }
}

/// Little is kept for spares, so that they get copies.
fn lagging() -> Setting {
    Setting {
        kept_bytes: 10_000,
        keys: 240,
        until: SimTime::from_millis(450),
        ..busy(1)
    }
}

fn plan(harm: Harm, setting: &Setting, seed: u64) -> Plan {
    let mut random = Random::stream(seed, &[0xBAD]);
    let at = 220_000 + random.below(100_000);
    let options = setting.options();
    let servers: Vec<String> = (0..=options.servers + options.witnesses)
        .filter(|node| *node != 1)
        .map(|node| format!("n{node}"))
        .collect();
    let servers = servers.join(",");
    let weather = "150ms+400ms loss *>* 200000ppm; 150ms+400ms duplicate *>* 300000ppm; \
                   150ms+400ms reorder *>* 200000ppm 8ms";
    // Until about when the next master opens.
    let lasts = 76 + random.below(40);
    let later = at + 250_000;
    let text = match harm {
        Harm::Crash => format!("{at}us+150ms crash n1"),
        Harm::CrashInBadWeather => format!("{at}us+150ms crash n1; {weather}"),
        Harm::CutOff => format!("{at}us+250ms part n1 {servers}"),
        Harm::Deposed => format!("{at}us+250ms cut n1 n0"),
        Harm::CrashTwice => {
            format!("{at}us+150ms crash n1; {at}us+400ms part n2 n3,n4; {later}us+150ms crash n2")
        }
        Harm::Pause => format!("{at}us+{lasts}ms pause n1"),
        Harm::CrashInCopy => {
            let then = at + 60_000 + random.below(50_000);
            format!("{at}us+400ms crash n3; {then}us+150ms crash n1")
        }
        Harm::Unheard => {
            let backup = 1 + setting.faults;
            format!("{at}us+400ms cut n{backup} n0; {later}us+150ms crash n1")
        }
        Harm::BackupIsDeaf => {
            let then = at + 30_000;
            format!("{at}us+200ms part n1 n2; {then}us+150ms crash n1")
        }
        Harm::SpareLags => {
            let then = at + 60_000;
            format!("{at}us+50ms pause n3; {then}us+400ms crash n2")
        }
        Harm::SpareIsFilled => {
            let (away, then) = (at - 130_000, at + 60_000);
            format!("150ms+{away}us crash n3; {at}us+200ms part n1 n2; {then}us+150ms crash n1")
        }
    };
    text.parse().unwrap()
}

fn wrong(setting: &Setting, harm: Harm, seed: u64) -> Option<String> {
    let plan = plan(harm, setting, seed);
    wrong_with(|| setting.run(&Case { seed, plan }))
}

#[track_caller]
fn is_found(mutant: Mutant, faults: usize, harm: Harm, known: u64) {
    let setting = match mutant {
        Mutant::NoLease => calm(),
        Mutant::PieceSkipped | Mutant::LogBeforeLastPiece | Mutant::JoinsWithoutLog => copying(),
        Mutant::GapSkipped | Mutant::AnyLogMatches => lagging(),
        Mutant::ReplaysUndeclared => scripted(),
        _ => busy(faults),
    };
    let setting = Setting {
        mutant: Some(mutant),
        ..setting
    };
    let mut seeds = (known..SEEDS).chain(0..known);
    let found = seeds.find_map(|seed| wrong(&setting, harm, seed).map(|why| (seed, why)));
    let Some((seed, why)) = found else {
        panic!("{mutant:?} was not found");
    };
    println!(
        "{mutant:?}: seed {seed}: {}",
        why.lines().next().unwrap_or_default()
    );
}

#[test]
fn without_a_defect_nothing_is_found() {
    for harm in [Harm::Deposed, Harm::Pause] {
        for seed in 0..honest_seeds() {
            assert_eq!(wrong(&calm(), harm, seed), None, "{harm:?} seed {seed}");
        }
    }
    for seed in 0..honest_seeds() {
        assert_eq!(wrong(&copying(), Harm::CrashInCopy, seed), None, "{seed}");
    }
    for harm in [Harm::SpareLags, Harm::SpareIsFilled] {
        for seed in 0..honest_seeds() {
            assert_eq!(wrong(&lagging(), harm, seed), None, "{harm:?} seed {seed}");
        }
    }
    for faults in [1, 2] {
        for harm in HARMS {
            let seeds = honest_seeds();
            if faults < harm.faults() {
                continue; // more than it survives
            }
            for seed in 0..seeds {
                let wrong = wrong(&busy(faults), harm, seed);
                assert_eq!(wrong, None, "f={faults} {harm:?} seed {seed}");
            }
        }
    }
}

macro_rules! found {
    // The last is a seed that has shown it before, tried first; others where the code has changed.
    ($($name:ident: $mutant:ident, $faults:literal, $harm:ident, $known:literal;)*) => {$(
        #[test]
        fn $name() {
            is_found(Mutant::$mutant, $faults, Harm::$harm, $known);
        }
    )*};
}

found! {
    a_witness_that_records_after_it_was_read_is_found: NoFreeze, 2, Deposed, 0;
    a_witness_that_records_what_conflicts_is_found: WitnessIgnoresConflict, 1, CrashInBadWeather, 0;
    a_collection_before_the_sync_is_found: GcBeforeSync, 1, Crash, 0;
    an_acknowledgement_in_a_replay_is_found: AckInReplay, 1, Crash, 0;
    a_backup_without_a_fence_is_found: NoEpoch, 2, Deposed, 0;
    a_client_content_with_a_quorum_is_found: QuorumInsteadOfAll, 1, CrashInBadWeather, 2;
    a_master_that_does_not_look_for_conflicts_is_found: NoConflictCheck, 1, CrashInBadWeather, 62;
    a_sync_with_one_backup_is_found: SyncOfOne, 2, CrashInBadWeather, 4;
    a_master_that_runs_twice_is_found: NoRifl, 1, CrashInBadWeather, 0;
    a_master_that_reads_without_a_lease_is_found: NoLease, 1, Deposed, 62;
    a_read_of_what_is_not_synced_is_found: ReadsUnsynced, 1, CrashInBadWeather, 51;
    an_undeclared_key_that_is_trusted_is_found: UndeclaredTrusted, 1, Crash, 40;
    a_replay_of_undeclared_keys_is_found: ReplaysUndeclared, 1, CrashInBadWeather, 172;
    a_stamp_that_is_ignored_is_found: StampIgnored, 1, Crash, 13;
    a_master_that_opens_before_its_sync_is_found: OpensBeforeSync, 2, CrashTwice, 0;
    a_master_that_replays_nothing_is_found: NoReplay, 1, Crash, 1;
    a_client_that_mixes_views_is_found: MixedViews, 1, CrashInBadWeather, 107;
    a_copy_without_one_of_its_pieces_is_found: PieceSkipped, 2, CrashInCopy, 0;
    a_log_that_follows_half_a_copy_is_found: LogBeforeLastPiece, 2, CrashInCopy, 0;
    a_backup_that_lacks_what_was_served_during_its_copy_is_found: JoinsWithoutLog, 2, Unheard, 0;
    a_spare_that_counts_as_a_backup_is_found: FollowerCounts, 1, BackupIsDeaf, 0;
    a_spare_that_becomes_master_is_found: FollowerTakesOver, 1, Crash, 0;
    a_spare_whose_log_has_a_gap_is_found: GapSkipped, 1, SpareLags, 70;
    a_log_that_is_another_masters_is_found: AnyLogMatches, 1, SpareIsFilled, 11;
}
