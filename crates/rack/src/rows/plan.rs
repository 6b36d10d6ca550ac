//! Where rows are in the memory of servers: the same for all who have the same numbers.

use manxdb_core::check::ensure;
use manxdb_fabric::{Address, ServerId};
use manxdb_rsi::rows::{Client, Extent, Keyspace};
use manxdb_rsi::{
    Carrier, Layout, LayoutError, Log, RecordAddress, Session, ThreadId, Tree, TreeError, Vector,
};

use super::CallError;

/// Bytes of a log at each of its places: the largest transaction of TPC-C, a delivery, takes less
/// than half.
const LOG: u64 = 256 << 10;
/// The vector begins behind a line that nothing uses.
const FIRST: u64 = 64;
/// Fewer keys than this are in a leaf on average, also after splits.
const KEYS_A_NODE: u64 = 4;
/// Nodes of a tree that has hardly any keys.
const NODES_LEAST: u64 = 64;

/// Sizes that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RowsPlanError {
    /// Records cannot lie so in memory.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Nodes cannot.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// There are none of something, or too many.
    #[error("{0} memory servers and {1} clients: there can be 1 to 1024, and 1 to {max} in all", max = Vector::THREADS_MAX)]
    Counts(u16, u16),
    /// Fewer servers than copies of a log.
    #[error("{0} copies of logs on {1} memory servers")]
    Copies(u16, u16),
    /// Addresses end before.
    #[error("so many rows are beyond what a server's memory can be")]
    TooLarge,
}

/// The memory of rows. Each server holds what its loader has loaded, and what the clients
/// that are assigned to it have added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsPlan {
    /// Memory servers, numbered from 0; as many threads load rows.
    pub servers: u16,
    /// Clients.
    pub clients: u16,
    /// Copies of each thread's log; 0: nothing is logged.
    pub log_copies: u16,
    /// Versions of each row, and of each node of the tree.
    pub versions: usize,
    /// Bytes of the longest value.
    pub value: usize,
    /// Bytes of a node.
    pub node: usize,
    /// Rows that each loader has room for.
    pub loaded: u64,
    /// Rows that each client has room for.
    pub added: u64,
}

impl RowsPlan {
    /// Checks it.
    ///
    /// # Errors
    /// [`RowsPlanError`].
    pub fn check(self) -> Result<Self, RowsPlanError> {
        Layout::new(self.versions, self.value)?;
        let counts = RowsPlanError::Counts(self.servers, self.clients);
        let is_counted = (1..=1024).contains(&self.servers) && self.clients > 0;
        if !is_counted || self.vector().is_none() {
            return Err(counts);
        }
        if self.log_copies > self.servers {
            return Err(RowsPlanError::Copies(self.log_copies, self.servers));
        }
        let nodes = Layout::new(self.versions, self.node)?;
        let root = RecordAddress::new(self.root()).ok_or(RowsPlanError::TooLarge)?;
        Tree::new(root, nodes)?;
        let areas = (0..self.threads())
            .map(|thread| self.extents(thread))
            .collect::<Option<Vec<_>>>()
            .ok_or(RowsPlanError::TooLarge)?;
        assert_eq!(self.check_apart(&areas), Ok(()), "threads share no memory");
        Ok(self)
    }

    /// What is true of every plan, whose threads have this memory for records and nodes: what belongs
    /// to two of them lies apart, and behind all logs.
    fn check_apart(self, extents: &[(Extent, Extent)]) -> Result<(), String> {
        let mut areas = Vec::new();
        for (thread, (records, nodes)) in extents.iter().enumerate() {
            ensure(records.end() == nodes.begin(), || {
                let (end, begin) = (records.end(), nodes.begin());
                format!("records of thread {thread} end at {end}, and nodes begin at {begin}")
            })?;
            areas.push((records.begin(), nodes.end()));
        }
        areas.sort();
        for pair in areas.windows(2) {
            let ((_, end), (begin, _)) = (pair[0], pair[1]);
            ensure(
                end.server != begin.server || end.offset <= begin.offset,
                || format!("memory that ends at {end} reaches into what begins at {begin}"),
            )?;
        }
        let root = self.root().offset;
        let first = areas.iter().map(|(begin, _)| begin.offset).min();
        ensure(first > Some(root), || {
            format!("memory of threads begins at {first:?}, and the root lies at {root}")
        })
    }

    /// Clients, then loaders.
    fn threads(self) -> u16 {
        self.clients.saturating_add(self.servers)
    }

    /// The thread that loads a server's rows.
    #[must_use]
    pub fn loader(self, server: u16) -> u16 {
        assert!(server < self.servers, "each server has a loader of its own");
        self.clients + server
    }

    fn vector(self) -> Option<Vector> {
        let base = Address {
            server: ServerId(0),
            offset: FIRST,
        };
        Vector::new(base, self.threads())
    }

    /// Behind the vector, on all servers alike.
    fn logs(self) -> u64 {
        let vector = self.vector().map_or(0, Vector::bytes);
        (FIRST + vector).next_multiple_of(64)
    }

    fn log(self, thread: u16) -> Option<Log> {
        let place = |copy: u16| Address {
            server: ServerId((thread % self.servers + copy) % self.servers),
            offset: self.logs() + u64::from(thread) * LOG,
        };
        Log::new((0..self.log_copies).map(place).collect(), LOG, 1)
    }

