//! Damage to a worker's outputs.
#![allow(dead_code)] // each test that includes it needs some of it
#![allow(clippy::disallowed_methods)] // files are what it is about

use std::fs::{self, File};
use std::path::Path;

use crc_fast::CrcAlgorithm;
use manxdb_compaction::rocksdb_files::table::anatomy;
use manxdb_compaction::rocksdb_files::text::Fields;

/// Parts of a sorted file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The first block of entries,
    FirstBlock,
    /// one in the middle,
    MiddleBlock,
    /// the sum behind the last one,
    LastSum,
    /// what lies behind all blocks of entries: filter, index, properties,
    Tail,
    /// the index of these,
    MetaIndex,
    /// and the last bytes.
    Footer,
}

impl Part {
    pub const ALL: [Self; 6] = [
        Self::FirstBlock,
        Self::MiddleBlock,
        Self::LastSum,
        Self::Tail,
        Self::MetaIndex,
        Self::Footer,
    ];

    fn place(self, path: &Path) -> usize {
        let size = fs::metadata(path).unwrap().len();
        let tail = anatomy(&File::open(path).unwrap(), size).unwrap().unwrap();
        let tail = usize::try_from(tail.tail).unwrap();
        let size = usize::try_from(size).unwrap();
        match self {
            Self::FirstBlock => 20,
            Self::MiddleBlock => tail / 2,
            Self::LastSum => tail - 1,
            Self::Tail => tail + 2,
            Self::MetaIndex => size - 53 - 8,
            Self::Footer => size - 40,
        }
    }
}

/// Flips one bit of a file.
pub fn flip(path: &Path, part: Part) {
    let mut bytes = fs::read(path).unwrap();
    bytes[part.place(path)] ^= 4;
    fs::write(path, bytes).unwrap();
}

/// A description whose sum of its first output is what the file has now, as if the bit had been
/// flipped before RocksDB summed it.
pub fn summed_again(description: &[u8], directory: &Path) -> Vec<u8> {
    let fields = Fields::of(description).unwrap();
    let files = fields.list("output_files").unwrap();
    let name = String::from_utf8(files[0].bytes("file_name").unwrap()).unwrap();
    let bytes = fs::read(directory.join(name)).unwrap();
    let sum = crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, &bytes);
    let old = format!("file_checksum={};", files[0].raw("file_checksum").unwrap());
    let text = String::from_utf8(description.to_vec()).unwrap();
    assert!(text.contains(&old), "{text}");
    text.replacen(&old, &format!("file_checksum={sum:08X};"), 1)
        .into_bytes()
}
