//! A memory server's side: a listener, and connections behind it.

use std::io::{self, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::connections::{Connections, Order, Seen, Shown};
use super::hello::{self, Ask, Denial, Place, Report, What};
use super::listener::{ListenerAddress, PATIENCE, stay_awake};
use super::needs::Refused;
use super::port::{Memory, Port};
use super::provider::{Granted, Provider, memory};
use crate::address::{ServerId, WORD};
use crate::memory::words::Words;

/// Memory that clients on other machines may use.
pub struct MemoryServer {
    address: SocketAddr,
    memory: Arc<Words>,
    orders: Sender<Order>,
    seen: Seen,
    is_over: Arc<AtomicBool>,
    connections: Option<JoinHandle<()>>,
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
    /// Registers so many bytes, all zero, and waits for clients at a listener.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(
        listener_address: &ListenerAddress,
        server: ServerId,
        bytes: u64,
        provider: &Provider,
    ) -> Result<Self, StartError> {
        Self::start_filled(listener_address, server, bytes, &[], provider)
    }

    /// The same with something in memory before anybody is let in: bytes at offsets, multiples of
    /// a word. What lies outside is left out.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start_filled(
        listener_address: &ListenerAddress,
        server: ServerId,
        bytes: u64,
        first: &[(u64, Vec<u8>)],
        provider: &Provider,
    ) -> Result<Self, StartError> {
        let granted = Arc::new(provider.ask()?);
        let failed = |error| StartError::Failed(listener_address.address, error);
        let memory = memory(bytes).map_err(|error| failed(error.into()))?;
        for (offset, first) in first {
            assert!(
                !memory.hold(*offset, WORD) || memory.hold(*offset, first.len() as u64),
                "what memory begins with lies in it whole, or not at all"
            );
            memory.write(*offset, first);
        }
        assert_eq!(
            memory.region().1 as u64,
            bytes,
            "clients hear of all the memory that there is, and of no more"
        );
        let listener = TcpListener::bind(listener_address.address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (orders, ordered) = channel();
        let is_over = Arc::<AtomicBool>::default();
        let porter = Porter {
            token: listener_address.token.clone(),
            granted,
            server,
            memory: Arc::clone(&memory),
            orders: orders.clone(),
        };
        let seen = Seen::default();
        let connections = Connections::new(Arc::clone(&seen));
        let connections =
            spawn("memory-connections", move || connections.run(&ordered)).map_err(failed)?;
        let over = Arc::clone(&is_over);
        let open = move || open(&listener, &porter, &over);
        spawn("memory-listener", open).map_err(failed)?;
        Ok(Self {
            address,
            memory,
            orders,
            seen,
            is_over,
            connections: Some(connections),
        })
    }

    /// Where clients ask: the address given, with the port that the system chose if that was 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Has the system give all of the memory now, which otherwise comes page by page as it is first
    /// written.
    ///
    /// # Errors
    /// The system has not that much.
    pub fn populate(&self) -> io::Result<()> {
        Ok(self.memory.populate()?)
    }

    /// The server's own look at its memory, word by word: none is old while its successors are
    /// new only where the provider keeps to that.
    pub fn read(&self, offset: u64, bytes: usize) -> Vec<u8> {
        self.memory.read(offset, bytes)
    }

    /// Clients that have a key.
    pub fn clients(&self) -> Vec<u64> {
        self.seen().present.iter().copied().collect()
    }

    /// How many clients were shut out.
    pub fn ended(&self) -> usize {
        self.seen().ended
    }

    fn seen(&self) -> MutexGuard<'_, Shown> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shuts a client out: when this returns it writes nothing more. One that is not there, perhaps
    /// not yet, is not let in under this number any more.
    ///
    /// # Errors
    /// [`FenceError`]: it may still write.
    pub fn fence(&self, client: u64) -> Result<(), FenceError> {
        fence(&self.orders, client).map_err(|reason| FenceError { client, reason })
    }
}

/// Orders the thread of the connections to shut a client out; why it may still write.
fn fence(orders: &Sender<Order>, client: u64) -> Report {
    let (reply, replied) = channel();
    let order = Order::Shut { client, reply };
    let over = |_| "the server is over".to_owned();
    orders.send(order).map_err(over)?;
    let silent = |_| "the server's thread does not answer".to_owned();
    replied.recv_timeout(PATIENCE).map_err(silent)?
}

impl Drop for MemoryServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect_timeout(&self.address, PATIENCE); // wakes the listener, which ends
        let _ = self.orders.send(Order::End);
        if let Some(connections) = self.connections.take() {
            let _ = connections.join(); // it has nothing to panic over
        }
    }
}

