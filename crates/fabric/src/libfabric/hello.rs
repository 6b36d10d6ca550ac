//! The first words on a connection over TCP: who is there, and how its memory is reached; or that
//! somebody is to be shut out. And the last one, for a client that is.
//!
//! ```text
//! client:  magic (8) · 0 · client (8) · token (1 + n) · provider (1 + n)
//!     or:  magic (8) · 1 · client (8) · token (1 + n)
//! server:  magic (8) · 0 · server (2) · key (8) · base (8) · bytes (8) · endpoint (1 + n)
//!     or:  magic (8) · 1 · reason (1 + n)
//!     or:  magic (8) · 2    this client was shut out
//!     or:  magic (8) · 3    it is here already
//!     or:  magic (8) · 4    the client of an order writes nothing more
//! later:   2, before the port of a client that is shut out is closed
//! ```
//! Numbers are little-endian.

use std::io::{self, Read, Write};

use super::listener::PATIENCE;
use crate::address::{ServerId, WORD};

/// Begins both words; the last byte is the version.
const MAGIC: [u8; 8] = *b"MANXOFI\x02";
const ADMIT: u8 = 0;
const ORDER: u8 = 1;
const _: () = assert!(ADMIT != ORDER, "who orders is not let in");
const ADMITTED: u8 = 0;
const TURNED_AWAY: u8 = 1;
/// What a client that is shut out reads.
pub(super) const SHUT_OUT: u8 = 2;
const ALREADY: u8 = 3;
const DONE: u8 = 4;
const _: () = assert!(
    ADMITTED < TURNED_AWAY && TURNED_AWAY < SHUT_OUT && SHUT_OUT < ALREADY && ALREADY < DONE,
    "no two words of a server are the same"
);

/// What somebody at the listener wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    /// Who may ask.
    pub(super) token: String,
    pub(super) client: u64,
    pub(super) what: What,
}

/// What is to become of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// It is the one that asks, and is let in.
    Admit {
        /// The name of the provider.
        provider: String,
    },
    /// It writes nothing more.
    ShutOut,
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

impl Place {
    /// Whether it is one that operations can be addressed to: whole words, none of them beyond the
    /// last address.
    pub(super) fn is_sensible(&self) -> bool {
        self.bytes.is_multiple_of(WORD) && self.base.checked_add(self.bytes).is_some()
    }
}

/// Why a client is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Denial {
    /// It was shut out.
    ShutOut,
    /// It is in already, or its end has not been noticed yet.
    Already,
    /// For this reason.
    Because(String),
}

/// What a server answers who wants to be let in: a place, or why not.
pub(super) type Answer = Result<Place, Denial>;

/// What a server answers who wants somebody shut out: done, or why not.
pub(super) type Report = Result<(), String>;

impl Ask {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut word = MAGIC.to_vec();
        word.push(match self.what {
            What::Admit { .. } => ADMIT,
            What::ShutOut => ORDER,
        });
        word.extend(self.client.to_le_bytes());
        push(&mut word, self.token.as_bytes());
        if let What::Admit { provider } = &self.what {
            push(&mut word, provider.as_bytes());
        }
        to.write_all(&word)
    }

    /// # Errors
    /// It is no client of ours.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        magic(from)?;
        let [what] = exactly(from)?;
        let client = number(from)?;
        let token = text(from)?;
        let what = match what {
            ADMIT => What::Admit {
                provider: text(from)?,
            },
            ORDER => What::ShutOut,
            _ => return Err(not_our_protocol()),
        };
        Ok(Self {
            token,
            client,
            what,
        })
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
        Err(Denial::ShutOut) => word.push(SHUT_OUT),
        Err(Denial::Already) => word.push(ALREADY),
        Err(Denial::Because(reason)) => turn_away(&mut word, reason),
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
        TURNED_AWAY => Ok(Err(Denial::Because(reason(from)?))),
        SHUT_OUT => Ok(Err(Denial::ShutOut)),
        ALREADY => Ok(Err(Denial::Already)),
        _ => Err(not_our_protocol()),
    }
}

pub(super) fn write_report(report: &Report, to: &mut impl Write) -> io::Result<()> {
    let mut word = MAGIC.to_vec();
    match report {
        Ok(()) => word.push(DONE),
        Err(reason) => turn_away(&mut word, reason),
    }
    to.write_all(&word)
}

