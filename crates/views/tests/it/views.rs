//! Bounds, fills given up, and what is refused.

use std::sync::Arc;

use manxdb_views::{Feed, Lookup, Pool, Version, View};

use crate::model::{KEY, Log};

fn filled(view: &Arc<View<Log>>, key: &[u8], at: u64, log: &[u64]) -> bool {
    let fill = view.begin_fill(key, Version(at));
    fill.is_some_and(|fill| fill.finish(Log(log.to_vec())))
}

fn look(view: &View<Log>, at: u64, applied: u64) -> Lookup<Log> {
    view.lookup(KEY, Version(at), Version(applied), Log::clone)
}

#[test]
fn a_reader_between_fill_and_change_sees_its_own_version() {
    let view = Arc::new(View::new(Version(0)));
    assert!(filled(&view, KEY, 5, &[1, 5]));
    view.apply(Version(7), Version(5), vec![(KEY.to_vec(), 7)]);
    view.apply(Version(9), Version(5), vec![(KEY.to_vec(), 9)]);
    assert_eq!(look(&view, 4, 9), Lookup::Unable);
    assert_eq!(look(&view, 5, 9), Lookup::Hit(Log(vec![1, 5])));
    assert_eq!(look(&view, 8, 9), Lookup::Hit(Log(vec![1, 5, 7])));
    assert_eq!(look(&view, 9, 9), Lookup::Hit(Log(vec![1, 5, 7, 9])));
    assert_eq!(look(&view, 10, 9), Lookup::Unable, "not applied yet");
}

#[test]
fn changes_that_every_reader_has_seen_are_not_kept() {
    let view = Arc::new(View::new(Version(0)));
    assert!(filled(&view, KEY, 1, &[]));
    let mut sizes = Vec::new();
    for version in 2..200 {
        let oldest = Version(version - 1);
        view.apply(Version(version), oldest, vec![(KEY.to_vec(), version)]);
        sizes.push(view.size_bytes() - usize::try_from(version).unwrap() * 8);
    }
    assert!(sizes.windows(2).all(|pair| pair[0] == pair[1]), "{sizes:?}");
    assert_eq!(look(&view, 197, 199), Lookup::Unable);
    assert!(matches!(look(&view, 199, 199), Lookup::Hit(_)));
}

#[test]
fn a_fill_that_is_dropped_leaves_the_key_to_the_next() {
    let view = Arc::new(View::new(Version(0)));
    let fill = view.begin_fill(KEY, Version(1));
    assert!(fill.is_some());
    assert!(view.begin_fill(KEY, Version(1)).is_none(), "one at a time");
    assert_eq!(look(&view, 1, 1), Lookup::Unable);
    drop(fill);
    assert_eq!(look(&view, 1, 1), Lookup::Missing);
    assert!(filled(&view, KEY, 1, &[1]));
}

#[test]
fn a_fill_behind_the_emptying_of_its_view_is_not_kept() {
    let view = Arc::new(View::new(Version(0)));
    let first = view.begin_fill(KEY, Version(1));
    view.empty(Version(2));
    let second = view.begin_fill(KEY, Version(2));
    assert!(!first.is_some_and(|fill| fill.finish(Log(vec![1]))));
    assert!(second.is_some_and(|fill| fill.finish(Log(vec![1, 2]))));
    assert_eq!(look(&view, 2, 2), Lookup::Hit(Log(vec![1, 2])));
}

#[test]
fn a_closed_view_serves_nobody_and_takes_no_room() {
    let view = Arc::new(View::new(Version(0)));
    assert!(filled(&view, KEY, 1, &[1]));
    view.close();
    assert_eq!(look(&view, 1, 1), Lookup::Unable);
    assert!(view.begin_fill(KEY, Version(1)).is_none());
    assert_eq!(view.size_bytes(), 0);
    assert_eq!(view.statistics().evictions, 1);
}

#[test]
fn the_pool_keeps_its_bound_and_spares_what_is_read() {
    let pool = Pool::new(20_000);
    let views: Vec<Arc<View<Log>>> = (0..2).map(|_| Arc::new(View::new(Version(0)))).collect();
    for view in &views {
        pool.add(Arc::clone(view));
    }
    for key in 0..400_u64 {
        for view in &views {
            filled(view, &key.to_be_bytes(), 1, &[1, 2, 3]);
        }
        pool.keep_limit();
        assert!(pool.size_bytes() <= pool.limit_bytes());
        let hot = 0_u64.to_be_bytes();
        let found = views[0].lookup(&hot, Version(1), Version(1), Log::clone);
        assert!(matches!(found, Lookup::Hit(_)), "read at {key}");
    }
    let kept: usize = views.iter().map(|view| view.statistics().keys).sum();
    assert!(kept > 20, "{kept} keys fit");
    pool.set_limit(0);
    assert_eq!(pool.size_bytes(), 0);
}

#[test]
fn commits_are_applied_in_order_by_whoever_publishes() {
    let feed = Feed::default();
    for version in 1..=5_u64 {
        feed.stage(Version(version), version * 10);
    }
    let mut seen = Vec::new();
    feed.apply(Version(3), &mut |version, payload| {
        seen.push((version.0, payload));
    });
    assert_eq!(seen, [(1, 10), (2, 20), (3, 30)]);
    assert_eq!((feed.applied(), feed.waiting()), (Version(3), 2));
    feed.apply(Version(2), &mut |_, _| unreachable!("applied already"));
    feed.skip_to(Version(4));
    assert_eq!((feed.applied(), feed.waiting()), (Version(4), 1));
    feed.apply(Version(9), &mut |version, _| seen.push((version.0, 0)));
    assert_eq!(seen.last(), Some(&(5, 0)));
    assert_eq!(feed.applied(), Version(9));
}

#[test]
#[should_panic(expected = "in commit order")]
fn a_commit_out_of_order_is_a_defect() {
    let feed = Feed::default();
    feed.stage(Version(2), ());
    feed.stage(Version(1), ());
}
