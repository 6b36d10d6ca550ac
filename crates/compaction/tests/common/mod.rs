//! A database whose compactions make the same files each time.
#![allow(clippy::unwrap_used)]

use rocksdb::{DB, Options};

/// Compacts when it is told to.
pub fn options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_disable_auto_compactions(true);
    options.set_target_file_size_base(32 << 10);
    options
}

/// Three merges of overlapping files, with deletes of keys and of ranges.
pub fn fill(db: &DB, seed: u64) {
    let mut number = seed;
    for _ in 0..3 {
        for _ in 0..2 {
            for _ in 0..3_000 {
                number = number
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let key = (number >> 51).to_be_bytes();
                if (number >> 30).is_multiple_of(5) {
                    db.delete(key).unwrap();
                } else {
                    db.put(key, number.to_be_bytes().repeat(4)).unwrap();
                }
            }
            let (from, to) = (
                (number >> 51).to_be_bytes(),
                ((number >> 51) + 50).to_be_bytes(),
            );
            let mut ranges = rocksdb::WriteBatch::default();
            ranges.delete_range(from, to);
            db.write(ranges).unwrap();
            db.flush().unwrap();
        }
        db.compact_range::<&[u8], &[u8]>(None, None);
    }
}

/// All pairs, in their order.
pub fn content(db: &DB) -> Vec<Vec<u8>> {
    let pairs = db
        .iterator(rocksdb::IteratorMode::Start)
        .map(Result::unwrap);
    pairs.map(|(key, value)| [key, value].concat()).collect()
}
