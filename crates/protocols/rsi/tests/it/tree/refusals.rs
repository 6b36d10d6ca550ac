//! What is no tree, and what a tree does not take.

use manxdb_rsi::{Abort, Change, Draft, EnterError, Isolation, Layout, Record, Seek, Seen, Tree};
use manxdb_sim::memory::MemoryOptions;

use crate::common::TestCluster;
use crate::tree::{LAYOUT, fresh, key, place, tree};

#[test]
fn what_is_no_node_is_told() {
    let mut cluster = TestCluster::new(1, 2, 0, MemoryOptions::default());
    cluster.client(|mut handle| async move {
        let root = Seen::fresh(tree().root().address(), LAYOUT);
        let change = Change {
            seen: root,
            value: Some(b"no node".to_vec()),
        };
        assert!(handle.commit(&[], vec![change], Isolation::Snapshot).await);
        let snapshot = handle.begin().await;
        let seek = Seek::At(key(1));
        let locate = handle.session.locate(&snapshot, tree(), seek, None);
        let error = handle.run(locate).await.unwrap_err();
        assert_eq!(error, Abort::Damaged(tree().root().address()));
    });
    cluster.run();
}

#[test]
fn a_tree_without_room_for_keys_is_refused() {
    let small = Layout::new(2, 100).unwrap();
    let keyed = Layout::keyed(2, 1000, 8).unwrap();
    for layout in [small, keyed] {
        let error = Tree::new(place(0, 64), layout).unwrap_err().to_string();
        assert!(error.contains("records without keys"), "{error}");
    }
}

#[test]
fn what_a_tree_cannot_take_is_refused() {
    let mut cluster = TestCluster::new(1, 2, 0, MemoryOptions::default());
    cluster.client(|mut handle| async move {
        let snapshot = handle.begin().await;
        let longest = tree().key_max();
        let key = vec![7; longest + 1];
        let seek = Seek::At(key.clone());
        let locate = handle.session.locate(&snapshot, tree(), seek, None);
        let located = handle.run(locate).await.unwrap();
        assert_eq!(located.place(&key), None);
        let mut draft = Draft::new(tree());
        let mut none = std::iter::empty();
        let unknown = draft.enter([&key], &mut std::iter::empty(), &mut none);
        assert_eq!(unknown, Err(EnterError::Unknown(key.clone())));
        draft.add(located).unwrap();
        let enter = |keys: &[Vec<u8>], records: usize| {
            let mut records = std::iter::repeat_n(fresh(place(7, 64)), records);
            let entered = draft.enter(keys, &mut records, &mut std::iter::empty());
            entered.map(|entered| entered.records)
        };
        let refused = Err(EnterError::TooLong(longest, longest + 1));
        assert_eq!(enter(&[vec![1], key], 9), refused);
        let many: Vec<Vec<u8>> = (0..40).map(crate::tree::key).collect();
        let refused = |what| Err(EnterError::NoRoom(what));
        assert_eq!(enter(&many, 9), refused("records"));
        assert_eq!(enter(&many, 40), refused("nodes of the tree"));
        assert_eq!(
            enter(&many[..2], 2),
            Ok(vec![Record::New(fresh(place(7, 64))); 2])
        );
    });
    cluster.run();
}
