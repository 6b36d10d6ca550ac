//! The maps of a witness in the kernel, byte by byte. Little-endian, as the machine that runs the program.
//!
//! | map | entries | value |
//! |---|---|---|
//! | `config` | 1 | [`Config`]: where the witness is, and whose |
//! | `views` | 1 | [`ViewSlot`] × [`VIEWS`]; written by the loader alone |
//! | `rounds` | [`VIEWS`] | collections of a view so far (u64) |
//! | `sets` | [`SETS`] | a lock (u32), 4 unused bytes, [`Slot`] × [`WAYS`] |
//! | `payloads` | sets × ways | the request of a slot: stamp and command |
//! | `crc_tables` | 1 | 8 × 256 × u32 |
//! | `counters` | [`COUNTERS`], of each processor | u64 |
//!
//! A key's set is the low bits of its hash. A slot is of the view whose generation it has. No two views
//! of a witness ever have the same one, so what a view leaves behind when it ends is nobody's.
//!
//! `bpf/layout.h` has the same numbers, and a test compares them.

use std::collections::BTreeSet;

use manxdb_curp::ViewTokens;
use manxdb_curp::carrier::VIEWS_MAX;
use manxdb_curp::ids::{ClientId, Epoch, RpcId, View, Wlv};

/// Part of the names of pins: a program never meets maps of another layout.
pub const LAYOUT_VERSION: u64 = 1;
/// Views at a time.
pub const VIEWS: usize = VIEWS_MAX;
/// Sets of slots.
pub const SETS: u32 = 4_096;
/// Slots of a set.
pub const WAYS: usize = 4;
/// Most bytes of a request: a datagram with one key has no room for more.
pub const PAYLOAD_BYTES: usize = 1_416;
/// Bytes of a view's entry.
pub const VIEW_BYTES: usize = 40;
/// Bytes of all views' entries.
pub const VIEWS_BYTES: usize = VIEW_BYTES * VIEWS;
/// Bytes of a slot.
pub const SLOT_BYTES: usize = 40;
/// Bytes of a set: the lock comes first.
pub const SET_BYTES: usize = 8 + SLOT_BYTES * WAYS;
/// Bytes of [`Config`].
pub const CONFIG_BYTES: usize = 32;
/// Bytes of the tables of the checksum.
pub const CRC_TABLES_BYTES: usize = 8 * 256 * 4;
/// Counters.
pub const COUNTERS: usize = 17;
/// Ports: a witness is found by its own.
pub const PORTS: u32 = 65_536;

/// A slot is empty; its names are a tombstone or nobody's.
pub const SLOT_EMPTY: u8 = 0;
/// A processor writes to it.
pub const SLOT_BUSY: u8 = 1;
/// A slot has a record.
pub const SLOT_FULL: u8 = 2;

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Where a witness is and whose: written once, when its maps are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Config {
    /// IPv4 address that datagrams have to be sent to; 0.0.0.0 is any.
    pub address: [u8; 4],
    /// UDP port.
    pub port: u16,
    /// Of which cluster.
    pub cluster: u64,
    /// The life of the witness: as long as its maps, whatever process looks after them.
    pub life: u64,
    /// [`LAYOUT_VERSION`]; 0 in maps that were just made.
    pub layout: u64,
}

impl Config {
    /// As it lies in the map.
    #[must_use]
    pub fn encode(&self) -> [u8; CONFIG_BYTES] {
        let mut bytes = [0; CONFIG_BYTES];
        bytes[..4].copy_from_slice(&self.address);
        bytes[4..6].copy_from_slice(&self.port.to_be_bytes());
        let numbers = [self.cluster, self.life, self.layout];
        for (to, number) in bytes[8..].chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Reads one.
    #[must_use]
    pub fn decode(bytes: &[u8; CONFIG_BYTES]) -> Self {
        Self {
            address: [bytes[0], bytes[1], bytes[2], bytes[3]],
            port: u16::from_be_bytes([bytes[4], bytes[5]]),
            cluster: u64_at(bytes, 8),
            life: u64_at(bytes, 16),
            layout: u64_at(bytes, 24),
        }
    }
}

/// A view as the program sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewSlot {
    /// Which.
    pub view: View,
    /// What datagrams have to show.
    pub tokens: ViewTokens,
    /// Names its slots.
    pub generation: u32,
    /// Whether it is served.
    pub live: bool,
    /// Whether it is frozen.
    pub frozen: bool,
}

