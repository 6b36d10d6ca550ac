//! What was written lately, and whether a read set meets it.

use super::*;

fn recent_with(writes: &[(u64, &str)]) -> Recent {
    let mut recent = Recent::new(Version(1), 1 << 20);
    for (version, key) in writes {
        recent.stage(Version(*version), key.as_bytes(), &mut Undo::default());
    }
    recent
}

#[test]
fn an_index_that_misses_a_write_is_found_out() {
    type Fault = fn(&mut Recent);
    let faults: [(Fault, &str); 6] = [
        (|it| drop(it.last.pop_first()), "1 keys are noted of 2"),
        (|it| drop(it.log.pop_back()), "2 keys are noted of 1"),
        (|it| it.log.swap(0, 1), "in the order of their versions"),
        (|it| it.floor = Version(2), "forgotten"),
        (|it| it.bytes += 1, "bytes are counted"),
        (|it| it.runs.swap(0, 1), "runs are in order"),
    ];
    for (fault, name) in faults {
        let mut recent = recent_with(&[(2, "a"), (5, "b")]);
        for version in [6, 7] {
            let run = KeyRun::pack(Version(version), [(&b"c"[..], Version(version))]);
            recent.bytes += run.size_bytes();
            recent.runs.push_back(run);
        }
        assert_eq!(recent.check(), Ok(()));
        fault(&mut recent);
        let found = recent.check().unwrap_err();
        assert!(found.contains(name), "{found}");
    }
}

#[test]
fn a_read_before_the_last_write_has_changed() {
    let recent = recent_with(&[(2, "a"), (5, "a")]);
    assert!(recent.key_changed(b"a", Version(4)));
    assert!(!recent.key_changed(b"a", Version(5)));
    assert!(!recent.key_changed(b"b", Version(1)));
}

#[test]
fn a_range_changes_with_any_key_inside_and_none_outside() {
    let recent = recent_with(&[(2, "b"), (5, "d")]);
    let range = |start: &str, end: &str| KeyRange {
        start: Bound::Included(start.into()),
        end: Bound::Excluded(end.into()),
    };
    assert!(recent.range_changed(&range("a", "c"), Version(1)));
    assert!(!recent.range_changed(&range("a", "c"), Version(2)));
    assert!(!recent.range_changed(&range("c", "d"), Version(1)));
    assert!(!recent.range_changed(&range("d", "d"), Version(1)));
    assert!(!recent.range_changed(&range("z", "a"), Version(1)));
    assert!(recent.range_changed(&KeyRange::prefix(b"d"), Version(4)));
}

#[test]
fn taking_back_restores_the_state_before() {
    let mut recent = recent_with(&[(2, "a")]);
    let mut undo = Undo::default();
    recent.stage(Version(3), b"a", &mut undo);
    recent.stage(Version(3), b"b", &mut undo);
    recent.stage(Version(4), b"a", &mut undo);
    recent.take_back(undo);
    assert!(!recent.key_changed(b"a", Version(2)));
    assert!(recent.key_changed(b"a", Version(1)));
    assert!(!recent.key_changed(b"b", Version(1)));
    assert_eq!(recent.len(), 1);
    assert_eq!(recent.bytes, 1 + ENTRY_OVERHEAD_BYTES);
}

#[test]
fn trimming_forgets_only_what_no_snapshot_needs() {
    let mut recent = recent_with(&[(2, "a"), (3, "b"), (4, "a"), (6, "c")]);
    recent.trim(Version(4), Version(6));
    assert_eq!(recent.len(), 1);
    assert!(!recent.key_changed(b"a", Version(4)));
    assert!(recent.key_changed(b"a", Version(3)));
    assert!(recent.key_changed(b"c", Version(5)));
}

#[test]
fn past_the_byte_limit_old_snapshots_count_as_changed() {
    let mut recent = Recent::new(Version(0), 4 * (ENTRY_OVERHEAD_BYTES + 2));
    for version in 1..=10 {
        recent.stage(Version(version), &[0, 7], &mut Undo::default());
    }
    recent.trim(Version(0), Version(10));
    assert_eq!(recent.len(), 4);
    assert!(recent.key_changed(b"never written", Version(5)));
    assert!(!recent.key_changed(b"never written", Version(6)));
}

type Writes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

