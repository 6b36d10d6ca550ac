//! Messages through memory: what sockets are exchanged for when servers still take part.
//!
//! A line has a box for each direction in the memory of the server that serves it. Who sends
//! writes the message and then its number; who receives looks at the number until it changes.
//! One message at a time is under way in each direction, as questions and answers are.

use std::io;

use manxdb_fabric::{Address, Fabric, Operation, OperationOutcome, WORD, WORD_LENGTH, turn};
use manxdb_net::frame;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::two_phase::Line;
use manxdb_rack::drive::Driver;

/// Bytes of a box: number, length, message.
const BOX: u64 = 16 << 10;
/// Bytes of a line's boxes.
pub const LINE_BYTES: u64 = 2 * BOX;
/// The number of a party that is gone.
const GONE: u64 = u64::MAX;
/// What is read together with the length: most messages.
const FIRST_READ: u64 = 256;

/// Which end of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// It asks.
    Asking,
    /// It answers.
    Answering,
}

/// One end of a line.
#[derive(Debug)]
pub struct Mailbox<F: Fabric> {
    driver: Driver<F>,
    /// Where it writes,
    out: Address,
    /// and where it reads.
    back: Address,
    sent: u64,
    received: u64,
}

impl<F: Fabric> Mailbox<F> {
    /// An end of the line at an address, of [`LINE_BYTES`] that are all zero.
    pub fn new(fabric: F, at: Address, end: End) -> Self {
        let (out, back) = match end {
            End::Asking => (at, at.plus(BOX)),
            End::Answering => (at.plus(BOX), at),
        };
        Self {
            driver: Driver::new(fabric),
            out,
            back,
            sent: 0,
            received: 0,
        }
    }

    fn read(&mut self, at: Address, bytes: u64) -> io::Result<Vec<u8>> {
        let read = vec![Operation::Read { at, bytes }];
        match self.driver.ask(read).map_err(io::Error::other)?.pop() {
            Some(OperationOutcome::Read(copy)) => Ok(copy),
            Some(OperationOutcome::Failed(fault)) => Err(io::Error::other(fault)),
            _ => Err(io::Error::other("the carrier answers something else")),
        }
    }

    fn write(&mut self, number: u64, bytes: Vec<u8>) -> io::Result<()> {
        let write = Operation::WriteThenSet {
            at: self.out.plus(WORD),
            bytes,
            word_at: self.out.offset,
            word: number,
        };
        match self
            .driver
            .ask(vec![write])
            .map_err(io::Error::other)?
            .pop()
        {
            Some(OperationOutcome::Failed(fault)) => Err(io::Error::other(fault)),
            _ => Ok(()),
        }
    }
}

impl<F: Fabric> Line for Mailbox<F> {
    fn send<T: Serialize>(&mut self, message: &T) -> io::Result<()> {
        let message = frame::encode(message).map_err(io::Error::other)?;
        let mut bytes = (message.len() as u64).to_le_bytes().to_vec();
        bytes.extend(message);
        bytes.resize(bytes.len().next_multiple_of(WORD_LENGTH), 0);
        if bytes.len() as u64 > BOX - WORD {
            let error = format!("a message of {} bytes is longer than its box", bytes.len());
            return Err(io::Error::other(error));
        }
        self.sent += 1;
        self.write(self.sent, bytes)
    }

    fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut turns = 0;
        loop {
            let word = self.read(self.back, WORD)?;
            let number = word
                .first_chunk()
                .map_or(0, |word| u64::from_le_bytes(*word));
            if number == GONE {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if number > self.received {
                self.received = number;
                break;
            }
            turn(&mut turns);
        }
        let mut bytes = self.read(self.back.plus(WORD), FIRST_READ)?;
        let length = bytes
            .first_chunk()
            .map_or(0, |word| u64::from_le_bytes(*word));
        let all = (WORD + length).next_multiple_of(WORD);
        if all > BOX - WORD {
            return Err(io::Error::other("a message is longer than its box"));
        }
        if all > FIRST_READ {
            let rest = self.back.plus(WORD + FIRST_READ);
            bytes.extend(self.read(rest, all - FIRST_READ)?);
        }
        let message = usize::try_from(length)
            .ok()
            .and_then(|length| bytes.get(WORD_LENGTH..)?.get(..length));
        let message = message.ok_or_else(|| io::Error::other("a message is cut off"))?;
        let mut decoder = frame::Decoder::new(usize::try_from(BOX).unwrap_or(0));
        decoder.push(message);
        match decoder.next_payload().map_err(io::Error::other)? {
            Some(payload) => frame::decode(payload).map_err(io::Error::other),
            None => Err(io::Error::other("a message is cut off")),
        }
    }
}

impl<F: Fabric> Drop for Mailbox<F> {
    fn drop(&mut self) {
        let _ = self.write(GONE, vec![0; WORD_LENGTH]); // so that the other end ends
    }
}
