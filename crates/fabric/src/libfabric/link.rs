//! A client's connection to one server: pieces that wait, and pieces that are under way.

use std::collections::VecDeque;
use std::net::TcpStream;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::hello::{Place, SHUT_OUT};
use super::inflight::{InFlight, Piece};
use super::needs::Refused;
use super::port::{Call, Code, Made, Memory, OPERANDS, Peer, Port};
use super::provider::{DEPTH, Granted, PIECE, memory};
use super::shape::{Kind, Shape};
use crate::address::{WORD, WORD_LENGTH};
use crate::memory::words::Words;
use crate::operation::Fault;

/// Bytes of a slot: what is sent, and what was there before.
const SLOT: u64 = 2 * PIECE;
const _: () = assert!(
    SLOT >= OPERANDS + WORD && SLOT.is_multiple_of(WORD),
    "a slot holds the operands of a swap and what was there"
);

/// Turns between two looks at whether the server is still there.
const TURNS: u32 = 64;
/// Turns in which a client that was shut out lets what it has begun come to its end: an endpoint of
/// `verbs;ofi_rxm` must not be closed while an answer is on its way to it (libfabric 1.17).
const GRACE: u32 = 1 << 14;

/// A server that answers, as far as is known.
pub(super) struct Link {
    port: Port,
    /// What the port sends from and receives into: a slot for each piece under way.
    memory: Arc<Words>,
    shape: Shape,
    place: Place,
    peer: Peer,
    stream: TcpStream,
    waiting: VecDeque<Piece>,
    /// By slot.
    flying: Vec<Option<(Piece, Kind)>>,
    free: Vec<usize>,
    /// Pieces that are over.
    landed: u64,
    turns: u32,
    /// What the server has said last, and turns since then.
    last_word: Option<(Fault, u32)>,
}

impl Link {
    /// Opens a port to a place; `stream` is the connection over which it was learned.
    ///
    /// # Errors
    /// [`Refused`].
    pub(super) fn open(
        granted: &Granted,
        place: Place,
        stream: TcpStream,
    ) -> Result<Self, Refused> {
        let slots = DEPTH as usize;
        let memory = memory(SLOT * u64::from(DEPTH))
            .map_err(|error| granted.failed("memfd_create", error.to_string()))?;
        assert_eq!(
            memory.region().1 as u64,
            SLOT * u64::from(DEPTH),
            "each piece that can be under way has a slot"
        );
        let mut port = granted.open(Arc::clone(&memory), Memory::Own)?;
        let peer = port
            .peer(&place.endpoint)
            .map_err(|code| granted.failed("fi_av_insert", code.to_string()))?;
        Ok(Self {
            port,
            memory,
            shape: granted.shape,
            place,
            peer,
            stream,
            waiting: VecDeque::new(),
            flying: vec![None; slots],
            free: (0..slots).collect(),
            landed: 0,
            turns: 0,
            last_word: None,
        })
    }

    /// One more piece, behind those that wait.
    pub(super) fn push(&mut self, piece: Piece) {
        self.waiting.push_back(piece);
    }

    /// Starts what can be started, and takes what is over.
    ///
    /// # Errors
    /// Why nothing more will come: the link is to be ended.
    pub(super) fn turn(&mut self, inflight: &mut InFlight) -> Result<(), Fault> {
        while let Some(over) = self.port.poll().map_err(|code| self.why(code))? {
            over.result.map_err(|code| self.why(code))?;
            self.land(over.token, inflight);
        }
        let is_idle = self.free.len() == self.flying.len();
        self.turns += 1;
        if let Some((fault, since)) = &mut self.last_word {
            *since += 1;
            return match fault {
                Fault::Fenced(_) if !is_idle && *since < GRACE => Ok(()),
                fault => Err(*fault),
            };
        }
        // Not every provider says that the other side is gone, and one (`shm`) waits for it then.
        let begins = is_idle && !self.waiting.is_empty();
        if begins || self.turns == TURNS {
            self.turns = 0;
            self.last_word = self.heard().map(|fault| (fault, 0));
        }
        match self.last_word {
            None => self.start(inflight),
            Some((fault, _)) if is_idle => Err(fault),
            Some(_) => Ok(()), // the next turn sees to it
        }
    }

