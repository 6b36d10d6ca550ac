//! Memory servers of a run, which meet their clients in a directory.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use manxdb_fabric::ServerId;
use manxdb_fabric::shm::{ConnectError, MemoryServer, SharedMemory};

/// Who is not there by then will not come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks for somebody.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The socket of a memory server.
fn socket(directory: &Path, number: u16) -> PathBuf {
    directory.join(format!("memory-{number}"))
}

/// Starts a memory server of so many bytes.
///
/// # Errors
/// The system's.
pub fn serve(directory: &Path, number: u16, bytes: u64) -> io::Result<MemoryServer> {
    MemoryServer::start(&socket(directory, number), ServerId(number), bytes)
}

/// Connects to all memory servers, which may be starting still.
///
/// # Errors
/// One of them is not there.
pub fn connect(directory: &Path, servers: u16, client: u64) -> io::Result<SharedMemory> {
    let mut memory = SharedMemory::default();
    for number in 0..servers {
        let socket = socket(directory, number);
        let began = Instant::now();
        loop {
            await_file(&socket)?;
            match memory.connect(&socket, client) {
                Ok(_) => break,
                // There is a socket a moment before anybody listens at it.
                Err(ConnectError::Gone(..)) if began.elapsed() < PATIENCE => {
                    thread::sleep(LOOK_EVERY);
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
    Ok(memory)
}

/// Waits until somebody has made a file.
///
/// # Errors
/// Nobody does.
pub fn await_file(path: &Path) -> io::Result<()> {
    let began = Instant::now();
    while !path.exists() {
        if began.elapsed() > PATIENCE {
            let error = format!("{} never came", path.display());
            return Err(io::Error::new(io::ErrorKind::TimedOut, error));
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