fn rows(numbers: impl IntoIterator<Item = u64>) -> Writes {
    let row = |number: u64| (number.to_be_bytes().to_vec(), None);
    numbers.into_iter().map(row).collect()
}

fn read(points: impl IntoIterator<Item = u64>, since: u64) -> ReadSet {
    let keys: Vec<_> = points.into_iter().map(u64::to_be_bytes).collect();
    let keys = keys.iter().map(|key| (key.as_slice(), Version(since)));
    ReadSet {
        points: crate::keys::ReadPoints::new(Vec::new(), vec![KeyRun::pack(Version(since), keys)]),
        ranges: Vec::new(),
    }
}

#[test]
fn a_large_commit_is_packed_and_validates_like_single_writes() {
    let mut recent = Recent::new(Version(1), 1 << 20);
    let large = PACKED_WRITES_MIN as u64;
    recent.stage(Version(2), &4_u64.to_be_bytes(), &mut Undo::default());
    recent.stage_all(
        Version(3),
        &rows((0..large).map(|row| row * 2)),
        &mut Undo::default(),
    );
    assert!(recent.key_changed(&6_u64.to_be_bytes(), Version(2)));
    assert!(!recent.key_changed(&6_u64.to_be_bytes(), Version(3)));
    assert!(!recent.key_changed(&7_u64.to_be_bytes(), Version(1)));
    let range = |low: u64, high: u64| KeyRange {
        start: Bound::Excluded(low.to_be_bytes().to_vec()),
        end: Bound::Excluded(high.to_be_bytes().to_vec()),
    };
    assert!(recent.range_changed(&range(6, 9), Version(2)));
    assert!(!recent.range_changed(&range(6, 8), Version(1)));
    assert!(recent.first_change(&read([5, 8], 2)).is_some());
    assert!(recent.first_change(&read([5, 7], 1)).is_none());
    assert!(recent.first_change(&read([4, 5], 3)).is_none());
    let mut undo = Undo::default();
    recent.stage_all(Version(4), &rows(0..large), &mut undo);
    assert!(recent.key_changed(&7_u64.to_be_bytes(), Version(3)));
    recent.take_back(undo);
    assert!(!recent.key_changed(&7_u64.to_be_bytes(), Version(1)));
    recent.trim(Version(3), Version(3));
    assert_eq!((recent.len(), recent.bytes), (0, 0));
}

#[test]
fn many_reads_are_checked_against_few_writes_and_few_reads_against_many() {
    let mut recent = Recent::new(Version(1), 1 << 20);
    for row in 0..100_u64 {
        recent.stage(
            Version(row + 2),
            &(row * 3).to_be_bytes(),
            &mut Undo::default(),
        );
    }
    for (reads, since, changed) in [
        (0..1_000, 50, true),
        (0..1_000, 101, false),
        (3..4, 2, true),
        (3..4, 3, false),
        (4..6, 1, false),
    ] {
        let change = recent.first_change(&read(reads.clone(), since));
        assert_eq!(change.is_some(), changed, "{reads:?} since {since}");
    }
}

#[test]
fn what_takes_too_much_is_packed_before_it_is_forgotten() {
    let mut recent = Recent::new(Version(0), 2 << 20);
    let rows = 60_000_u64;
    for row in 1..=rows {
        recent.stage(Version(row), &row.to_be_bytes(), &mut Undo::default());
        if row % 100 == 0 {
            // One old snapshot, and the last hundred writes not published yet.
            recent.trim(Version(0), Version(row - 100));
        }
    }
    assert!(recent.bytes < 3 << 19, "{} bytes", recent.bytes);
    assert!(recent.runs.len() <= RUNS_MAX + 1);
    assert_eq!(
        recent.floor,
        Version(0),
        "the old snapshot can still be validated"
    );
    for row in (1..=rows).step_by(97) {
        assert!(
            recent.key_changed(&row.to_be_bytes(), Version(row - 1)),
            "{row}"
        );
        assert!(
            !recent.key_changed(&row.to_be_bytes(), Version(row)),
            "{row}"
        );
    }
    assert!(!recent.key_changed(&(rows + 1).to_be_bytes(), Version(0)));
    assert!(recent.first_change(&read([7, rows + 9], 6)).is_some());
    assert!(recent.first_change(&read([7, rows + 9], 7)).is_none());
    recent.trim(Version(rows), Version(rows));
    assert_eq!((recent.len(), recent.bytes), (0, 0));
}
