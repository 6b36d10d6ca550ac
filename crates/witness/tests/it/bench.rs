//! A carrier with a client's socket.

use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use manxdb_curp::ViewTokens;
use manxdb_curp::ids::{ClientId, Epoch, RpcId, Stamp, View, Wlv};
use manxdb_curp::wire::{Datagram, GcEntry, Op, RecordedRequest, Status};
use manxdb_witness::{Carrier, CarrierKind, UserCarrier};

use crate::namespace::{self, FarEnd};

/// The view that a bench begins with.
pub const VIEW: View = View {
    epoch: Epoch(3),
    wlv: Wlv(4),
};
/// Its tokens.
pub const TOKENS: ViewTokens = ViewTokens {
    record: 0x1111_2222_3333_4444,
    gc: 0x5555_6666_7777_8888,
};

pub fn rpc(client: u64, seq: u64) -> RpcId {
    let client = ClientId(client);
    RpcId { client, seq }
}

pub fn entry(hash: u64, rpc: RpcId) -> GcEntry {
    GcEntry { hash, rpc }
}

/// What is asked of a witness.
pub fn question(op: Op, hashes: &[u64], rpc: RpcId) -> Datagram {
    Datagram {
        op,
        status: Status::None,
        view: VIEW,
        asks: true,
        token: TOKENS.record,
        rpc,
        hashes: hashes.to_vec(),
        entries: Vec::new(),
        request: None,
    }
}

pub fn record(hashes: &[u64], rpc: RpcId, command: &[u8]) -> Datagram {
    let stamp = Stamp {
        micros: rpc.seq,
        seed: !rpc.seq,
    };
    let command = command.to_vec();
    Datagram {
        request: Some(RecordedRequest { stamp, command }),
        ..question(Op::Record, hashes, rpc)
    }
}

pub fn collection(entries: &[GcEntry]) -> Datagram {
    Datagram {
        token: TOKENS.gc,
        entries: entries.to_vec(),
        ..question(Op::Gc, &[], rpc(0, 1))
    }
}

pub struct Bench {
    pub carrier: Box<dyn Carrier>,
    pub socket: UdpSocket,
    probes: u64,
    _far: Option<FarEnd>,
}

impl Bench {
    /// With a view already begun.
    pub fn new(mut carrier: Box<dyn Carrier>, far: Option<FarEnd>) -> Self {
        assert!(carrier.serve(VIEW, TOKENS));
        let socket = client(&*carrier);
        Self {
            carrier,
            socket,
            probes: 0,
            _far: far,
        }
    }

    pub fn user() -> Self {
        let address = ([127, 0, 0, 1], 0).into();
        Self::new(Box::new(UserCarrier::bind(address, 7).unwrap()), None)
    }

    pub fn generic(bpffs: &Path) -> Option<Self> {
        let carrier = namespace::open(CarrierKind::XdpGeneric, &namespace::place(bpffs))?;
        Some(Self::new(Box::new(carrier), None))
    }

    pub fn native(bpffs: &Path) -> Option<Self> {
        let (carrier, far) = namespace::native(bpffs)?;
        Some(Self::new(carrier, Some(far)))
    }

    /// Asks, and waits for the answer: there has to be one.
    pub fn ask(&self, asked: &Datagram) -> Datagram {
        let answer = ask(&self.socket, asked);
        assert_eq!((answer.op, answer.view), (asked.op, asked.view));
        assert_eq!(answer.rpc, asked.rpc, "an answer names its question");
        assert!(
            !answer.asks && answer.token == 0,
            "an answer shows no token"
        );
        answer
    }

    pub fn record(&self, hashes: &[u64], rpc: RpcId, command: &str) -> Status {
        self.ask(&record(hashes, rpc, command.as_bytes())).status
    }

    pub fn collect(&self, entries: &[GcEntry]) -> Vec<GcEntry> {
        let answer = self.ask(&collection(entries));
        assert_eq!(answer.status, Status::GcOk);
        answer.entries
    }

    pub fn is_clean(&self, hashes: &[u64]) -> bool {
        let answer = self.ask(&question(Op::Probe, hashes, rpc(9, 9)));
        assert!(matches!(answer.status, Status::Clean | Status::Dirty));
        answer.status == Status::Clean
    }

    /// Sends bytes that must not be answered: what comes back next is the answer to a probe behind them.
    pub fn send_to_nobody(&mut self, bytes: &[u8]) {
        self.socket.send(bytes).unwrap();
        self.probes += 1;
        let probe = question(Op::Probe, &[], rpc(8, self.probes));
        assert_eq!(self.ask(&probe).status, Status::Clean);
    }
}

/// A socket that talks to a carrier.
pub fn client(carrier: &dyn Carrier) -> UdpSocket {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect(carrier.address()).unwrap();
    // Only a test that fails waits so long.
    let patience = Some(Duration::from_secs(10));
    socket.set_read_timeout(patience).unwrap();
    socket
}

pub fn ask(socket: &UdpSocket, asked: &Datagram) -> Datagram {
    let bytes = asked.encode().unwrap();
    // A carrier in the kernel answers what is sent while nobody listens at the port; where a program is
    // missing, the kernel says so here.
    socket.send(&bytes).unwrap();
    let mut answer = [0; 2_048];
    let length = socket.recv(&mut answer).unwrap();
    Datagram::decode(&answer[..length]).unwrap()
}

/// Asks as a client does: again until there is an answer to this question.
pub fn ask_patiently(socket: &UdpSocket, asked: &Datagram) -> Datagram {
    let whole = socket.read_timeout().unwrap();
    let bytes = asked.encode().unwrap();
    let mut answer = [0; 2_048];
    socket
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    for _ in 0..100 {
        socket.send(&bytes).unwrap();
        while let Ok(length) = socket.recv(&mut answer) {
            let answer = Datagram::decode(&answer[..length]).unwrap();
            if (answer.op, answer.rpc) == (asked.op, asked.rpc) {
                socket.set_read_timeout(whole).unwrap();
                return answer;
            }
        }
    }
    panic!("no answer to {asked:?}");
}

/// The suite `body` on each carrier, as tests of the module it is named in.
#[macro_export]
macro_rules! on_every_carrier {
    ($module:ident, $body:path) => {
        #[test]
        fn in_a_process() {
            $body(&mut $crate::bench::Bench::user());
        }

        #[test]
        fn in_the_kernel_behind_the_driver() {
            let test = concat!(stringify!($module), "::in_the_kernel_behind_the_driver");
            $crate::namespace::within(test, |bpffs| {
                if let Some(mut bench) = $crate::bench::Bench::generic(bpffs) {
                    $body(&mut bench);
                }
            });
        }

        #[test]
        fn in_the_driver() {
            let test = concat!(stringify!($module), "::in_the_driver");
            $crate::namespace::within(test, |bpffs| {
                if let Some(mut bench) = $crate::bench::Bench::native(bpffs) {
                    $body(&mut bench);
                }
            });
        }
    };
}