    /// How many pieces are over, if there are others that are not.
    pub(super) fn awaited(&self) -> Option<u64> {
        let is_idle = self.free.len() == self.flying.len() && self.waiting.is_empty();
        (!is_idle).then_some(self.landed)
    }

    /// Gives the server up: nobody knows what has become of all that is left.
    pub(super) fn end(self, fault: Fault, inflight: &mut InFlight) {
        drop(self.port); // nothing comes late
        let flying = self.flying.iter().flatten().map(|(piece, _)| piece);
        assert_eq!(
            flying.clone().count() + self.free.len(),
            self.flying.len(),
            "a slot is free or has a piece, of which somebody hears now"
        );
        for piece in flying.chain(&self.waiting) {
            inflight.finish(piece, Err(fault));
        }
    }

    fn start(&mut self, inflight: &InFlight) -> Result<(), Fault> {
        while let (Some(piece), Some(slot)) = (self.waiting.front(), self.free.last()) {
            let (piece, slot) = (*piece, *slot);
            if let Some(kind) = inflight.kind(&piece, self.shape.copies) {
                let call = self.call(piece, slot, kind);
                let sent = inflight.sent(&piece);
                assert!(
                    sent.len() as u64 <= PIECE && slot < self.flying.len(),
                    "what is sent fits into its slot: {} bytes",
                    sent.len()
                );
                self.memory.write(call.local, &sent);
                match self.port.post(&call) {
                    Made::Started => {}
                    Made::Later => return Ok(()),
                    Made::Failed(code) => return Err(self.why(code)),
                }
                let other = self.flying[slot].replace((piece, kind));
                assert!(
                    other.is_none(),
                    "a slot that is free has no piece under way: {slot}"
                );
                self.free.pop();
            }
            self.waiting.pop_front();
        }
        Ok(())
    }

    fn call(&self, piece: Piece, slot: usize, kind: Kind) -> Call {
        let server = self.place.server;
        assert_eq!(
            piece.at.server, server,
            "a piece goes to the server that it is for"
        );
        assert!(
            piece.at.offset + piece.bytes <= self.place.bytes,
            "a piece lies in what the server has registered: {piece:?}"
        );
        assert!(
            piece.bytes <= PIECE,
            "a piece fits into its slot: {piece:?}"
        );
        Call {
            token: slot as u64 + 1, // zero is nobody's
            peer: self.peer,
            address: self.place.base + piece.at.offset,
            key: self.place.key,
            local: slot as u64 * SLOT,
            bytes: piece.bytes,
            kind,
        }
    }

    /// A piece is over.
    fn land(&mut self, token: u64, inflight: &mut InFlight) {
        let slot = usize::try_from(token.wrapping_sub(1)).unwrap_or(usize::MAX);
        let Some((piece, kind)) = self.flying.get_mut(slot).and_then(Option::take) else {
            return; // none of ours
        };
        let local = slot as u64 * SLOT;
        let came = match kind {
            Kind::Read | Kind::ReadWords => {
                let bytes = usize::try_from(piece.bytes).unwrap_or_default();
                self.memory.read(local, bytes)
            }
            Kind::Write | Kind::WriteWords => Vec::new(),
            Kind::CompareSwap | Kind::FetchAdd => self.memory.read(local + OPERANDS, WORD_LENGTH),
        };
        self.free.push(slot);
        assert!(
            self.free.len() <= self.flying.len(),
            "each slot is free once"
        );
        self.landed += 1;
        self.waiting.extend(inflight.finish(&piece, Ok(&came)));
    }

    /// What an error says of the server.
    fn why(&self, code: Code) -> Fault {
        let server = self.place.server;
        if code.is_refusal() {
            return Fault::Fenced(server);
        }
        let said = self.last_word.map(|(fault, _)| fault);
        said.or_else(|| self.heard()).unwrap_or(Fault::Gone(server))
    }

    /// Whether the server's process has said its last word, or ended.
    fn heard(&self) -> Option<Fault> {
        let server = self.place.server;
        let mut word = [0];
        match recv(&self.stream, &mut word, RecvFlags::DONTWAIT) {
            Ok((1, _)) if word == [SHUT_OUT] => Some(Fault::Fenced(server)),
            Err(Errno::AGAIN | Errno::INTR) => None,
            _ => Some(Fault::Gone(server)),
        }
    }
}
