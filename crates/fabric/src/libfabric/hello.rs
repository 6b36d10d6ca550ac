//! The first and only words on a connection over TCP: who is there, and how its memory is reached;
//! and the last one, for a client that is shut out.
//!
//! ```text
//! client:  magic (8) · client (8) · provider (1 + n)
//! server:  magic (8) · 0 · server (2) · key (8) · base (8) · bytes (8) · endpoint (1 + n)
//!     or:  magic (8) · 1 · reason (1 + n)
//! later:   2, before the port of a client that is shut out is closed
//! ```
//! Numbers are little-endian.

use std::io::{self, Read, Write};

use crate::address::ServerId;

/// Begins both words; the last byte is the version.
const MAGIC: [u8; 8] = *b"MANXOFI\x01";
const ADMITTED: u8 = 0;
const TURNED_AWAY: u8 = 1;
/// What a client that is shut out reads.
pub(super) const SHUT_OUT: u8 = 2;

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) client: u64,
    /// The name of the provider.
    pub(super) provider: String,
}

/// Where a server's memory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) server: ServerId,
    /// The key for this client.
    pub(super) key: u64,
    /// What the first byte is called.
    pub(super) base: u64,
    /// How many there are.
    pub(super) bytes: u64,
    /// The port for this client.
    pub(super) endpoint: Vec<u8>,
}

/// What a server answers: a place, or why not.
pub(super) type Answer = Result<Place, String>;

impl Ask {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut word = MAGIC.to_vec();
        word.extend(self.client.to_le_bytes());
        push(&mut word, self.provider.as_bytes());
        to.write_all(&word)
    }

    /// # Errors
    /// It is no client of ours.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        magic(from)?;
        let client = number(from)?;
        let provider = String::from_utf8(short(from)?).map_err(|_| stranger())?;
        Ok(Self { client, provider })
    }
}

pub(super) fn write_answer(answer: &Answer, to: &mut impl Write) -> io::Result<()> {
    let mut word = MAGIC.to_vec();
    match answer {
        Ok(place) => {
            word.push(ADMITTED);
            word.extend(place.server.0.to_le_bytes());
            for number in [place.key, place.base, place.bytes] {
                word.extend(number.to_le_bytes());
            }
            push(&mut word, &place.endpoint);
        }
        Err(reason) => {
            word.push(TURNED_AWAY);
            push(&mut word, reason.as_bytes());
        }
    }
    to.write_all(&word)
}

/// # Errors
/// It is no server of ours.
pub(super) fn read_answer(from: &mut impl Read) -> io::Result<Answer> {
    magic(from)?;
    let [status] = exactly(from)?;
    match status {
        ADMITTED => Ok(Ok(Place {
            server: ServerId(u16::from_le_bytes(exactly(from)?)),
            key: number(from)?,
            base: number(from)?,
            bytes: number(from)?,
            endpoint: short(from)?,
        })),
        TURNED_AWAY => Ok(Err(String::from_utf8_lossy(&short(from)?).into_owned())),
        _ => Err(stranger()),
    }
}

/// At most 255 bytes, after their number; what is longer is cut off.
fn push(word: &mut Vec<u8>, bytes: &[u8]) {
    let length = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
    word.push(length);
    word.extend(bytes.iter().take(usize::from(length)));
}

fn short(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let [length] = exactly(from)?;
    let mut bytes = vec![0; usize::from(length)];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn exactly<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn number(from: &mut impl Read) -> io::Result<u64> {
    exactly(from).map(u64::from_le_bytes)
}

fn magic(from: &mut impl Read) -> io::Result<()> {
    if exactly(from)? == MAGIC {
        Ok(())
    } else {
        Err(stranger())
    }
}

fn stranger() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the other side is no memory server or client of this release",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut Vec<u8>) -> io::Result<()>) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_said_is_heard() {
        let ask = Ask {
            client: 77,
            provider: "tcp;ofi_rxm".to_owned(),
        };
        let said = written(|to| ask.write(to));
        assert_eq!(Ask::read(&mut said.as_slice()).unwrap(), ask);
        let place = Place {
            server: ServerId(3),
            key: u64::MAX,
            base: 0x7000,
            bytes: 4096,
            endpoint: b"fi_shm://1".to_vec(),
        };
        for answer in [Ok(place), Err("client 77 is here already".to_owned())] {
            let said = written(|to| write_answer(&answer, to));
            assert_eq!(read_answer(&mut said.as_slice()).unwrap(), answer);
            for length in 0..said.len() {
                assert!(read_answer(&mut &said[..length]).is_err(), "{length} bytes");
            }
        }
    }

    #[test]
    fn strangers_are_told_apart() {
        for words in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"MANXOFI\x02??????????"] {
            assert!(Ask::read(&mut &words[..]).is_err());
            assert!(read_answer(&mut &words[..]).is_err());
        }
        let neither = [&MAGIC[..], &[9; 40]].concat();
        assert!(read_answer(&mut neither.as_slice()).is_err());
    }
}
