//! Which provider, and whether it grants what is needed.

use std::ffi::CString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use super::needs::{Needs, Refused, first_missing};
use super::port::{Memory, Offer, Port};
use super::shape::{Copies, Kind, Shape};
use crate::address::WORD;
use crate::memory::segment;
use crate::memory::words::Words;
use crate::operation::BYTES_MAX;

/// Bytes that one call moves at most; a longer operation is several.
pub(super) const PIECE: u64 = 16 << 10;
/// Calls under way at a port at most.
pub(super) const DEPTH: u32 = 64;
const _: () = assert!(
    PIECE.is_multiple_of(WORD) && PIECE <= BYTES_MAX,
    "a call moves whole words, and no more than an operation"
);

/// A provider of libfabric, and how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// As `fi_info` names it, with what it is layered upon: `verbs;ofi_rxm`, `tcp;ofi_rxm`, `shm`.
    pub name: String,
    /// The address of this machine in the fabric, for a machine that has several; without it
    /// libfabric chooses.
    pub at: Option<String>,
    /// None: directly where the hardware is known to move whole words, else by words.
    pub copies: Option<Copies>,
}

/// Layers over hardware that moves whole words: aligned words of eight bytes travel in one piece
/// over InfiniBand and RoCE, through PCIe and the caches.
const WHOLE_WORDS: [&str; 1] = ["verbs;ofi_rxm"];

/// What providers begin with whose ports are at addresses of IP.
const BY_IP: [&str; 2] = ["tcp", "verbs"];

/// The calls that every client makes, and what they are called when they are missed.
const ATOMICS: [(Kind, &str); 2] = [
    (Kind::CompareSwap, "64-bit compare-and-swap (FI_CSWAP)"),
    (Kind::FetchAdd, "64-bit fetch-and-add (FI_SUM)"),
];

/// The calls of [`Copies::ByWords`].
const WORDS: [(Kind, &str); 2] = [
    (Kind::ReadWords, "atomic reads of words (FI_ATOMIC_READ)"),
    (Kind::WriteWords, "atomic writes of words (FI_ATOMIC_WRITE)"),
];

/// What a provider has granted, and how pieces are to be cut for it.
pub(super) struct Granted {
    pub(super) offer: Offer,
    pub(super) shape: Shape,
}

impl Provider {
    /// One with all the rest as it comes.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            at: None,
            copies: None,
        }
    }

    /// One with its ports at an address of this machine, if such providers go by addresses of IP.
    #[must_use]
    pub fn at(name: &str, address: IpAddr) -> Self {
        let goes_by_ip = BY_IP.iter().any(|known| name.starts_with(known));
        Self {
            at: goes_by_ip.then(|| address.to_string()),
            ..Self::named(name)
        }
    }

    /// One with its ports where this machine reaches a server from.
    ///
    /// # Errors
    /// This machine has no way there.
    pub fn towards(name: &str, server: SocketAddr) -> io::Result<Self> {
        let any: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(server)?; // which sends nothing
        Ok(Self::at(name, socket.local_addr()?.ip()))
    }

    /// Asks for all that is needed.
    ///
    /// # Errors
    /// [`Refused`].
    pub(super) fn ask(&self) -> Result<Granted, Refused> {
        let name = self.text(&self.name)?;
        let at = self.at.as_deref().map(|at| self.text(at)).transpose()?;
        let ask = |needs| Offer::ask(&name, at.as_deref(), needs, DEPTH);
        let all = Needs::all();
        // Order is asked for, and done without.
        let asked = ask(all.with(Needs::ORDER)).or_else(|_| ask(all));
        let has = |needs| ask(needs).map(drop);
        let offer = asked.map_err(|code| first_missing(&self.name, has, code))?;
        let shape = self.shape(&offer)?;
        Ok(Granted { offer, shape })
    }

    fn text(&self, text: &str) -> Result<CString, Refused> {
        CString::new(text).map_err(|_| Refused::Absent {
            provider: self.name.clone(),
            reason: "no name has a zero in it".to_owned(),
        })
    }

    /// Looks at what is granted, and opens a port that nobody uses, which is the only way to know
    /// what it can do.
    fn shape(&self, offer: &Offer) -> Result<Shape, Refused> {
        if offer.message_bytes < PIECE {
            return Err(offer.lacks("operations of 16 KiB"));
        }
        if offer.key_bytes > WORD {
            return Err(offer.lacks("keys of at most eight bytes"));
        }
        let memory = memory(PIECE).map_err(|error| offer.failed("memfd_create", error.to_string()));
        let port = Port::open(offer, memory?, Memory::Own);
        let port = port.map_err(|error| offer.failed(error.step, error.code.to_string()))?;
        let has = |(kind, what): (Kind, &'static str)| match port.words_max(kind) {
            0 => Err(offer.lacks(what)),
            words => Ok(words.saturating_mul(WORD)),
        };
        for atomic in ATOMICS {
            has(atomic)?;
        }
        let copies = self.copies.unwrap_or_else(|| usual(&offer.provider));
        let mut piece = PIECE;
        if copies == Copies::ByWords {
            for words in WORDS {
                piece = piece.min(has(words)?);
            }
        }
        assert!(
            (WORD..=PIECE).contains(&piece) && piece.is_multiple_of(WORD),
            "operations are cut into whole words that fit into a slot, not into {piece} bytes"
        );
        Ok(Shape {
            copies,
            piece,
            // Said of remote writes; of exchanges nothing is.
            in_order: copies == Copies::Directly && offer.order_bytes >= piece,
        })
    }
}

fn usual(provider: &str) -> Copies {
    if WHOLE_WORDS.contains(&provider) {
        Copies::Directly
    } else {
        Copies::ByWords
    }
}

/// Memory for a port.
pub(super) fn memory(bytes: u64) -> rustix::io::Result<Arc<Words>> {
    Words::map(segment::make(bytes)?, bytes).map(Arc::new)
}

impl Granted {
    /// Opens a port.
    ///
    /// # Errors
    /// [`Refused::Failed`].
    pub(super) fn open(&self, memory: Arc<Words>, access: Memory) -> Result<Port, Refused> {
        let opened = Port::open(&self.offer, memory, access);
        opened.map_err(|error| self.failed(error.step, error.code.to_string()))
    }

    /// It does not do what it has granted.
    pub(super) fn failed(&self, step: &'static str, reason: String) -> Refused {
        self.offer.failed(step, reason)
    }
}

impl Offer {
    fn lacks(&self, what: &'static str) -> Refused {
        let provider = self.provider.clone();
        Refused::NotGranted { provider, what }
    }

    fn failed(&self, step: &'static str, reason: String) -> Refused {
        Refused::Failed {
            provider: self.provider.clone(),
            step,
            reason,
        }
    }
}
