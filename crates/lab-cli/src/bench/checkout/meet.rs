//! How the processes of a run find each other: a directory with sockets and ports.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use manxdb_checkout::mailbox::{End, LINE_BYTES, Mailbox};
use manxdb_checkout::two_phase::TcpLine;
use manxdb_checkout::{Plan, PublishedPlan};
use manxdb_fabric::shm::{MemoryServer, SharedMemory};
use manxdb_fabric::{Address, ServerId};

use crate::bench::memories;
use crate::cli::CheckoutShape;

/// A party that lines lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// A resource manager.
    Resource(u16),
    /// The transaction manager.
    Manager,
}

/// Somebody at the asking end of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// A client; the last one checks the books.
    Client(u16),
    /// The transaction manager, for a client.
    Manager(u16),
}

/// The meeting place of a run.
#[derive(Debug, Clone)]
pub struct Meeting {
    directory: PathBuf,
    /// Clients, and one who checks the books.
    pub clients: u16,
    /// Resource managers, or memory servers.
    pub servers: u16,
}

impl Meeting {
    /// A run's.
    pub fn new(directory: &Path, shape: &CheckoutShape) -> Self {
        Self {
            directory: directory.to_owned(),
            clients: shape.clients + 1,
            servers: shape.servers,
        }
    }

    fn place(&self, server: Server, end: &str) -> PathBuf {
        self.directory.join(match server {
            Server::Resource(number) => format!("resource-{number}.{end}"),
            Server::Manager => format!("manager.{end}"),
        })
    }

    /// Connects to all memory servers, which may be starting still.
    ///
    /// # Errors
    /// One of them is not there.
    pub fn memories(&self, client: u64) -> io::Result<SharedMemory> {
        let memory = memories::connect(&self.directory, self.servers, client)?;
        memory.populate()?;
        Ok(memory)
    }

    /// Starts a memory server. All of its memory is there at once, as where a card registers it:
    /// what is measured is not how the system gives pages away.
    ///
    /// # Errors
    /// The system's.
    pub fn serve(&self, number: u16, bytes: u64) -> io::Result<MemoryServer> {
        let server = memories::serve(&self.directory, number, bytes)?;
        let cannot = |error| {
            let what = format!("{bytes} bytes, which fewer --orders make less: {error}");
            io::Error::other(what)
        };
        server.populate().map_err(cannot)?;
        Ok(server)
    }

    /// Says on which port a server takes connections.
    ///
    /// # Errors
    /// The system's.
    pub fn listen(&self, server: Server) -> io::Result<TcpListener> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        // Whole or not there at all.
        let unfinished = self.place(server, "unfinished");
        fs::write(&unfinished, port.to_string())?;
        fs::rename(unfinished, self.place(server, "port"))?;
        Ok(listener)
    }

    /// Connects to a server by TCP.
    ///
    /// # Errors
    /// It is not there.
    pub fn connect(&self, server: Server) -> io::Result<TcpLine> {
        let port = fs::read_to_string(self.place(server, "port"))?.parse::<u16>();
        let port = port.map_err(io::Error::other)?;
        TcpLine::new(TcpStream::connect((Ipv4Addr::LOCALHOST, port))?)
    }

    /// All who may ask a server.
    pub fn askers(&self, server: Server) -> Vec<Asker> {
        let clients = (0..self.clients).map(Asker::Client);
        match server {
            Server::Manager => clients.collect(),
            Server::Resource(_) => {
                let managers = (0..self.clients).map(Asker::Manager);
                clients.chain(managers).collect()
            }
        }
    }

    fn mailbox(&self, asker: Asker) -> Address {
        let number = match asker {
            Asker::Client(number) => number,
            Asker::Manager(number) => self.clients + number,
        };
        Address {
            server: ServerId(0),
            offset: u64::from(number) * LINE_BYTES,
        }
    }

    /// Makes the memory with a server's mailboxes.
    ///
    /// # Errors
    /// The system has none.
    pub fn mailboxes(&self, server: Server) -> io::Result<MemoryServer> {
        let bytes = self.askers(server).len() as u64 * LINE_BYTES;
        MemoryServer::start(&self.place(server, "mail"), ServerId(0), bytes)
    }

    /// An end of a line through a server's memory.
    ///
    /// # Errors
    /// The server is not there.
    pub fn line(
        &self,
        server: Server,
        asker: Asker,
        end: End,
    ) -> io::Result<Mailbox<SharedMemory>> {
        let at = self.mailbox(asker);
        let place = self.place(server, "mail");
        let mut memory = SharedMemory::default();
        let client = at.offset / LINE_BYTES * 2 + u64::from(end == End::Answering);
        memory.connect(&place, client).map_err(io::Error::other)?;
        Ok(Mailbox::new(memory, at, end))
    }
}

/// Where the records of a run are.
///
/// # Errors
/// Sizes that cannot be.
pub fn plan(shape: &CheckoutShape) -> Result<Plan, String> {
    let plan = Plan {
        servers: shape.servers,
        products: shape.products,
        versions: usize::from(shape.versions),
        clients: shape.clients,
        orders: shape.orders_each(),
        log_copies: shape.logs,
    };
    plan.check().map_err(|error| error.to_string())
}

/// The same for the published protocol.
pub fn published(shape: &CheckoutShape) -> PublishedPlan {
    PublishedPlan {
        servers: shape.servers,
        products: shape.products,
        clients: shape.clients,
        orders: shape.orders_each(),
    }
}