impl ViewSlot {
    /// Nobody's.
    pub const NONE: Self = Self {
        view: View {
            epoch: Epoch(0),
            wlv: Wlv(0),
        },
        tokens: ViewTokens { record: 0, gc: 0 },
        generation: 0,
        live: false,
        frozen: false,
    };

    fn encode(&self, bytes: &mut [u8]) {
        assert_eq!(bytes.len(), VIEW_BYTES, "a view has its own bytes");
        assert!(
            !self.live || self.generation > 0,
            "the slots of a view that is served have a generation"
        );
        assert!(
            self.live || !self.frozen || self.generation > 0,
            "a view was begun before it froze"
        );
        bytes[..8].copy_from_slice(&self.view.epoch.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.tokens.record.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.tokens.gc.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.view.wlv.0.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.generation.to_le_bytes());
        bytes[32] = u8::from(self.live);
        bytes[33] = u8::from(self.frozen);
    }

    fn decode(bytes: &[u8]) -> Self {
        Self {
            view: View {
                epoch: Epoch(u64_at(bytes, 0)),
                wlv: Wlv(u32_at(bytes, 24)),
            },
            tokens: ViewTokens {
                record: u64_at(bytes, 8),
                gc: u64_at(bytes, 16),
            },
            generation: u32_at(bytes, 28),
            live: bytes[32] != 0,
            frozen: bytes[33] != 0,
        }
    }
}

/// All views, as they lie in the map.
#[must_use]
pub fn encode_views(views: &[ViewSlot; VIEWS]) -> [u8; VIEWS_BYTES] {
    let mut bytes = [0; VIEWS_BYTES];
    let live = views.iter().filter(|slot| slot.live);
    let names: BTreeSet<View> = live.clone().map(|slot| slot.view).collect();
    assert_eq!(names.len(), live.count(), "a view is served once");
    for (view, bytes) in views.iter().zip(bytes.chunks_exact_mut(VIEW_BYTES)) {
        view.encode(bytes);
    }
    bytes
}

/// Reads all views.
#[must_use]
pub fn decode_views(bytes: &[u8; VIEWS_BYTES]) -> [ViewSlot; VIEWS] {
    let mut views = [ViewSlot::NONE; VIEWS];
    for (view, bytes) in views.iter_mut().zip(bytes.chunks_exact(VIEW_BYTES)) {
        *view = ViewSlot::decode(bytes);
    }
    views
}

/// A slot, without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slot {
    /// Of one key.
    pub hash: u64,
    /// The operation.
    pub rpc: RpcId,
    /// The collections that its view had when it was recorded, reported or collected.
    pub round: u64,
    /// Names its view; 0 is no view.
    pub generation: u32,
    /// Bytes of its payload.
    pub length: u16,
    /// [`SLOT_EMPTY`], [`SLOT_BUSY`] or [`SLOT_FULL`].
    pub state: u8,
}

/// Reads the slots of a set.
#[must_use]
pub fn decode_set(bytes: &[u8; SET_BYTES]) -> [Slot; WAYS] {
    let mut slots = [Slot::default(); WAYS];
    for (slot, bytes) in slots.iter_mut().zip(bytes[8..].chunks_exact(SLOT_BYTES)) {
        *slot = Slot {
            hash: u64_at(bytes, 0),
            rpc: RpcId {
                client: ClientId(u64_at(bytes, 8)),
                seq: u64_at(bytes, 16),
            },
            round: u64_at(bytes, 24),
            generation: u32_at(bytes, 32),
            length: u16_at(bytes, 36),
            state: bytes[38],
        };
    }
    slots
}

/// The set of a hash.
#[must_use]
pub fn set_of(hash: u64) -> u32 {
    let set = u32::try_from(hash & u64::from(SETS - 1)).unwrap_or(0);
    assert!(set < SETS, "a hash has a set");
    set
}

