//! What travels between clients, masters and witnesses in one datagram, byte by byte.
//!
//! Little-endian and aligned to 8 bytes, so that an XDP program can read it in place:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | magic `CRPW` |
//! | 4 | 1 | version, 1 |
//! | 5 | 1 | [`Op`] |
//! | 6 | 1 | [`Status`] |
//! | 7 | 1 | number of key hashes (record, probe) or of entries (collection) |
//! | 8 | 8 | the master's life |
//! | 16 | 4 | WLV |
//! | 20 | 2 | length of the request |
//! | 22 | 2 | flags: bit 0 says that it asks, not answers |
//! | 24 | 8 | token |
//! | 32 | 8 | client |
//! | 40 | 8 | sequence number; of a collection its round |
//! | 48 | 8 each | key hashes; or entries of {key hash, client, sequence number} |
//! | then | length | the request: stamp (16 bytes) and command |
//! | then | 4 | CRC-32C of everything before it |
//!
//! The checksum covers the header too: a record under a hash that is not its key's would hide a
//! conflict, and nobody would ever collect it; an answer with a flipped status would be an
//! acceptance that nobody gave.

use serde::{Deserialize, Serialize};

use crate::ids::{ClientId, Epoch, RpcId, Stamp, View, Wlv};

/// The first four bytes.
pub const MAGIC: [u8; 4] = *b"CRPW";
/// The version that this code speaks.
pub const VERSION: u8 = 1;
/// Bytes before hashes and entries.
pub const HEADER: usize = 48;
/// Keys of one record: more are synced instead.
pub const KEYS_MAX: usize = 8;
/// Entries of one collection: it has to fit into one packet.
pub const ENTRIES_MAX: usize = 56;
/// Bytes of a whole datagram: one packet of an Ethernet, never in fragments.
pub const DATAGRAM_MAX: usize = 1_472;
/// Bytes of a request's stamp.
const STAMP: usize = 16;

/// What a datagram is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Op {
    /// Keep a request until it is synced.
    Record = 1,
    /// Forget what is synced.
    Gc = 2,
    /// Does a record of these keys exist?
    Probe = 3,
}

/// A witness's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Status {
    /// In a question.
    None = 0,
    /// Recorded, or synced already.
    Accepted = 1,
    /// Another operation on one of the keys is recorded.
    Conflict = 2,
    /// No room where the hash belongs.
    Full = 3,
    /// Not a witness of this view.
    WrongLife = 4,
    /// Somebody recovers from this table.
    Frozen = 5,
    /// A token or a length is wrong.
    Bad = 6,
    /// Another one works on the same slot; only a data plane with several CPUs says it.
    Busy = 7,
    /// Collected.
    GcOk = 8,
    /// No record of these keys.
    Clean = 9,
    /// There is one.
    Dirty = 10,
}

impl Op {
    fn of(byte: u8) -> Option<Self> {
        [Self::Record, Self::Gc, Self::Probe]
            .into_iter()
            .find(|op| *op as u8 == byte)
    }
}

impl Status {
    const ALL: [Self; 11] = [
        Self::None,
        Self::Accepted,
        Self::Conflict,
        Self::Full,
        Self::WrongLife,
        Self::Frozen,
        Self::Bad,
        Self::Busy,
        Self::GcOk,
        Self::Clean,
        Self::Dirty,
    ];

    fn of(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }
}

/// A record that is to be forgotten, or has been there for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GcEntry {
    /// Of one of its keys.
    pub hash: u64,
    /// Whose it is.
    pub rpc: RpcId,
}

/// What an operation needs to run, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordedRequest {
    /// When and with which luck.
    pub stamp: Stamp,
    /// What.
    #[serde(with = "crate::bytes")]
    pub command: Vec<u8>,
}

/// One datagram.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagram {
    /// What it is for.
    pub op: Op,
    /// What a witness answers.
    pub status: Status,
    /// Of which view.
    pub view: View,
    /// Whether it asks.
    pub asks: bool,
    /// Shows that the sender may.
    pub token: u64,
    /// The operation; of a collection `seq` is its round.
    pub rpc: RpcId,
    /// Of a record or probe.
    pub hashes: Vec<u64>,
    /// Of a collection, and of its answer: what has been there for too long.
    pub entries: Vec<GcEntry>,
    /// Of a record.
    pub request: Option<RecordedRequest>,
}

/// Why bytes are no datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    /// Shorter or longer than it says, or than any is.
    Length,
    /// Another protocol, or another version of this one.
    Unknown,
    /// A byte flipped on the way.
    Checksum,
    /// No such operation, status, client or count.
    Field,
}

fn crc(bytes: &[u8]) -> u32 {
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes);
    u32::try_from(sum & 0xFFFF_FFFF).unwrap_or(0)
}