fn spawn(name: &str, what: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(what)
}

/// Where clients ask. A thread for each: it listens for the client's end, after the first words.
fn open(listener: &TcpListener, porter: &Porter, is_over: &AtomicBool) {
    for stream in listener.incoming() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let porter = porter.clone();
        let _ = spawn("memory-client", move || {
            let _ = porter.receive(stream); // it is gone again
        }); // or the system has no thread for it, and it hears no answer
    }
}

/// Who hears what clients want.
#[derive(Clone)]
struct Porter {
    token: String,
    granted: Arc<Granted>,
    server: ServerId,
    memory: Arc<Words>,
    orders: Sender<Order>,
}

impl Porter {
    fn receive(&self, mut stream: TcpStream) -> io::Result<()> {
        stay_awake(&stream)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let ask = Ask::read(&mut stream)?;
        let refused = (!is_same(&ask.token, &self.token))
            .then(|| "its token is another one than the server's".to_owned());
        match (ask.what, refused) {
            (What::ShutOut, refused) => {
                let report = refused.map_or_else(|| fence(&self.orders, ask.client), Err);
                hello::write_report(&report, &mut stream)
            }
            (What::Admit { .. }, Some(reason)) => {
                hello::write_answer(&Err(Denial::Because(reason)), &mut stream)
            }
            (What::Admit { provider }, None) if provider != self.granted.offer.provider => {
                let here = &self.granted.offer.provider;
                let reason = format!("the provider is '{here}' here and '{provider}' there");
                hello::write_answer(&Err(Denial::Because(reason)), &mut stream)
            }
            (What::Admit { .. }, None) => self.admit(stream, ask.client),
        }
    }

    /// Lets one client in, and watches for its end.
    fn admit(&self, mut stream: TcpStream, client: u64) -> io::Result<()> {
        match self.connection(&stream, client)? {
            Err(denial) => hello::write_answer(&Err(denial), &mut stream),
            Ok((connection, place)) => {
                let answered = hello::write_answer(&Ok(place), &mut stream);
                if answered.is_ok() && stream.set_read_timeout(None).is_ok() {
                    // It has nothing more to say: whatever comes is its end.
                    let _ = stream.read(&mut [0]);
                }
                let _ = self.orders.send(Order::Leave { client, connection }); // or the server is over
                answered
            }
        }
    }

    /// A connection for a client: its number, and what it is reached by.
    fn connection(
        &self,
        stream: &TcpStream,
        client: u64,
    ) -> io::Result<Result<(u64, Place), Denial>> {
        let asked = self.order(|reply| Order::Ask { client, reply })?;
        let opened = asked.and_then(|()| self.port().map_err(Denial::Because));
        let (port, place) = match opened {
            Ok(opened) => opened,
            Err(denial) => return Ok(Err(denial)),
        };
        let stream = stream.try_clone()?;
        let admitted = self.order(|reply| Order::Admit {
            client,
            port,
            stream,
            reply,
        })?;
        Ok(admitted.map(|connection| (connection, place)))
    }

    /// What the thread of the connections answers to an order.
    fn order<T>(&self, order: impl FnOnce(Sender<T>) -> Order) -> io::Result<T> {
        let over = || io::Error::from(io::ErrorKind::ConnectionAborted);
        let (reply, replied) = channel();
        self.orders.send(order(reply)).map_err(|_| over())?;
        replied.recv().map_err(|_| over())
    }

    /// A port for a client, and where it is.
    fn port(&self) -> Result<(Port, Place), String> {
        let key = fresh_key().map_err(|error| format!("no random key: {error}"))?;
        let memory = Arc::clone(&self.memory);
        let port = self.granted.open(memory, Memory::Shared { key });
        let port = port.map_err(|refused| refused.to_string())?;
        let endpoint = port.name().map_err(|code| format!("fi_getname: {code}"))?;
        let place = Place {
            server: self.server,
            key: port.key,
            base: port.base,
            bytes: self.memory.region().1 as u64,
            endpoint,
        };
        assert!(
            place.is_sensible(),
            "a client takes no other place: {place:?}"
        );
        Ok((port, place))
    }
}

/// A number that nobody guesses, and no client has had before.
fn fresh_key() -> io::Result<u64> {
    let mut key = [0; 8];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
    Ok(u64::from_le_bytes(key))
}

/// Whether two tokens are the same; how long that takes says nothing of where they differ.
fn is_same(one: &str, other: &str) -> bool {
    let differ = |(one, other): (u8, u8)| one ^ other;
    let pairs = one.bytes().zip(other.bytes()).map(differ);
    one.len() == other.len() && pairs.fold(0, |all, one| all | one) == 0
}
