//! The local path by itself.

use super::*;
use crate::model::{IsolationLevel, TxnId};
use manxdb_storage::MemoryEngine;

fn increment(txn: u64, key: &str, read_at: Version) -> Intent {
    Intent {
        txn: TxnId(txn),
        isolation: IsolationLevel::Serializable,
        reads: ReadSet {
            points: vec![(key.into(), read_at)].into(),
            ranges: Vec::new(),
        },
        writes: vec![(key.into(), Some(txn.to_string().into_bytes()))],
        durability: Durability::Sync,
        locks: Vec::new(),
    }
}

#[test]
fn intents_of_one_group_are_validated_against_each_other() {
    let engine = Arc::new(MemoryEngine::new());
    let path = LocalPath::open(engine.clone(), LocalOptions::default()).unwrap();
    let at = path.visible();
    let group = vec![
        increment(1, "x", at),
        increment(2, "x", at),
        increment(3, "y", at),
    ];
    let verdicts = path.commit_group(group);
    assert!(matches!(verdicts[0], Ok(Version(1))));
    assert!(matches!(verdicts[1], Err(TxnError::Conflict { .. })));
    assert!(matches!(verdicts[2], Ok(Version(2))));
    let found = engine.get(b"x", Version(2)).unwrap().unwrap();
    assert_eq!((found.version, found.value), (Version(1), b"1".to_vec()));
    assert_eq!(path.visible(), Version(2));
}
