//! `manxdb memory`: a process that offers its memory to database servers, and does nothing else for
//! them but to shut out who is dead.

mod metrics;

use std::fs::{DirBuilder, File};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use manxdb_fabric::ServerId;
use manxdb_fabric::shm::MemoryServer;
use manxdb_gateway::admin::AdminServer;
use manxdb_rack::memory::{SharedWay, Superblock};

use crate::cli::MemoryArgs;
use crate::cluster::stop_signal;
use crate::config::{self, MemorySettings};
use crate::fault::Fault;
use crate::lock;
use crate::notify::notify;
use crate::serve::start_log;

/// Runs a memory server until it is told to stop.
///
/// # Errors
/// Whatever keeps it from starting, in one line.
pub fn run(args: &MemoryArgs, matches: &clap::ArgMatches) -> Result<ExitCode, Fault> {
    let settings = config::load_memory(args, matches)?;
    start_log(&settings.log)?;
    let mut stop = stop_signal()?;
    let address = settings.admin_listen;
    let admin = TcpListener::bind(address).map_err(|error| Fault::Listen {
        address,
        door: "the admin page",
        flag: "admin-listen",
        reason: error.to_string(),
    })?;
    let offered = Offered::start(&settings)?;
    let sources = metrics::sources(Arc::clone(&offered.memory), &settings.superblock)?;
    let admin = AdminServer::start(admin, sources)
        .map_err(|error| Fault::io("cannot start the admin door", error))?;
    announce(&settings, &admin);
    let waited = stop.read_exact(&mut [0]);
    waited.map_err(|error| Fault::io("cannot watch signals", error))?;
    notify("STOPPING=1");
    drop(admin);
    let clients = offered.memory.clients().len();
    if clients > 0 {
        tracing::warn!(clients, "the rows in this memory are lost for its clients");
    }
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

fn announce(settings: &MemorySettings, admin: &AdminServer) {
    let admin = admin.address().unwrap_or(settings.admin_listen);
    let Superblock {
        name,
        server,
        geometry,
        ..
    } = &settings.superblock;
    let text = format!(
        "ManxDB {} offers {} MiB of memory to '{name}' as server {server} of {}\n  \
         directory  {}\n  admin      http://{admin}/\n",
        env!("CARGO_PKG_VERSION"),
        geometry.bytes >> 20,
        geometry.servers,
        settings.directory.display(),
    );
    // A closed standard output is no reason not to serve.
    let _ = std::io::stdout().write_all(text.as_bytes());
    let _ = std::io::stdout().flush();
    tracing::info!(server, %admin, "memory offered");
    notify("READY=1");
}

/// Memory that is offered under a number that is nobody else's.
struct Offered {
    memory: Arc<MemoryServer>,
    /// Held for as long as it is offered.
    _lock: File,
}

impl Offered {
    fn start(settings: &MemorySettings) -> Result<Self, Fault> {
        let directory = &settings.directory;
        let superblock = &settings.superblock;
        // Who can open the sockets can write all memory.
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory);
        made.map_err(|error| Fault::io(format!("cannot make {}", directory.display()), error))?;
        let lock = lock(directory, superblock.server)?;
        let socket = SharedWay::socket(directory, superblock.server);
        // Whoever left one here has not ended in order: the lock was free.
        let _ = std::fs::remove_file(&socket);
        let server = ServerId(superblock.server);
        let first = [(0, superblock.encode())];
        let bytes = superblock.geometry.bytes;
        let memory = MemoryServer::start_filled(&socket, server, bytes, &first);
        let cannot = || {
            format!(
                "cannot offer {bytes} bytes of memory at {}",
                socket.display()
            )
        };
        let memory = memory.map_err(|error| Fault::io(cannot(), error))?;
        Ok(Self {
            memory: Arc::new(memory),
            _lock: lock,
        })
    }
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