    /// Behind the logs of the first server.
    fn root(self) -> Address {
        Address {
            server: ServerId(0),
            offset: self.logs() + u64::from(self.threads()) * LOG,
        }
    }

    /// The tree and the rows; none if this was not checked.
    #[must_use]
    pub fn keyspace(self) -> Option<Keyspace> {
        let nodes = Layout::new(self.versions, self.node).ok()?;
        Some(Keyspace {
            tree: Tree::new(RecordAddress::new(self.root())?, nodes).ok()?,
            records: Layout::new(self.versions, self.value).ok()?,
        })
    }

    /// A thread's memory for records and nodes, and where the next one's on its server begins.
    fn extents(self, thread: u16) -> Option<(Extent, Extent)> {
        let keyspace = self.keyspace()?;
        let (records, nodes) = (keyspace.records.bytes(), keyspace.tree.layout().bytes());
        let (server, rows) = match thread.checked_sub(self.clients) {
            Some(server) => (server, self.loaded),
            None => (thread % self.servers, self.added),
        };
        let first = self.root().offset + (nodes as u64).next_multiple_of(64);
        let each = |rows: u64| -> Option<u64> {
            let records = (records as u64).next_multiple_of(64).checked_mul(rows)?;
            let nodes = (nodes as u64)
                .next_multiple_of(64)
                .checked_mul(nodes_for(rows))?;
            records.checked_add(nodes)
        };
        let before = match thread.checked_sub(self.clients) {
            Some(_) => 0,
            None => {
                let clients = u64::from(thread / self.servers);
                each(self.loaded)?.checked_add(each(self.added)?.checked_mul(clients)?)?
            }
        };
        let base = Address {
            server: ServerId(server),
            offset: first.checked_add(before)?,
        };
        let records = Extent::new(base, records, rows)?;
        let nodes = Extent::new(base.plus(records.bytes()), nodes, nodes_for(rows))?;
        Some((records, nodes))
    }

    /// A thread of clients or loaders, with its memory; none if there is no such.
    fn thread(self, number: u16) -> Option<(Session, Extent, Extent)> {
        if number >= self.threads() {
            return None;
        }
        let session = Session::new(ThreadId::new(number)?, self.vector()?, 0)?;
        let session = match self.log(number) {
            Some(log) => session.with_log(log),
            None => session,
        };
        let (records, nodes) = self.extents(number)?;
        Some((session, records, nodes))
    }

    /// A thread's way to the rows.
    ///
    /// # Errors
    /// [`CallError`]: the plan has no such thread.
    pub fn client<C: Carrier>(self, thread: u16, carrier: C) -> Result<Client<C>, CallError> {
        let none = || CallError(format!("there is no thread {thread}"));
        let (session, records, nodes) = self.thread(thread).ok_or_else(none)?;
        let keyspace = self.keyspace().ok_or_else(none)?;
        Ok(Client::new(carrier, session, keyspace, records, nodes))
    }

    /// Bytes that each server needs.
    #[must_use]
    pub fn bytes(self) -> u64 {
        let ends = (0..self.threads()).filter_map(|thread| {
            let (_, nodes) = self.extents(thread)?;
            Some(nodes.end().offset)
        });
        ends.max().unwrap_or(0)
    }
}

fn nodes_for(rows: u64) -> u64 {
    NODES_LEAST + rows / KEYS_A_NODE
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: RowsPlan = RowsPlan {
        servers: 2,
        clients: 5,
        log_copies: 2,
        versions: 2,
        value: 100,
        node: 500,
        loaded: 1_000,
        added: 50,
    };

    #[test]
    fn nobody_has_anothers_memory() {
        let plan = PLAN.check().unwrap();
        for thread in 0..plan.threads() {
            let (_, nodes) = plan.extents(thread).unwrap();
            assert!(nodes.end().offset <= plan.bytes(), "thread {thread}");
        }
    }

    #[test]
    fn memory_of_two_threads_that_overlaps_is_found_out() {
        let longer = RowsPlan {
            added: PLAN.added + 1,
            ..PLAN
        };
        // The first two clients of the same server, one of whom takes a row more.
        let areas = [longer.extents(0).unwrap(), PLAN.extents(2).unwrap()];
        let refused = PLAN.check_apart(&areas).unwrap_err();
        assert!(refused.contains("reaches into"), "{refused}");
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        let refused = |plan: RowsPlan| plan.check().unwrap_err().to_string();
        for (plan, why) in [
            (RowsPlan { servers: 0, ..PLAN }, "0 memory servers"),
            (RowsPlan { clients: 0, ..PLAN }, "0 clients"),
            (
                RowsPlan {
                    log_copies: 3,
                    ..PLAN
                },
                "3 copies",
            ),
            (
                RowsPlan {
                    versions: 1,
                    ..PLAN
                },
                "versions",
            ),
            (RowsPlan { node: 50, ..PLAN }, "nodes of a tree"),
            (
                RowsPlan {
                    loaded: u64::MAX / 3,
                    ..PLAN
                },
                "beyond",
            ),
        ] {
            let error = refused(plan);
            assert!(error.contains(why), "{error}");
        }
    }
}
