//! A record of the log: one batch of writes, told apart from whatever the file held before.
//!
//! | bytes | |
//! |---|---|
//! | 4 | `MXR1` |
//! | 4 | length of the payload |
//! | 4 | how far this segment was known to be on disk when the record was written |
//! | 4 | CRC-32 of segment number, offset, the two fields above and the payload |
//! | n | the payload: for each write its version, key and value |
//! | 0–7 | zeros up to a multiple of 8 |
//!
//! All numbers are little-endian. A segment is written over and over; because the checksum covers
//! the number of the segment and the place in it, a record of an earlier life is never valid.

use manxdb_core::check::deep;

use crate::model::{Version, WriteBatch};
use crate::search::StoredVersion;

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 16;
/// Records begin at multiples of this.
pub const ALIGNMENT: usize = 8;

/// What a record begins with.
pub const MAGIC: [u8; 4] = *b"MXR1";
/// Length that stands for a deleted key.
const DELETED: u32 = u32::MAX;
/// Of a write, its version and the lengths of its key and value.
const WRITE_BYTES: usize = 16;

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// Number of the segment.
    pub segment: u64,
    /// Byte in the segment.
    pub offset: u64,
}

/// A valid record found in a segment.
#[derive(Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The batch, see [`decode`].
    pub payload: &'a [u8],
    /// How far the segment was on disk when this was written.
    pub synced_to: u64,
    /// Bytes it takes, header and padding included.
    pub size: usize,
}

/// Begins a record in `out`, whose header [`seal`] fills in; `None` when a key or the whole is too
/// long for its length field.
pub fn encode(batch: &WriteBatch, out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    for (version, key, value) in &batch.writes {
        put_write(*version, key, value.as_deref(), out)?;
    }
    u32::try_from(out.len()).ok()?;
    assert!(
        out.len() >= HEADER_BYTES + batch.writes.len() * WRITE_BYTES,
        "each write has its version and its lengths"
    );
    assert!(
        !deep() || out.get(HEADER_BYTES..).and_then(decode).as_ref() == Some(batch),
        "a batch is replayed as it was logged"
    );
    Some(())
}

/// Appends one write to a payload; `None` when its key or value is too long for its length field.
pub fn put_write(
    version: Version,
    key: &[u8],
    value: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> Option<()> {
    let (key_length, value_length) = lengths(key, value)?;
    out.extend_from_slice(&version.0.to_le_bytes());
    out.extend_from_slice(&key_length.to_le_bytes());
    out.extend_from_slice(&value_length.to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value.unwrap_or_default());
    Some(())
}

/// Bytes that [`put_write`] appends.
pub fn write_bytes(key: &[u8], value: Option<&[u8]>) -> Option<u64> {
    let (key_length, _) = lengths(key, value)?;
    let value_bytes = value.map_or(0, <[u8]>::len) as u64;
    Some(WRITE_BYTES as u64 + u64::from(key_length) + value_bytes)
}

/// Length fields of a write.
fn lengths(key: &[u8], value: Option<&[u8]>) -> Option<(u32, u32)> {
    let value_length = match value {
        None => DELETED,
        Some(value) => u32::try_from(value.len())
            .ok()
            .filter(|length| *length != DELETED)?,
    };
    Some((u32::try_from(key.len()).ok()?, value_length))
}

/// Completes the record that [`encode`] began, for `place`.
pub fn seal(place: LogPosition, synced_to: u64, out: &mut Vec<u8>) {
    assert!(
        out.len() >= HEADER_BYTES,
        "a record is encoded before it is sealed"
    );
    assert!(
        synced_to <= place.offset,
        "nothing behind a record is on disk before it"
    );
    // Recovery looks for records behind damage at these places alone.
    assert!(
        place.offset.is_multiple_of(ALIGNMENT as u64),
        "records begin at multiples"
    );
    let payload_bytes = out.len().saturating_sub(HEADER_BYTES);
    assert!(
        u32::try_from(payload_bytes).is_ok(),
        "a length is read as it was written"
    );
    // Both fit: `encode` refuses longer payloads, and a segment is no longer than its records.
    let length = u32::try_from(payload_bytes)
        .unwrap_or(u32::MAX)
        .to_le_bytes();
    let synced_to = u32::try_from(synced_to).unwrap_or(u32::MAX).to_le_bytes();
    let payload = out.get(HEADER_BYTES..).unwrap_or_default();
    let checksum = checksum(place, length, synced_to, payload).to_le_bytes();
    let fields = [MAGIC, length, synced_to, checksum];
    for (to, from) in out.chunks_mut(4).zip(fields) {
        to.copy_from_slice(&from);
    }
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    assert!(
        !deep() || read(out, place).is_some_and(|record| record.size == out.len()),
        "a record is found where it was written, and ends where the next one begins"
    );
}

/// What stands before a payload. Whether a record was written there, its checksum tells.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    /// Length of the payload; it need not be in the file.
    pub payload_bytes: usize,
    /// How far the segment was on disk when this was written.
    pub synced_to: u64,
    checksum: u32,
    /// CRC-32 of all that comes before the payload.
    begun: u32,
}

