//! The log that a manifest is: records in pieces, pieces in blocks, each with a sum.

/// Length of a block of a log.
pub(super) const BLOCK: usize = 32 << 10;
/// Sum, length and kind of a piece of a record.
const HEADER: usize = 7;
/// A record with more bytes is a misunderstanding.
const RECORD_MAX: usize = 256 << 20;

/// Records of a log.
pub(super) struct Log<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Behind the last whole record.
    pub read: usize,
}

/// A piece of a record.
enum Piece<'a> {
    Full(&'a [u8]),
    First(&'a [u8]),
    Middle(&'a [u8]),
    Last(&'a [u8]),
}

impl<'a> Log<'a> {
    /// `bytes` begin with a block.
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self {
            bytes,
            at,
            read: at,
        }
    }

    /// The next record; nothing when no more is written, or not all of it.
    pub(super) fn next_record(&mut self) -> Result<Option<Vec<u8>>, String> {
        // A first piece may have no bytes: RocksDB leaves one where a block has room for its header
        // and for nothing else.
        let mut record: Option<Vec<u8>> = None;
        while let Some(piece) = self.next_piece()? {
            let (is_first, is_last, bytes) = match piece {
                Piece::Full(bytes) => (true, true, bytes),
                Piece::First(bytes) => (true, false, bytes),
                Piece::Middle(bytes) => (false, false, bytes),
                Piece::Last(bytes) => (false, true, bytes),
            };
            let is_begun = record.is_some();
            let whole = record.get_or_insert_default();
            if is_first == is_begun || whole.len() + bytes.len() > RECORD_MAX {
                return Err("a record in it is not in one piece".to_owned());
            }
            whole.extend_from_slice(bytes);
            if is_last {
                self.read = self.at;
                return Ok(record);
            }
        }
        Ok(None)
    }

    fn next_piece(&mut self) -> Result<Option<Piece<'a>>, String> {
        let left = BLOCK - self.at % BLOCK;
        if left < HEADER {
            self.at += left; // filled up with zeros
        }
        let Some(header) = self.bytes.get(self.at..self.at + HEADER) else {
            return Ok(None);
        };
        let sum = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let length = usize::from(u16::from_le_bytes([header[4], header[5]]));
        let start = self.at + HEADER;
        let Some(bytes) = self.bytes.get(start..start + length) else {
            return Ok(None);
        };
        // A record that is being written may be there in part.
        if masked(crc32c(&[&header[6..7], bytes])) != sum {
            return Ok(None);
        }
        self.at = start + length;
        match header[6] {
            1 => Ok(Some(Piece::Full(bytes))),
            2 => Ok(Some(Piece::First(bytes))),
            3 => Ok(Some(Piece::Middle(bytes))),
            4 => Ok(Some(Piece::Last(bytes))),
            kind => Err(format!("a record in it is of the unknown kind {kind}")),
        }
    }
}

/// Writes a record behind those that are there, in as many pieces as it takes.
pub(crate) fn append(log: &mut Vec<u8>, record: &[u8]) {
    let mut rest = record;
    let mut is_first = true;
    loop {
        let left = BLOCK - log.len() % BLOCK;
        if left < HEADER {
            log.resize(log.len() + left, 0);
        }
        let room = BLOCK - log.len() % BLOCK - HEADER;
        let (piece, behind) = rest.split_at(room.min(rest.len()));
        let kind = match (is_first, behind.is_empty()) {
            (true, true) => 1_u8,
            (true, false) => 2,
            (false, false) => 3,
            (false, true) => 4,
        };
        let length = u16::try_from(piece.len()).unwrap_or(u16::MAX); // below the block's length
        log.extend(masked(crc32c(&[&[kind], piece])).to_le_bytes());
        log.extend(length.to_le_bytes());
        log.push(kind);
        log.extend_from_slice(piece);
        (rest, is_first) = (behind, false);
        if rest.is_empty() {
            return;
        }
    }
}

/// RocksDB's disguise of a sum, so that sums of sums are not simple.
pub(super) fn masked(sum: u32) -> u32 {
    sum.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Castagnoli's CRC-32 of a few pieces.
pub(super) fn crc32c(pieces: &[&[u8]]) -> u32 {
    let bytes = pieces.iter().flat_map(|piece| piece.iter());
    !bytes.fold(!0, |sum: u32, byte| {
        let place = (sum ^ u32::from(*byte)) & 0xff;
        (sum >> 8) ^ TABLE[place as usize] // below 256
    })
}

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut place = 0_u32;
    while place < 256 {
        let mut sum = place;
        let mut bit = 0;
        while bit < 8 {
            let low = sum & 1;
            sum = (sum >> 1) ^ (0x82f6_3b78 * low);
            bit += 1;
        }
        table[place as usize] = sum;
        place += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rocksdb::DB;
    use std::path::PathBuf;

    /// RocksDB's other log is of the same make, and how long its records are can be chosen.
    #[test]
    fn a_record_may_begin_where_a_block_has_room_for_its_header_alone() {
        let directory = tempfile::tempdir().unwrap();
        let db = DB::open_default(directory.path()).unwrap();
        // The bytes around a value: a batch's own header, kind and lengths, and the key.
        let around = 12 + 1 + 1 + 1 + 3;
        for length in [BLOCK - 2 * HEADER - around, 5] {
            db.put([7], vec![7; length]).unwrap();
        }
        let files = std::fs::read_dir(directory.path()).unwrap().flatten();
        let is_log = |path: &PathBuf| path.extension().is_some_and(|end| end == "log");
        let path = files.map(|file| file.path()).find(is_log).unwrap();
        let bytes = std::fs::read(path).unwrap();
        let mut log = Log::new(&bytes, 0);
        let first = log.next_record().unwrap().unwrap();
        assert_eq!(
            (first.len(), log.read),
            (BLOCK - 2 * HEADER, BLOCK - HEADER)
        );
        let second = log.next_record().unwrap().unwrap();
        assert!(second.ends_with(&[7; 5]), "{second:?}");
        assert_eq!(log.next_record(), Ok(None));
    }

    proptest! {
        #[test]
        fn no_bytes_bring_it_down(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Log::new(&bytes, 0).next_record();
        }
    }
}