#[cfg(test)]
mod tests {
    use manxdb_curp::wire;

    use super::*;

    /// The numbers that the programs are compiled with.
    fn of_header(name: &str) -> u64 {
        let header = include_str!("../bpf/layout.h");
        let wanted = format!("#define {name} ");
        let line = header.lines().find(|line| line.starts_with(&wanted));
        let value = line.unwrap_or_else(|| panic!("no {name} in layout.h"));
        let value = value[wanted.len()..].trim();
        match value.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
            None => value.parse().unwrap(),
        }
    }

    #[test]
    fn the_programs_and_the_loader_agree_on_every_number() {
        let magic = u64::from(u32::from_le_bytes(wire::MAGIC));
        for (name, here) in [
            ("MAGIC", magic),
            ("VERSION", u64::from(wire::VERSION)),
            ("HEADER_BYTES", wire::HEADER as u64),
            ("DATAGRAM_MAX", wire::DATAGRAM_MAX as u64),
            ("KEYS_MAX", wire::KEYS_MAX as u64),
            ("ENTRIES_MAX", wire::ENTRIES_MAX as u64),
            ("OP_RECORD", wire::Op::Record as u64),
            ("OP_GC", wire::Op::Gc as u64),
            ("OP_PROBE", wire::Op::Probe as u64),
            ("STATUS_ACCEPTED", wire::Status::Accepted as u64),
            ("STATUS_CONFLICT", wire::Status::Conflict as u64),
            ("STATUS_FULL", wire::Status::Full as u64),
            ("STATUS_WRONG_LIFE", wire::Status::WrongLife as u64),
            ("STATUS_FROZEN", wire::Status::Frozen as u64),
            ("STATUS_BAD", wire::Status::Bad as u64),
            ("STATUS_BUSY", wire::Status::Busy as u64),
            ("STATUS_GC_OK", wire::Status::GcOk as u64),
            ("STATUS_CLEAN", wire::Status::Clean as u64),
            ("STATUS_DIRTY", wire::Status::Dirty as u64),
            ("VIEWS_MAX", VIEWS as u64),
            ("SETS", u64::from(SETS)),
            ("WAYS", WAYS as u64),
            ("SLOTS", u64::from(SETS) * WAYS as u64),
            ("PAYLOAD_BYTES", PAYLOAD_BYTES as u64),
            ("SLOT_EMPTY", u64::from(SLOT_EMPTY)),
            ("SLOT_BUSY", u64::from(SLOT_BUSY)),
            ("SLOT_FULL", u64::from(SLOT_FULL)),
            ("PORTS", u64::from(PORTS)),
            ("COUNTERS", COUNTERS as u64),
            ("COUNT_LENGTH", crate::Count::Length as u64),
            ("COUNT_FOREIGN", crate::Count::Foreign as u64),
            ("COUNT_CHECKSUM", crate::Count::Checksum as u64),
            ("COUNT_FIELD", crate::Count::Field as u64),
            ("COUNT_ANSWER", crate::Count::Answer as u64),
            ("COUNT_FAILED", crate::Count::Failed as u64),
        ] {
            assert_eq!(of_header(name), here, "{name}");
        }
        // The largest request fits.
        const { assert!(PAYLOAD_BYTES >= wire::DATAGRAM_MAX - wire::HEADER - 8 - 4) };
    }

    #[test]
    fn what_is_written_to_a_map_reads_back() {
        let config = Config {
            address: [10, 77, 0, 2],
            port: 7_404,
            cluster: 5,
            life: 6,
            layout: LAYOUT_VERSION,
        };
        assert_eq!(Config::decode(&config.encode()), config);
        assert_eq!(config.encode()[4..6], [0x1C, 0xEC], "the network's order");
        let mut views = [ViewSlot::NONE; VIEWS];
        views[3] = ViewSlot {
            view: View {
                epoch: Epoch(1),
                wlv: Wlv(2),
            },
            tokens: ViewTokens { record: 3, gc: 4 },
            generation: 5,
            live: true,
            frozen: true,
        };
        assert_eq!(decode_views(&encode_views(&views)), views);
    }
}