/// # Errors
/// It is no server of ours.
pub(super) fn read_report(from: &mut impl Read) -> io::Result<Report> {
    magic(from)?;
    match exactly(from)? {
        [DONE] => Ok(Ok(())),
        [TURNED_AWAY] => Ok(Err(reason(from)?)),
        _ => Err(not_our_protocol()),
    }
}

fn turn_away(word: &mut Vec<u8>, reason: &str) {
    word.push(TURNED_AWAY);
    push(word, reason.as_bytes());
}

/// At most 255 bytes, after their number; what is longer is cut off.
fn push(word: &mut Vec<u8>, bytes: &[u8]) {
    let length = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
    word.push(length);
    let before = word.len();
    word.extend(bytes.iter().take(usize::from(length)));
    assert_eq!(
        word.len() - before,
        usize::from(length),
        "what is sent is as long as is said before it"
    );
}

fn short(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let [length] = exactly(from)?;
    let mut bytes = vec![0; usize::from(length)];
    from.read_exact(&mut bytes).map_err(named)?;
    Ok(bytes)
}

fn text(from: &mut impl Read) -> io::Result<String> {
    String::from_utf8(short(from)?).map_err(|_| not_our_protocol())
}

/// For people: whatever it is.
fn reason(from: &mut impl Read) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&short(from)?).into_owned())
}

fn exactly<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes).map_err(named)?;
    Ok(bytes)
}

/// A read's timeout is EAGAIN on Linux, whose text ("Resource temporarily unavailable") names no cause.
fn named(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(
            io::ErrorKind::TimedOut,
            format!("the other side accepts connections but has said nothing for {PATIENCE:?}"),
        ),
        _ => error,
    }
}

fn number(from: &mut impl Read) -> io::Result<u64> {
    exactly(from).map(u64::from_le_bytes)
}

fn magic(from: &mut impl Read) -> io::Result<()> {
    if exactly(from)? == MAGIC {
        Ok(())
    } else {
        Err(not_our_protocol())
    }
}

fn not_our_protocol() -> io::Error {
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

    /// What is said is heard, whole or not at all.
    fn travels<T: PartialEq + std::fmt::Debug>(
        what: &T,
        write: impl Fn(&mut Vec<u8>) -> io::Result<()>,
        read: impl Fn(&mut &[u8]) -> io::Result<T>,
    ) {
        let said = written(write);
        assert_eq!(&read(&mut said.as_slice()).unwrap(), what);
        for length in 0..said.len() {
            assert!(read(&mut &said[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn what_is_said_is_heard() {
        let admit = What::Admit {
            provider: "tcp;ofi_rxm".to_owned(),
        };
        for what in [admit, What::ShutOut] {
            let ask = Ask {
                token: "secret".to_owned(),
                client: 77,
                what,
            };
            travels(&ask, |to| ask.write(to), |from| Ask::read(from));
        }
        let place = Place {
            server: ServerId(3),
            key: u64::MAX,
            base: 0x7000,
            bytes: 4096,
            endpoint: b"fi_shm://1".to_vec(),
        };
        for answer in [
            Ok(place),
            Err(Denial::Because("it is raining".to_owned())),
            Err(Denial::ShutOut),
            Err(Denial::Already),
        ] {
            travels(
                &answer,
                |to| write_answer(&answer, to),
                |from| read_answer(from),
            );
        }
        for report in [Ok(()), Err("it is stuck".to_owned())] {
            travels(
                &report,
                |to| write_report(&report, to),
                |from| read_report(from),
            );
        }
    }

    #[test]
    fn a_side_that_says_nothing_is_named_so() {
        struct Silent;
        impl Read for Silent {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::WouldBlock.into())
            }
        }
        let error = read_report(&mut Silent).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(
            error.to_string(),
            "the other side accepts connections but has said nothing for 5s"
        );
    }

    #[test]
    fn other_protocols_are_told_apart() {
        for words in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"MANXOFI\x01??????????"] {
            assert!(Ask::read(&mut &words[..]).is_err());
            assert!(read_answer(&mut &words[..]).is_err());
            assert!(read_report(&mut &words[..]).is_err());
        }
        let neither = [&MAGIC[..], &[9; 40]].concat();
        assert!(Ask::read(&mut neither.as_slice()).is_err());
        assert!(read_answer(&mut neither.as_slice()).is_err());
        assert!(read_report(&mut neither.as_slice()).is_err());
    }
}
