//! A leaf that is newer than a snapshot is found under it all the same, and is not written over: who
//! saw that and not the leaf would look for keys where they were before.

use std::cell::Cell;
use std::rc::Rc;

use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{Abort, Draft, Isolation, Seek};
use manxdb_sim::memory::MemoryOptions;

use crate::common::TestCluster;
use crate::tree::{Rooms, enter, fresh, key, tree};

/// Enters a key under a snapshot that is older than all that memory has of the key's leaf; what
/// came of it, and whether the session had seen what it wrote over.
fn enter_into_the_unseen(mutant: Option<Mutant>) -> (Result<(), Abort>, bool) {
    let mut cluster = TestCluster::new(1, 4, 0, MemoryOptions::default()).with(mutant);
    let (is_begun, is_split) = (Rc::<Cell<bool>>::default(), Rc::<Cell<bool>>::default());
    let (begun, split) = (Rc::clone(&is_begun), Rc::clone(&is_split));
    cluster.client(move |mut handle| async move {
        let rooms = Rooms::new(1);
        enter(&mut handle, &rooms, &[10, 20, 30, 40], None).await;
        begun.set(true);
        // The root comes to stand over two leaves, of which the left one is split: then memory has
        // nothing of the root, as it was, and nothing of the right leaf but what it was first.
        for number in [50, 60, 70, 80, 11, 12, 13, 14, 15, 16] {
            enter(&mut handle, &rooms, &[number], None).await;
        }
        split.set(true);
    });
    let found = Rc::new(Cell::new((Ok(()), false)));
    let noted = Rc::clone(&found);
    cluster.client(move |mut handle| async move {
        let wait = async |handle: &crate::tree::ClientHandle, flag: &Cell<bool>| {
            while !flag.get() {
                let look = handle.session.begin().unwrap();
                handle.run(look).await.unwrap(); // and it is not heard of
            }
        };
        wait(&handle, &is_begun).await;
        let snapshot = handle.begin().await;
        wait(&handle, &is_split).await;
        let seek = Seek::At(key(75));
        let locate = handle.session.locate(&snapshot, tree(), seek, None);
        let located = handle.run(locate).await.unwrap();
        let leaf = located.leaf().seen.clone();
        assert!(leaf.is_newest() && !snapshot.admits(leaf.stamp));
        let mut draft = Draft::new(tree());
        draft.add(located).unwrap();
        let mut records = Rooms::new(2).records().map(fresh);
        let mut rooms = Rooms::new(2).all().map(fresh);
        let entered = draft.enter(&[key(75)], &mut records, &mut rooms).unwrap();
        let committed = handle.try_commit(&[], entered.changes, Isolation::Snapshot);
        let committed = committed.await.map(drop);
        noted.set((committed, handle.session.seen().admits(leaf.stamp)));
    });
    cluster.run();
    found.get()
}

#[test]
fn what_was_not_seen_is_not_written_over() {
    let (committed, _) = enter_into_the_unseen(None);
    assert!(matches!(committed, Err(Abort::WriteConflict(_))));
    let found = enter_into_the_unseen(Some(Mutant::WritesOverTheUnseen));
    assert_eq!(found, (Ok(()), false));
}