/// The head that begins at `place`, which is `bytes[0]`.
pub fn head(bytes: &[u8], place: LogPosition) -> Option<Head> {
    let field = |at: usize| bytes.get(at..at + 4)?.try_into().ok();
    if field(0)? != MAGIC {
        return None;
    }
    let (length, synced_to, checksum) = (field(4)?, field(8)?, field(12)?);
    Some(Head {
        payload_bytes: usize::try_from(u32::from_le_bytes(length)).ok()?,
        synced_to: u64::from(u32::from_le_bytes(synced_to)),
        checksum: u32::from_le_bytes(checksum),
        begun: begun(place, length, synced_to).finalize(),
    })
}

impl Head {
    fn is_of(&self, payload: &[u8]) -> bool {
        let mut hasher = crc32fast::Hasher::new_with_initial(self.begun);
        hasher.update(payload);
        hasher.finalize() == self.checksum
    }

    /// Whether the payload is the one that was written, told without reading it: `before` is the
    /// CRC-32 of any bytes that end where it begins, `through` of those bytes and the payload.
    ///
    /// With S(x) for the sum x after as many zeros as the payload is long, `through` is
    /// S(before) xor the payload's sum, and what is wanted is S(begun) xor the payload's sum.
    pub fn is_between(&self, before: u32, through: u32) -> bool {
        if self.payload_bytes == 0 {
            return self.begun == self.checksum;
        }
        let payload_bytes = self.payload_bytes as u64;
        let mut sum = crc32fast::Hasher::new_with_initial(self.begun ^ before);
        sum.combine(&crc32fast::Hasher::new_with_initial_len(
            through,
            payload_bytes,
        ));
        sum.finalize() == self.checksum
    }
}

/// The record that begins at `place`, which is `bytes[0]`; `None` when there is no valid one.
pub fn read(bytes: &[u8], place: LogPosition) -> Option<Record<'_>> {
    let head = head(bytes, place)?;
    let end = HEADER_BYTES.checked_add(head.payload_bytes)?;
    let payload = bytes.get(HEADER_BYTES..end)?;
    let size = end.next_multiple_of(ALIGNMENT);
    // Whoever reads record by record ends with the file.
    assert!(size >= HEADER_BYTES, "a record takes its header at least");
    head.is_of(payload).then_some(Record {
        payload,
        synced_to: head.synced_to,
        size,
    })
}

fn checksum(place: LogPosition, length: [u8; 4], synced_to: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = begun(place, length, synced_to);
    hasher.update(payload);
    hasher.finalize()
}

