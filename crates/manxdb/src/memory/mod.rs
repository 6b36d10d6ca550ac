//! `manxdb memory`: a process that offers its memory to database servers, and does nothing else for
//! them but to shut out who is dead.

mod archiver;
mod metrics;
pub mod remote;

use std::fs::{DirBuilder, File};
use std::io::ErrorKind::NotFound;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use manxdb_fabric::ServerId;
use manxdb_fabric::shm::MemoryServer;
use manxdb_gateway::admin::AdminServer;
use manxdb_rack::disk::{Directory, DiskError, History};
use manxdb_rack::memory::{SharedTransport, Superblock, first_words};

use crate::cli::MemoryArgs;
use crate::config::{self, DiskSettings, Meeting, MemorySettings};
use crate::fault::Fault;
use crate::lock;
use crate::notify::notify;
use crate::process::{raise_descriptor_limit, random_u64, start_log, stop_signal};

pub use self::archiver::run as keep;

/// Runs a memory server until it is told to stop.
///
/// # Errors
/// Whatever keeps it from starting, in one line.
pub fn run(args: &MemoryArgs, matches: &clap::ArgMatches) -> Result<ExitCode, Fault> {
    let settings = config::load_memory(args, matches)?;
    start_log(&settings.log)?;
    // Each client takes three descriptors, and a client that gets none waits to be accepted.
    let _ = raise_descriptor_limit(u64::MAX);
    let mut stop = stop_signal()?;
    let address = settings.admin_listen;
    let admin = TcpListener::bind(address).map_err(|error| Fault::Listen {
        address,
        listener: "the admin page",
        flag: "admin-listen",
        reason: error.to_string(),
    })?;
    let offered = Offered::start(&settings)?;
    let memory = Arc::clone(&offered.memory);
    let disk = settings.disk.as_ref();
    let mut kept = match (&settings.at, disk) {
        (Meeting::Directory(directory), Some(disk)) => Some(archiver::ArchiverProcess::start(
            directory,
            disk,
            &settings.log,
        )?),
        _ => None,
    };
    let sources = metrics::sources(memory, &settings.superblock, disk.zip(kept.as_ref()))?;
    let admin = AdminServer::start(admin, None, sources)
        .map_err(|error| Fault::io("cannot start the admin listener", error))?;
    announce(&settings, &admin);
    let waited = stop.read_exact(&mut [0]);
    waited.map_err(|error| Fault::io("cannot watch signals", error))?;
    notify("STOPPING=1");
    if let Some(kept) = &mut kept {
        kept.end(); // before the memory goes
    }
    drop(admin);
    let clients = offered.memory.clients().len();
    if clients > 0 && kept.is_none() {
        tracing::warn!(clients, "the rows in this memory are lost for its clients");
    }
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

fn announce(settings: &MemorySettings, admin: &AdminServer) {
    let admin = admin.address();
    let Superblock {
        name,
        server,
        geometry,
        ..
    } = &settings.superblock;
    let at = match &settings.at {
        Meeting::Directory(directory) => format!("directory  {}", directory.display()),
        Meeting::Listen(address, remote) => format!("listen     {address} ({})", remote.provider),
    };
    let text = format!(
        "ManxDB {} offers {} MiB of memory to '{name}' as server {server} of {}\n  \
         {at}\n  admin      http://{admin}/\n",
        env!("CARGO_PKG_VERSION"),
        geometry.bytes >> 20,
        geometry.servers,
    );
    // A closed standard output is no reason not to serve.
    let _ = std::io::stdout().write_all(text.as_bytes());
    let _ = std::io::stdout().flush();
    tracing::info!(server, %admin, "memory offered");
    notify("READY=1");
}

/// Looks at files that others may take away.
const LOOKS_MAX: u32 = 8;

/// Memory that others use, as the admin listener sees it.
pub trait Registered: Send + Sync {
    /// Bytes of it.
    fn read(&self, offset: u64, bytes: usize) -> Vec<u8>;

    /// Who uses it.
    fn clients(&self) -> Vec<u64>;

    /// How many were shut out.
    fn ended(&self) -> usize;
}

impl Registered for MemoryServer {
    fn read(&self, offset: u64, bytes: usize) -> Vec<u8> {
        self.read(offset, bytes)
    }

    fn clients(&self) -> Vec<u64> {
        self.clients()
    }

    fn ended(&self) -> usize {
        self.ended()
    }
}

/// Memory that is offered under a number that is nobody else's.
struct Offered {
    memory: Arc<dyn Registered>,
    /// Held for as long as it is offered, in a directory.
    _lock: Option<File>,
}

impl Offered {
    fn start(settings: &MemorySettings) -> Result<Self, Fault> {
        match &settings.at {
            Meeting::Directory(directory) => Self::share(directory, settings),
            Meeting::Listen(address, remote) => Ok(Self {
                memory: remote::offer(*address, remote, settings)?,
                _lock: None,
            }),
        }
    }

    fn share(directory: &Path, settings: &MemorySettings) -> Result<Self, Fault> {
        let superblock = &settings.superblock;
        // Who can open the sockets can write all memory.
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory);
        made.map_err(|error| Fault::io(format!("cannot make {}", directory.display()), error))?;
        let lock = lock(directory, superblock.server)?;
        let socket = SharedTransport::socket(directory, superblock.server);
        // Whoever left one here has not ended in order: the lock was free.
        let _ = std::fs::remove_file(&socket);
        let server = ServerId(superblock.server);
        let first = match &settings.disk {
            None => first_words(superblock, None),
            Some(disk) => on_disk(superblock, disk)?,
        };
        let bytes = superblock.geometry.bytes;
        let memory = MemoryServer::start_filled(&socket, server, bytes, &first);
        let cannot = || {
            format!(
                "cannot offer {bytes} bytes of memory at {}",
                socket.display()
            )
        };
        let memory = memory.map_err(|error| Fault::io(cannot(), error))?;
        if settings.populate {
            let populated = memory.populate();
            populated.map_err(|error| Fault::io(cannot(), error))?;
        }
        Ok(Self {
            memory: Arc::new(memory),
            _lock: Some(lock),
        })
    }
}

/// What memory begins with whose rows are written to a directory: it waits for them if there are any.
///
/// # Errors
/// The directory cannot be used, or is of another database.
fn on_disk(superblock: &Superblock, disk: &DiskSettings) -> Result<Vec<(u64, Vec<u8>)>, Fault> {
    let fault = |why: DiskError| Fault::Other(why.to_string());
    let directory = Directory::open(&disk.directory).map_err(fault)?;
    let superblock = Superblock {
        directory: directory.identity(random_u64()?).map_err(fault)?,
        ..superblock.clone()
    };
    let mut tries = 0;
    let history = loop {
        tries += 1;
        match History::look(&directory, &superblock) {
            // The log archiver of another server may have taken older files away just then.
            Err(DiskError::Io(_, error)) if error.kind() == NotFound && tries < LOOKS_MAX => {}
            found => break found.map_err(fault)?,
        }
    };
    let waiting = history.map(|_| random_u64()).transpose()?;
    Ok(first_words(&superblock, waiting))
}

/// Takes a server's number in a directory.
fn lock(directory: &Path, server: u16) -> Result<File, Fault> {
    lock::take(&directory.join(format!("memory-{server}.lock")), || {
        format!(
            "memory server {server} runs already in {}: give another --server, or another --directory",
            directory.display()
        )
    })
}
