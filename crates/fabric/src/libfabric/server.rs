//! A memory server's side: a door, and rooms behind it.

use std::io::{self, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::hello::{self, Ask};
use super::needs::Refused;
use super::provider::{Provider, memory};
use super::rooms::{Order, Present, Rooms};
use crate::address::ServerId;
use crate::memory::words::Words;

/// Who says nothing for this long is none: a client at the door, the thread of the rooms.
const PATIENCE: Duration = Duration::from_secs(5);

/// Memory that clients on other machines may use.
pub struct MemoryServer {
    address: SocketAddr,
    memory: Arc<Words>,
    orders: Sender<Order>,
    present: Present,
    is_over: Arc<AtomicBool>,
    rooms: Option<JoinHandle<()>>,
}

/// A memory server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The provider is not what it should be.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The system has no such memory, or the address is somebody else's.
    #[error("a memory server at {0}: {1}")]
    Failed(SocketAddr, io::Error),
}

/// A client is not shut out: it may still write.
#[derive(Debug, thiserror::Error)]
#[error("client {client} cannot be shut out: {reason}")]
pub struct FenceError {
    /// Which.
    pub client: u64,
    /// What libfabric says.
    pub reason: String,
}

impl MemoryServer {
    /// Registers so many bytes, all zero, and waits for clients at an address.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(
        door: SocketAddr,
        server: ServerId,
        bytes: u64,
        provider: &Provider,
    ) -> Result<Self, StartError> {
        let granted = provider.ask()?;
        let failed = |error| StartError::Failed(door, error);
        let memory = memory(bytes).map_err(|error| failed(error.into()))?;
        let listener = TcpListener::bind(door).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (orders, ordered) = channel();
        let name = granted.offer.provider.clone();
        let present = Present::default();
        let rooms = Rooms::new(granted, server, Arc::clone(&memory), Arc::clone(&present));
        let is_over = Arc::<AtomicBool>::default();
        let door = Door {
            listener,
            provider: name,
            orders: orders.clone(),
            is_over: Arc::clone(&is_over),
        };
        let rooms = spawn("memory-rooms", move || rooms.run(&ordered)).map_err(failed)?;
        spawn("memory-door", move || door.open()).map_err(failed)?;
        Ok(Self {
            address,
            memory,
            orders,
            present,
            is_over,
            rooms: Some(rooms),
        })
    }

    /// Where clients ask: the address given, with the port that the system chose if that was 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The server's own look at its memory, word by word: none is old while its successors are
    /// new only where the provider keeps to that.
    pub fn read(&self, offset: u64, bytes: usize) -> Vec<u8> {
        self.memory.read(offset, bytes)
    }

    /// Clients that have a key.
    pub fn clients(&self) -> Vec<u64> {
        let present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        present.iter().copied().collect()
    }

    /// Shuts a client out: when this returns it writes nothing more. One that is not there, perhaps
    /// not yet, is not let in under this number any more.
    ///
    /// # Errors
    /// [`FenceError`]: it may still write.
    pub fn fence(&self, client: u64) -> Result<(), FenceError> {
        let (reply, replied) = channel();
        let kept = |reason| FenceError { client, reason };
        let silent = |_| kept("the server's thread does not answer".to_owned());
        let order = Order::Shut { client, reply };
        self.orders
            .send(order)
            .map_err(|_| kept("the server is over".to_owned()))?;
        replied
            .recv_timeout(PATIENCE)
            .map_err(silent)?
            .map_err(kept)
    }
}

impl Drop for MemoryServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect_timeout(&self.address, PATIENCE); // wakes the door, which ends
        let _ = self.orders.send(Order::End);
        if let Some(rooms) = self.rooms.take() {
            let _ = rooms.join(); // it has nothing to panic over
        }
    }
}

fn spawn(name: &str, what: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(what)
}

/// Where clients ask.
struct Door {
    listener: TcpListener,
    provider: String,
    orders: Sender<Order>,
    is_over: Arc<AtomicBool>,
}

impl Door {
    /// A thread for each client: it listens for the client's end, after the first words.
    fn open(self) {
        for stream in self.listener.incoming() {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let Ok(stream) = stream else { continue };
            let (provider, orders) = (self.provider.clone(), self.orders.clone());
            let _ = spawn("memory-client", move || {
                let _ = receive(stream, &provider, &orders); // it is gone again
            }); // or the system has no thread for it, and it hears no answer
        }
    }
}

/// Lets one client in, and watches for its end.
fn receive(mut stream: TcpStream, provider: &str, orders: &Sender<Order>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let ask = Ask::read(&mut stream)?;
    if ask.provider != provider {
        let reason = format!(
            "the provider is '{provider}' here and '{}' there",
            ask.provider
        );
        return hello::write_answer(&Err(reason), &mut stream);
    }
    let (reply, replied) = channel();
    let order = Order::Admit {
        client: ask.client,
        stream: stream.try_clone()?,
        reply,
    };
    let over = || io::Error::from(io::ErrorKind::ConnectionAborted);
    orders.send(order).map_err(|_| over())?;
    let (room, answer) = replied.recv().map_err(|_| over())?;
    let is_in = answer.is_ok();
    let answered = hello::write_answer(&answer, &mut stream);
    if is_in {
        if answered.is_ok() && stream.set_read_timeout(None).is_ok() {
            // It has nothing more to say: whatever comes is its end.
            let _ = stream.read(&mut [0]);
        }
        let client = ask.client;
        let _ = orders.send(Order::Leave { client, room }); // or the server is over
    }
    answered
}
