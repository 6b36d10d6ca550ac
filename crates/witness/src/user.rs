//! The carrier in a process: a thread that reads datagrams, asks the table, and answers.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use manxdb_curp::ids::View;
use manxdb_curp::table::Recorded;
use manxdb_curp::wire::{Datagram, GcEntry};
use manxdb_curp::{MemoryCarrier, ViewTokens, WitnessCarrier};

use crate::counts::{Count, Counts};
use crate::error::CarrierError;
use crate::kind::{Carrier, CarrierKind};
use crate::layout::{SETS, WAYS};

/// More than any datagram that fits into one packet: a longer one is read cut off, and refused.
const READ_BYTES: usize = 2_048;

/// Answers bytes that came in a datagram, as all carriers do, and counts them. Nothing is answered to
/// bytes that are no question.
#[must_use]
pub fn answer_bytes(
    carrier: &mut MemoryCarrier,
    counts: &mut Counts,
    bytes: &[u8],
) -> Option<Vec<u8>> {
    let asked = match Datagram::decode(bytes) {
        Ok(datagram) if datagram.asks => datagram,
        Ok(_) => {
            counts.add(Count::Answer);
            return None;
        }
        Err(error) => {
            counts.add(Count::of_error(error));
            return None;
        }
    };
    let answer = carrier.answer(&asked)?;
    assert!(!answer.asks, "an answer asks nothing");
    assert_eq!(answer.token, 0, "an answer shows no token");
    counts.add(Count::of_status(answer.status));
    let encoded = answer.encode();
    assert!(encoded.is_some(), "an answer fits into one packet");
    encoded
}

struct State {
    carrier: MemoryCarrier,
    counts: Counts,
}

struct Shared {
    state: Mutex<State>,
    socket: UdpSocket,
    stops: AtomicBool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut bytes = [0; READ_BYTES];
        while !self.stops.load(Ordering::Acquire) {
            let Ok((length, from)) = self.socket.recv_from(&mut bytes) else {
                continue; // an answer that nobody took is reported here
            };
            let answer = {
                let mut state = self.state();
                let State { carrier, counts } = &mut *state;
                answer_bytes(carrier, counts, &bytes[..length])
            };
            if let Some(answer) = answer {
                // Lost like any datagram.
                let _ = self.socket.send_to(&answer, from);
            }
        }
    }
}

/// A witness's carrier in a thread of this process.
pub struct UserCarrier {
    shared: Arc<Shared>,
    address: SocketAddr,
    life: u64,
    thread: Option<JoinHandle<()>>,
}

impl UserCarrier {
    /// Answers datagrams at `address`; a port of 0 is any.
    ///
    /// # Errors
    /// [`CarrierError::Socket`].
    pub fn bind(address: SocketAddr, life: u64) -> Result<Self, CarrierError> {
        let size = (usize::try_from(SETS).unwrap_or(1), WAYS);
        Self::with(address, life, MemoryCarrier::new(size))
    }

    /// As [`Self::bind`], with tables of another size.
    ///
    /// # Errors
    /// [`CarrierError::Socket`].
    pub fn with(
        address: SocketAddr,
        life: u64,
        carrier: MemoryCarrier,
    ) -> Result<Self, CarrierError> {
        let failed = |source: io::Error| CarrierError::Socket { address, source };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                carrier,
                counts: Counts::default(),
            }),
            socket,
            stops: AtomicBool::new(false),
        });
        let runs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("witness".to_owned());
        let thread = thread.spawn(move || runs.run()).map_err(failed)?;
        Ok(Self {
            shared,
            address,
            life,
            thread: Some(thread),
        })
    }

    /// Ends the thread.
    fn stop(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        self.shared.stops.store(true, Ordering::Release);
        let mut to = self.address;
        if to.ip().is_unspecified() {
            let loopback = match to {
                SocketAddr::V4(_) => std::net::IpAddr::from([127, 0, 0, 1]),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            };
            to.set_ip(loopback);
        }
        // Wakes it up. When that is lost the thread ends with the process.
        if self.shared.socket.send_to(&[], to).is_ok() {
            let _ = thread.join();
        }
    }
}

impl Drop for UserCarrier {
    fn drop(&mut self) {
        self.stop();
    }
}

impl WitnessCarrier for UserCarrier {
    fn serve(&mut self, view: View, tokens: ViewTokens) -> bool {
        self.shared.state().carrier.serve(view, tokens)
    }

    fn end(&mut self, keep: View) {
        self.shared.state().carrier.end(keep);
    }

    fn give_up(&mut self, in_use: Option<View>, next: View) {
        self.shared.state().carrier.give_up(in_use, next);
    }

    fn freeze(&mut self, view: View) -> Option<Vec<Recorded>> {
        self.shared.state().carrier.freeze(view)
    }

    fn find(&self, view: View, entry: &GcEntry) -> Option<Recorded> {
        self.shared.state().carrier.find(view, entry)
    }

    fn answer(&mut self, _asked: &Datagram) -> Option<Datagram> {
        None // its thread does
    }

    fn records(&self, view: View) -> usize {
        self.shared.state().carrier.records(view)
    }

    fn refused(&self) -> u64 {
        self.shared.state().counts.refused()
    }

    fn check(&self) -> Result<(), String> {
        self.shared.state().carrier.check()
    }

    fn digest(&self) -> u64 {
        self.shared.state().carrier.digest()
    }
}

impl Carrier for UserCarrier {
    fn kind(&self) -> CarrierKind {
        CarrierKind::User
    }

    fn address(&self) -> SocketAddr {
        self.address
    }

    fn life(&self) -> u64 {
        self.life
    }

    fn tokens(&self, view: View) -> Option<ViewTokens> {
        self.shared.state().carrier.tokens(view)
    }

    fn counts(&self) -> Counts {
        self.shared.state().counts
    }

    fn remove(&mut self) -> Result<(), CarrierError> {
        self.stop();
        Ok(())
    }
}
