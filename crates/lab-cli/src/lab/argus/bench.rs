//! Witnesses with a client's sockets.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use manxdb_curp::ViewTokens;
use manxdb_curp::ids::{ClientId, Epoch, RpcId, Stamp, View, Wlv};
use manxdb_curp::wire::{Datagram, GcEntry, Op, RecordedRequest, Status};
use manxdb_witness::kind::{BPFFS, Place};
use manxdb_witness::{Carrier as _, CarrierKind, ProgramClock, UserCarrier, XdpCarrier};

use super::trial::{Answerer, Trial};
use super::veth::{FAR, FAR_ADDRESS, FarEnd};
use crate::lab::curp::trial::Carrier;

const VIEW: View = View {
    epoch: Epoch(1),
    wlv: Wlv(1),
};
const TOKENS: ViewTokens = ViewTokens {
    record: 0x5EED_0001,
    gc: 0x5EED_0002,
};
/// Who sends.
const CLIENT: ClientId = ClientId(7);
/// Bytes of a recorded command: a SET of 100 bytes.
const COMMAND_BYTES: usize = 130;
/// The first port of witnesses at the far end, where no other process is.
const FAR_PORT: u16 = 7_404;
/// An answer that does not come by then is lost.
const PATIENCE: Duration = Duration::from_secs(5);

/// What lives as long as the witnesses are needed.
enum Kept {
    User(UserCarrier),
    Xdp(Box<XdpCarrier>),
}

/// Witnesses, each with a socket of the client.
pub struct Bench {
    kept: Vec<Kept>,
    /// Where requests go.
    pub sockets: Vec<UdpSocket>,
    /// Where they come in when nobody answers.
    pub own: Vec<UdpSocket>,
    far: Option<FarEnd>,
}

impl Bench {
    /// The witnesses of a trial.
    ///
    /// # Errors
    /// What this machine lacks, in words.
    pub fn new(trial: &Trial) -> Result<Self, String> {
        let mut this = Self {
            kept: Vec::new(),
            sockets: Vec::new(),
            own: Vec::new(),
            far: None,
        };
        for number in 0..trial.witnesses {
            this.add(trial.answerer, number)?;
        }
        Ok(this)
    }

    fn add(&mut self, answerer: Answerer, number: u32) -> Result<(), String> {
        let carrier = match answerer {
            Answerer::Nobody => {
                let own = bind()?;
                let address = own.local_addr().map_err(|error| error.to_string())?;
                self.own.push(own);
                return self.talk_to(address);
            }
            Answerer::Witness(carrier) => carrier,
        };
        let failed = |error: manxdb_witness::CarrierError| error.to_string();
        let mut kept = match carrier {
            Carrier::User => {
                let address = (Ipv4Addr::LOCALHOST, 0).into();
                Kept::User(UserCarrier::bind(address, 1).map_err(failed)?)
            }
            Carrier::XdpGeneric => {
                // The socket is closed, and its port not asked for again by anybody in this namespace.
                let free = bind()?.local_addr().map_err(|error| error.to_string())?;
                let place = place("lo", Ipv4Addr::LOCALHOST.octets(), free.port());
                Kept::Xdp(Box::new(
                    XdpCarrier::open(CarrierKind::XdpGeneric, &place).map_err(failed)?,
                ))
            }
            Carrier::Xdp => {
                if self.far.is_none() {
                    self.far = Some(FarEnd::new(place)?);
                }
                let port = FAR_PORT + u16::try_from(number).unwrap_or(0);
                let far = self.far.as_ref().ok_or("there is no far end")?;
                Kept::Xdp(Box::new(
                    far.open(place(FAR, FAR_ADDRESS, port)).map_err(failed)?,
                ))
            }
        };
        let (is_served, address) = match &mut kept {
            Kept::User(one) => (serve(one), one.address()),
            Kept::Xdp(one) => (serve(one.as_mut()), one.address()),
        };
        if !is_served {
            return Err("a witness does not serve its view".to_owned());
        }
        self.kept.push(kept);
        self.talk_to(address)
    }

    fn talk_to(&mut self, address: SocketAddr) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("no socket to a witness: {error}");
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(failed)?;
        socket.connect(address).map_err(failed)?;
        socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        self.sockets.push(socket);
        Ok(())
    }

    /// Measures the program of the one witness, if it is one.
    ///
    /// # Errors
    /// The kernel's.
    pub fn clock(&self) -> Result<Option<ProgramClock>, String> {
        let Some(Kept::Xdp(carrier)) = self.kept.first() else {
            return Ok(None);
        };
        let clock = carrier.clock().map_err(|error| error.to_string())?;
        Ok(Some(clock))
    }
}

fn serve(carrier: &mut impl manxdb_curp::WitnessCarrier) -> bool {
    carrier.serve(VIEW, TOKENS)
}

fn bind() -> Result<UdpSocket, String> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let socket = socket.map_err(|error| format!("no socket: {error}"))?;
    let patient = socket.set_read_timeout(Some(PATIENCE));
    patient.map_err(|error| error.to_string())?;
    Ok(socket)
}

fn place(interface: &str, address: [u8; 4], port: u16) -> Place {
    Place {
        interface: interface.to_owned(),
        address: (address, port).into(),
        cluster: 1,
        life: 1,
        bpffs: BPFFS.into(),
    }
}

fn question(op: Op, token: u64, seq: u64) -> Datagram {
    Datagram {
        op,
        status: Status::None,
        view: VIEW,
        asks: true,
        token,
        rpc: RpcId {
            client: CLIENT,
            seq,
        },
        hashes: Vec::new(),
        entries: Vec::new(),
        request: None,
    }
}

/// A hash that no other number has.
fn hash_of(seq: u64) -> u64 {
    seq.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The record of a command on a key of its own.
pub fn record(seq: u64) -> Vec<u8> {
    let command = vec![b'x'; COMMAND_BYTES];
    let stamp = Stamp {
        micros: seq,
        seed: seq,
    };
    let datagram = Datagram {
        hashes: vec![hash_of(seq)],
        request: Some(RecordedRequest { stamp, command }),
        ..question(Op::Record, TOKENS.record, seq)
    };
    datagram.encode().unwrap_or_default()
}

/// The collection of records.
pub fn collection(seqs: impl Iterator<Item = u64>) -> Vec<u8> {
    let entry = |seq| GcEntry {
        hash: hash_of(seq),
        rpc: RpcId {
            client: CLIENT,
            seq,
        },
    };
    let datagram = Datagram {
        entries: seqs.map(entry).collect(),
        ..question(Op::Gc, TOKENS.gc, 1)
    };
    datagram.encode().unwrap_or_default()
}

/// What an answer says; nothing when it is none.
pub fn status(bytes: &[u8]) -> Option<Status> {
    let answer = Datagram::decode(bytes).ok()?;
    (!answer.asks).then_some(answer.status)
}

/// The next datagram; nothing when none is there or comes in time.
///
/// # Errors
/// The socket's.
pub fn receive(socket: &UdpSocket, into: &mut [u8]) -> Result<Option<usize>, String> {
    match socket.recv(into) {
        Ok(length) => Ok(Some(length)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Ok(None)
        }
        Err(error) => Err(format!("a witness's answer: {error}")),
    }
}