impl Datagram {
    /// A witness's answer to it.
    #[must_use]
    pub fn answer(&self, status: Status, entries: Vec<GcEntry>) -> Self {
        Self {
            status,
            asks: false,
            token: 0,
            hashes: Vec::new(),
            entries,
            request: None,
            ..self.clone()
        }
    }

    /// Its bytes; nothing when it has more keys, entries or bytes than fit into one packet.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        let counted = match self.op {
            Op::Gc => self.entries.len(),
            Op::Record | Op::Probe => self.hashes.len(),
        };
        let (keys, entries) = (self.hashes.len(), self.entries.len());
        if keys > KEYS_MAX || entries > ENTRIES_MAX || (keys > 0 && entries > 0) {
            return None;
        }
        let request = self.request.as_ref();
        let length = request.map_or(0, |request| STAMP + request.command.len());
        let mut bytes = Vec::with_capacity(HEADER + 4 + length + keys * 8 + entries * 24);
        bytes.extend_from_slice(&MAGIC);
        bytes.push(VERSION);
        bytes.push(self.op as u8);
        bytes.push(self.status as u8);
        bytes.push(u8::try_from(counted).ok()?);
        bytes.extend_from_slice(&self.view.epoch.0.to_le_bytes());
        bytes.extend_from_slice(&self.view.wlv.0.to_le_bytes());
        bytes.extend_from_slice(&u16::try_from(length).ok()?.to_le_bytes());
        bytes.extend_from_slice(&u16::from(self.asks).to_le_bytes());
        for number in [self.token, self.rpc.client.0, self.rpc.seq] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        assert_eq!(bytes.len(), HEADER, "the header has a fixed length");
        for hash in &self.hashes {
            bytes.extend_from_slice(&hash.to_le_bytes());
        }
        for entry in &self.entries {
            for number in [entry.hash, entry.rpc.client.0, entry.rpc.seq] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        if let Some(request) = request {
            bytes.extend_from_slice(&request.stamp.micros.to_le_bytes());
            bytes.extend_from_slice(&request.stamp.seed.to_le_bytes());
            bytes.extend_from_slice(&request.command);
        }
        assert_eq!(
            bytes.len(),
            HEADER + keys * 8 + entries * 24 + length,
            "a datagram is as long as its header says"
        );
        bytes.extend_from_slice(&crc(&bytes).to_le_bytes());
        (bytes.len() <= DATAGRAM_MAX).then_some(bytes)
    }

    /// Reads one that came over the network.
    ///
    /// # Errors
    /// It is none; whoever sent it gets no answer.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        if bytes.len() < HEADER + 4 || bytes.len() > DATAGRAM_MAX {
            return Err(WireError::Length);
        }
        if bytes[..4] != MAGIC || bytes[4] != VERSION {
            return Err(WireError::Unknown);
        }
        let (body, sum) = bytes.split_at(bytes.len() - 4);
        if crc(body).to_le_bytes() != *sum {
            return Err(WireError::Checksum);
        }
        let op = Op::of(bytes[5]).ok_or(WireError::Field)?;
        let status = Status::of(bytes[6]).ok_or(WireError::Field)?;
        let count = usize::from(bytes[7]);
        let length = usize::from(u16::from_le_bytes([bytes[20], bytes[21]]));
        let flags = u16::from_le_bytes([bytes[22], bytes[23]]);
        let (each, most) = match op {
            Op::Gc => (24, ENTRIES_MAX),
            Op::Record | Op::Probe => (8, KEYS_MAX),
        };
        if count > most || flags > 1 || (0 < length && length < STAMP) {
            return Err(WireError::Field);
        }
        if body.len() != HEADER + count * each + length {
            return Err(WireError::Length);
        }
        let numbers: Vec<u64> = (0..count * each / 8)
            .map(|index| number(body, HEADER + index * 8))
            .collect();
        let (hashes, entries) = match op {
            Op::Gc => (Vec::new(), numbers.chunks(3).map(entry).collect()),
            Op::Record | Op::Probe => (numbers, Vec::new()),
        };
        let request = &body[HEADER + count * each..];
        assert_eq!(request.len(), length, "the rest is the request");
        Ok(Self {
            op,
            status,
            view: View {
                epoch: Epoch(number(body, 8)),
                wlv: Wlv(u32::from_le_bytes([
                    bytes[16], bytes[17], bytes[18], bytes[19],
                ])),
            },
            asks: flags == 1,
            token: number(body, 24),
            rpc: RpcId {
                client: ClientId(number(body, 32)),
                seq: number(body, 40),
            },
            hashes,
            entries,
            request: (length > 0).then(|| RecordedRequest {
                stamp: Stamp {
                    micros: number(request, 0),
                    seed: number(request, 8),
                },
                command: request[STAMP..].to_vec(),
            }),
        })
    }
}

/// The number at a place that is known to be there.
fn number(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn entry(words: &[u64]) -> GcEntry {
    GcEntry {
        hash: words[0],
        rpc: RpcId {
            client: ClientId(words[1]),
            seq: words[2],
        },
    }
}
