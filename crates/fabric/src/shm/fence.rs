//! A client shut out of a memory server: it is told to let go of the memory, and its process is ended when
//! it does not.

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};

use super::hello;
use super::server::{Clients, PATIENCE, Shared};

/// A client that has not let go of memory for so long after it was told to is ended.
const LETTING_GO: Duration = Duration::from_millis(500);
/// How long one waits for the end of a process before whoever wants it hears that it is not over yet:
/// less than it has patience for with a server that says nothing. Memory that is given back to the
/// system can take seconds.
const DYING: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

const _: () = assert!(
    LETTING_GO.as_secs() + 2 * DYING.tv_sec.unsigned_abs() < PATIENCE.as_secs(),
    "whoever has a client shut out hears what came of it before its patience ends"
);

/// Why a client is not shut out.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// It is a thread of this very process, and does not let go of the memory.
    #[error("client {0} lives in the memory server's own process, and does not let go")]
    Own(u64),
    /// Its process was ended, and is not over yet. To be tried again.
    #[error("the process of client {0} is dying")]
    Dying(u64),
    /// The system does not let us.
    #[error("client {0} cannot be ended: {1}")]
    Kept(u64, io::Error),
}

impl Shared {
    pub(super) fn fence(&self, client: u64) -> Result<(), FenceError> {
        let mut clients = self.lock();
        clients.ended.insert(client);
        if let Some(present) = clients.present.get(&client) {
            let _ = (&present.stream).write(&[hello::LET_GO]); // or it is gone
        }
        let began = Instant::now();
        while clients.present.contains_key(&client) {
            let left = LETTING_GO.saturating_sub(began.elapsed());
            if left.is_zero() {
                let process = clients.process(client)?;
                drop(clients); // others come in while it dies
                let ended = process.map_or(Ok(true), |process| end(&process));
                let is_over = ended.map_err(|error| FenceError::Kept(client, error.into()))?;
                if !is_over {
                    return Err(FenceError::Dying(client));
                }
                let mut clients = self.lock();
                clients.present.remove(&client);
                clients.check(client);
                return Ok(());
            }
            let waited = self.left.wait_timeout(clients, left);
            clients = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        clients.check(client);
        Ok(())
    }
}

impl Clients {
    /// What is true of a client when its end is reported: it is not here, and never will be.
    fn check(&self, client: u64) {
        assert!(
            self.ended.contains(&client),
            "a client that is shut out is not let in again: {client}"
        );
        assert!(
            !self.present.contains_key(&client),
            "a client that is shut out has no segment: {client}"
        );
    }

    /// The process of a client that is to be ended; none: it is gone.
    fn process(&self, client: u64) -> Result<Option<OwnedFd>, FenceError> {
        assert!(
            self.ended.contains(&client),
            "only the process of a client that is shut out is ended: {client}"
        );
        let Some(present) = self.present.get(&client) else {
            return Ok(None);
        };
        let process = present.process.as_ref().ok_or(FenceError::Own(client))?;
        let process = process.try_clone();
        process
            .map(Some)
            .map_err(|error| FenceError::Kept(client, error))
    }
}

/// Ends a process, and waits a while until none of its threads runs any more; whether that is so.
fn end(process: &OwnedFd) -> rustix::io::Result<bool> {
    match pidfd_send_signal(process, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => return Err(error),
    }
    match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&DYING)) {
        Err(rustix::io::Errno::INTR) => Ok(false),
        over => Ok(over? > 0),
    }
}
