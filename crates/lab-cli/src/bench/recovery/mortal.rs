//! Memory whose client does not survive a checkout.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use manxdb_checkout::ITEMS;
use manxdb_fabric::shm::SharedMemory;
use manxdb_fabric::{BatchId, Completion, Fabric, Grants, Misuse, Operation, ServerId};
use manxdb_rack::memory::{MemoryError, NotOut, SharedTransport, Transport, UnreachedServer};
use rustix::process::{Signal, getpid, kill_process};

/// The memory of servers. As soon as its client is told to die, its process is killed with SIGKILL right
/// after it has asked for the locks of all products of a checkout: not a moment that a kill from
/// outside would meet often.
pub struct Mortal {
    memory: SharedMemory,
    is_to_die: Arc<AtomicBool>,
}

impl Mortal {
    /// Over memory, of a client that lives until it is told to die.
    pub fn new(memory: SharedMemory, is_to_die: &Arc<AtomicBool>) -> Self {
        let is_to_die = Arc::clone(is_to_die);
        Self { memory, is_to_die }
    }
}

impl Fabric for Mortal {
    fn grants(&self) -> Grants {
        self.memory.grants()
    }

    fn registered(&self, server: ServerId) -> Option<u64> {
        self.memory.registered(server)
    }

    fn post(&mut self, batch: BatchId, operations: Vec<Operation>) -> Result<(), Misuse> {
        let is_last = self.is_to_die.load(Ordering::Relaxed) && {
            let is_swap = |one: &&Operation| matches!(one, Operation::CompareSwap { .. });
            operations.iter().filter(is_swap).count() >= ITEMS
        };
        self.memory.post(batch, operations)?;
        if is_last {
            let _ = kill_process(getpid(), Signal::KILL); // it does not return
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<Completion> {
        self.memory.poll()
    }
}

/// How a client gets such memory. Its recovery coordinator, whose swaps are no checkouts, has other memory.
pub struct MortalWay {
    /// Where servers are.
    pub way: SharedTransport,
    /// As of [`Mortal`].
    pub is_to_die: Arc<AtomicBool>,
    /// All pages are in this process's tables from when it connects.
    pub is_populated: bool,
}

impl Transport for MortalWay {
    type Fabric = Mortal;

    fn reach(
        &self,
        servers: &[u16],
        client: u64,
    ) -> Result<(Mortal, Vec<UnreachedServer>), MemoryError> {
        let (memory, missing) = self.way.reach(servers, client)?;
        if self.is_populated {
            let populated = memory.populate();
            populated.map_err(|error| MemoryError::Connect(error.to_string()))?;
        }
        Ok((Mortal::new(memory, &self.is_to_die), missing))
    }

    fn shut_out(&self, server: u16, client: u64) -> Result<(), NotOut> {
        self.way.shut_out(server, client)
    }
}
