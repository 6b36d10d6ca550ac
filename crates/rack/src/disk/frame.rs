//! A batch in a file, or a piece of memory.
//!
//! ```text
//! MAGIC 8 | number | synced | length | CRC-32 of the body | CRC-32 of all before | body, padded to words
//! ```
//! Words, little-endian.

use std::io::{self, Read};

use manxdb_core::check::deep;
use manxdb_fabric::WORD_LENGTH;

const MAGIC: [u8; WORD_LENGTH] = *b"MANXBTCH";
/// Bytes before a body.
pub(super) const HEAD: usize = 6 * WORD_LENGTH;
const _: () = assert!(
    HEAD == MAGIC.len() + 5 * WORD_LENGTH,
    "a head is a magic, four numbers and their sum"
);
/// Bytes of a body, at most.
const BODY_MAX: u64 = 1 << 32;

/// Something in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    /// Which.
    pub number: u64,
    /// Up to here everything was on disk for good when it was written.
    pub synced: u64,
    /// What it is about.
    pub body: Vec<u8>,
}

impl Frame {
    /// As it is in a file.
    pub(super) fn encode(number: u64, synced: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + body.len() + WORD_LENGTH);
        bytes.extend(MAGIC);
        let sum = u64::from(crc32fast::hash(body));
        for word in [number, synced, body.len() as u64, sum] {
            bytes.extend(word.to_le_bytes());
        }
        let sum = u64::from(crc32fast::hash(&bytes));
        bytes.extend(sum.to_le_bytes());
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(WORD_LENGTH), 0);
        assert!(
            body.len() as u64 <= BODY_MAX,
            "a reader takes frames up to {BODY_MAX} bytes"
        );
        assert!(
            synced <= number || body.is_empty(),
            "a batch that is written is not on disk yet: {number}, {synced}"
        );
        if deep() {
            let read = Self::read(&mut bytes.as_slice()).ok().flatten();
            let is_same = |read: Self| {
                (read.number, read.synced, read.bytes()) == (number, synced, bytes.len() as u64)
                    && read.body == body
            };
            assert!(
                read.is_some_and(is_same),
                "a frame is read as it was written, and to its end"
            );
        }
        bytes
    }

    /// The next one; none: there is nothing more, or no whole one.
    ///
    /// # Errors
    /// What the system says, but for an end.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut head = [0; HEAD];
        if !fill(from, &mut head)? {
            return Ok(None);
        }
        let Some((number, synced, length, sum)) = parse(&head) else {
            return Ok(None);
        };
        let padding = length.next_multiple_of(WORD_LENGTH) - length;
        let mut body = Vec::new();
        let wanted = (length + padding) as u64;
        from.take(wanted).read_to_end(&mut body)?;
        let is_whole = body.len() as u64 == wanted;
        body.truncate(length);
        let is_whole = is_whole && u64::from(crc32fast::hash(&body)) == sum;
        Ok(is_whole.then_some(Self {
            number,
            synced,
            body,
        }))
    }

    /// Bytes that it takes in a file.
    pub(super) fn bytes(&self) -> u64 {
        (HEAD + self.body.len().next_multiple_of(WORD_LENGTH)) as u64
    }

    /// The first whole one in these bytes that is so to speak expected, wherever it begins.
    pub(super) fn search(bytes: &[u8], is_expected: impl Fn(&Self) -> bool) -> Option<Self> {
        let offsets = (0..bytes.len()).step_by(WORD_LENGTH);
        let rest = offsets.filter_map(|offset| bytes.get(offset..));
        let mut rest = rest.filter(|rest| rest.starts_with(&MAGIC));
        rest.find_map(|mut rest| {
            Self::read(&mut rest)
                .ok()?
                .filter(|frame| is_expected(frame))
        })
    }
}

/// Number, synced, length, sum of the body.
fn parse(head: &[u8; HEAD]) -> Option<(u64, u64, usize, u64)> {
    let (said, sum) = head.split_last_chunk::<WORD_LENGTH>()?;
    let (words, _) = said.as_chunks::<WORD_LENGTH>();
    let [magic, words @ ..] = words else {
        return None;
    };
    if *magic != MAGIC || u64::from(crc32fast::hash(said)) != u64::from_le_bytes(*sum) {
        return None;
    }
    let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
    let (number, synced) = (words.next()?, words.next()?);
    let length = words.next().filter(|length| *length <= BODY_MAX)?;
    Some((number, synced, usize::try_from(length).ok()?, words.next()?))
}

/// Whether there was so much to read.
fn fill(from: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for body in [&b""[..], b"a", b"eight by", b"nine byte"] {
            let bytes = [Frame::encode(7, 5, body), Frame::encode(8, 6, b"next")].concat();
            let mut from = &bytes[..];
            let frame = Frame::read(&mut from).unwrap().unwrap();
            assert_eq!((frame.number, frame.synced, &frame.body[..]), (7, 5, body));
            assert_eq!(frame.bytes(), (bytes.len() - from.len()) as u64);
            assert_eq!(Frame::read(&mut from).unwrap().unwrap().number, 8);
            assert_eq!(Frame::read(&mut from).unwrap(), None);
        }
    }

    #[test]
    fn no_bit_flips_unseen_and_nothing_shorter_is_whole() {
        let bytes = Frame::encode(7, 5, b"sixteen bytes, 2");
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Frame::read(&mut &damaged[..]).unwrap(), None, "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert_eq!(Frame::read(&mut &bytes[..length]).unwrap(), None);
        }
    }

    #[test]
    fn one_behind_what_is_damaged_is_found() {
        let mut bytes = [&[3; 40][..], &Frame::encode(9, 7, b"whole")].concat();
        assert_eq!(Frame::search(&bytes, |_| true).unwrap().number, 9);
        assert_eq!(Frame::search(&bytes, |frame| frame.synced > 7), None);
        bytes.pop();
        assert_eq!(Frame::search(&bytes, |_| true), None);
    }
}