/// CRC-32 of all that comes before a payload.
pub fn begun(place: LogPosition, length: [u8; 4], synced_to: [u8; 4]) -> crc32fast::Hasher {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&place.segment.to_le_bytes());
    hasher.update(&place.offset.to_le_bytes());
    hasher.update(&length);
    hasher.update(&synced_to);
    hasher
}

/// The batch of a payload; `None` when it is not one, which a valid checksum all but excludes.
pub fn decode(payload: &[u8]) -> Option<WriteBatch> {
    let mut rest = payload;
    let mut batch = WriteBatch::default();
    while !rest.is_empty() {
        let version = u64::from_le_bytes(*take(&mut rest)?);
        let key_length = u32::from_le_bytes(*take(&mut rest)?);
        let value_length = u32::from_le_bytes(*take(&mut rest)?);
        let key = take_slice(&mut rest, key_length)?.to_vec();
        let value = match value_length {
            DELETED => None,
            length => Some(take_slice(&mut rest, length)?.to_vec()),
        };
        batch.writes.push((Version(version), key, value));
    }
    Some(batch)
}

/// The write whose key begins at `bytes[at]`, if what stands before it can be the head of a write; the
/// value as far as it is there.
pub fn write_with_key_at(bytes: &[u8], at: usize) -> Option<StoredVersion<'_>> {
    let mut head = bytes.get(at.checked_sub(WRITE_BYTES)?..at)?;
    let version = u64::from_le_bytes(*take(&mut head)?);
    let key_length = u32::from_le_bytes(*take(&mut head)?);
    let value_length = u32::from_le_bytes(*take(&mut head)?);
    let mut rest = bytes.get(at..)?;
    let key = take_slice(&mut rest, key_length)?;
    let value = match value_length {
        DELETED => None,
        length => {
            let length = usize::try_from(length).ok()?;
            Some(rest.get(..length).unwrap_or(rest))
        }
    };
    Some(StoredVersion {
        key,
        version: Version(version),
        value,
    })
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(taken)
}

fn take_slice<'a>(rest: &mut &'a [u8], length: u32) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = left;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: LogPosition = LogPosition {
        segment: 7,
        offset: 640,
    };

    fn sample() -> WriteBatch {
        WriteBatch {
            writes: vec![
                (Version(3), b"key".to_vec(), Some(b"value".to_vec())),
                (Version(4), b"gone".to_vec(), None),
                (Version(u64::MAX), Vec::new(), Some(Vec::new())),
            ],
        }
    }

    fn sealed(place: LogPosition) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&sample(), &mut bytes).unwrap();
        seal(place, 512, &mut bytes);
        bytes
    }

    #[test]
    fn a_record_is_read_back_where_it_was_written_and_nowhere_else() {
        let mut bytes = sealed(HERE);
        bytes.extend_from_slice(b"what was here before");
        let record = read(&bytes, HERE).unwrap();
        assert_eq!(decode(record.payload), Some(sample()));
        assert_eq!((record.synced_to, record.size % ALIGNMENT), (512, 0));
        for elsewhere in [
            LogPosition { segment: 8, ..HERE },
            LogPosition {
                offset: 648,
                ..HERE
            },
        ] {
            assert_eq!(read(&bytes, elsewhere), None);
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let bytes = sealed(HERE);
        let payload_end = HEADER_BYTES + read(&bytes, HERE).unwrap().payload.len();
        for bit in 0..payload_end * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&damaged, HERE), None, "bit {bit}");
        }
        for cut in 0..payload_end {
            assert_eq!(read(&bytes[..cut], HERE), None, "cut {cut}");
        }
    }

    #[test]
    fn a_payload_cut_short_is_no_batch() {
        let bytes = sealed(HERE);
        let payload = read(&bytes, HERE).unwrap().payload;
        let whole = [0, 24, 44, payload.len()];
        for cut in 0..=payload.len() {
            let is_whole = whole.contains(&cut);
            assert_eq!(decode(&payload[..cut]).is_some(), is_whole, "cut {cut}");
        }
    }
}
