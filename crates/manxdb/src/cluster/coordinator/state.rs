//! What coordinators must not forget, in etcd, below one prefix:
//!
//! | key | value |
//! |---|---|
//! | `leader` | the leader's address; attached to its lease. Its create revision is the term |
//! | `written` | number of writes of this term |
//! | `state` | the newest record of a coordinator, which says all that those before it said: postcard, then its CRC-32 |
//!
//! Who leads, and that nobody else writes, is up to [`manxdb_etcd::fence`].

use std::io;
use std::sync::Arc;
use std::time::Duration;

use manxdb_compaction::seal;
use manxdb_curp::disk::CurpRecord;
use manxdb_etcd::fence::{Fence, FenceSettings, Renewer, Won, Written};
use manxdb_etcd::{EtcdAddress, EtcdError, put};
use manxdb_net::RecordStore;
use manxdb_net::tenure::Tenure;
use parking_lot::Mutex;

/// A write that etcd did not answer is repeated after this long.
const RETRY: Duration = Duration::from_millis(200);

/// A state that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A call to etcd failed.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// The bytes are not those that a coordinator wrote.
    #[error(
        "the coordinator's state in etcd, {0}, is damaged or of a newer release; restore it from a \
         copy: without it nobody knows who is master"
    )]
    Damaged(String),
}

/// The state of the coordinators of one cluster.
pub struct EtcdState {
    fence: Arc<Mutex<Fence>>,
    key: Vec<u8>,
}

impl EtcdState {
    /// Opens the state below `prefix`, and reads it once to verify access.
    ///
    /// # Errors
    /// [`StateError`]: etcd does not answer or refuses access, or the state is damaged.
    pub fn open(address: EtcdAddress, prefix: &str, lease: Duration) -> Result<Self, StateError> {
        let key = |name: &str| format!("{prefix}/{name}").into_bytes();
        let fence = Fence::new(FenceSettings {
            address,
            leader: key("leader"),
            written: key("written"),
            lease,
        })?;
        let this = Self {
            fence: Arc::new(Mutex::new(fence)),
            key: key("state"),
        };
        this.read()?;
        Ok(this)
    }

    /// The newest record; none while no coordinator has decided anything.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn read(&self) -> Result<Option<CurpRecord>, StateError> {
        let found = self.fence.lock().range(&self.key, &[], 1)?;
        let Some(pair) = found.kvs.first() else {
            return Ok(None);
        };
        match seal::unpack(&pair.value) {
            Some(record @ CurpRecord::Coordinator(_)) => Ok(Some(record)),
            Some(CurpRecord::Server(_)) | None => {
                let key = String::from_utf8_lossy(&self.key).into_owned();
                Err(StateError::Damaged(key))
            }
        }
    }

    /// Becomes the leader, called `name`, if there is none.
    ///
    /// # Errors
    /// As [`Fence::campaign`].
    pub fn campaign(&self, name: &str) -> Result<Won, EtcdError> {
        self.fence.lock().campaign(name)
    }

    /// Keeps the lease, with a connection of its own.
    ///
    /// # Errors
    /// As [`Fence::renewer`].
    pub fn renewer(&self) -> Result<Renewer, EtcdError> {
        self.fence.lock().renewer()
    }

    /// Ends a leadership: another one may lead at once.
    pub fn resign(&self, term: u64) {
        if let Err(error) = self.fence.lock().resign(term) {
            tracing::debug!(%error, "the lease runs out by itself");
        }
    }

    /// Writes the state in a term, while its tenure lasts.
    #[must_use]
    pub fn writer(&self, term: u64, tenure: Tenure) -> StateWriter {
        StateWriter {
            fence: Arc::clone(&self.fence),
            key: self.key.clone(),
            term,
            tenure,
        }
    }
}

/// Writes the state in one term.
pub struct StateWriter {
    fence: Arc<Mutex<Fence>>,
    key: Vec<u8>,
    term: u64,
    tenure: Tenure,
}

impl RecordStore for StateWriter {
    /// The newest payload takes the place of the state. The same write is repeated until etcd answers, or
    /// the tenure is over.
    fn append(&mut self, payloads: &[Vec<u8>]) -> io::Result<()> {
        let Some(newest) = payloads.last() else {
            return Ok(());
        };
        let value = seal::seal(newest.clone());
        while !self.tenure.is_over() {
            let change = put(self.key.clone(), value.clone(), 0);
            let written = self.fence.lock().write(self.term, 1, 1, vec![change]);
            match written {
                Ok(Written::Records(count)) => {
                    assert_eq!(count, 1, "one write is under way at a time");
                    return Ok(());
                }
                Ok(Written::Deposed) => {
                    self.tenure.end();
                    return Err(io::Error::other("etcd says that its term is over"));
                }
                Err(error) => {
                    tracing::warn!(%error, "the coordinator's state could not be written; it is tried again");
                    std::thread::sleep(RETRY);
                }
            }
        }
        Err(io::Error::other("the lease was not renewed in time"))
    }

    /// Each record says all that those before it said.
    fn replace(&mut self, payloads: &[Vec<u8>]) -> io::Result<()> {
        self.append(payloads)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use manxdb_curp::coordinator::CoordinatorRecord;
    use manxdb_curp::ids::{Epoch, View, Wlv};
    use manxdb_etcd::api::TxnRequest;
    use manxdb_etcd::{Etcd as Client, delete};
    use manxdb_test_etcd::Etcd;

    use super::*;

    const PREFIX: &str = "/coordinators/c1";

    fn address(etcd: &Etcd) -> EtcdAddress {
        EtcdAddress {
            members: vec![etcd.members()],
            ..EtcdAddress::default()
        }
    }

    fn state(etcd: &Etcd) -> EtcdState {
        EtcdState::open(address(etcd), PREFIX, Duration::from_secs(600)).unwrap()
    }

    fn elected(state: &EtcdState, name: &str) -> (u64, Tenure) {
        let tenure = Tenure::until(Instant::now() + Duration::from_secs(600));
        match state.campaign(name).unwrap() {
            Won::Term(term) => (term, tenure),
            Won::Taken(leader) => panic!("{leader} leads"),
        }
    }

    fn record(wlv: u32) -> CurpRecord {
        CurpRecord::Coordinator(CoordinatorRecord {
            reserved: View {
                epoch: Epoch(1),
                wlv: Wlv(wlv),
            },
            config: None,
        })
    }

    fn packed(wlv: u32) -> Vec<u8> {
        let sealed = seal::pack(&record(wlv)).unwrap();
        seal::unseal(&sealed).unwrap().to_vec()
    }

    fn change(etcd: &Etcd, success: Vec<manxdb_etcd::api::RequestOp>) {
        let txn = TxnRequest {
            success,
            ..TxnRequest::default()
        };
        Client::new(&address(etcd)).unwrap().txn(&txn).unwrap();
    }

    #[test]
    fn a_coordinator_of_an_old_term_decides_nothing_and_its_tenure_is_over() {
        let etcd = Etcd::start(1);
        let (one, other) = (state(&etcd), state(&etcd));
        let (first, tenure) = elected(&one, "one");
        let mut writer = one.writer(first, tenure.clone());
        assert_eq!(one.read().unwrap(), None);
        // Of records that wait together, the newest one says all.
        writer.append(&[packed(1), packed(2)]).unwrap();
        assert_eq!(other.read().unwrap(), Some(record(2)));
        // Its lease runs out, and it does not know.
        change(&etcd, vec![delete(format!("{PREFIX}/leader").into_bytes())]);
        let (second, later) = elected(&other, "other");
        assert!(second > first && !tenure.is_over());
        assert!(writer.append(&[packed(3)]).is_err());
        assert!(tenure.is_over() && !later.is_over());
        assert_eq!(other.read().unwrap(), Some(record(2)));
        let mut writer = other.writer(second, later);
        writer.replace(&[packed(4)]).unwrap();
        assert_eq!(one.read().unwrap(), Some(record(4)));
    }

    #[test]
    fn a_write_waits_for_etcd_no_longer_than_the_tenure() {
        let mut etcd = Etcd::start(1);
        let one = state(&etcd);
        let (term, tenure) = elected(&one, "one");
        etcd.kill(0);
        let mut writer = one.writer(term, tenure.clone());
        tenure.end();
        let refused = writer.append(&[packed(1)]).unwrap_err().to_string();
        assert!(refused.contains("not renewed in time"), "{refused}");
        etcd.again(0);
        assert_eq!(one.read().unwrap(), None);
    }

    #[test]
    fn a_damaged_state_is_named_and_nobody_coordinates_without_it() {
        let etcd = Etcd::start(1);
        let mut value = seal::pack(&record(1)).unwrap();
        value[0] ^= 1;
        let key = format!("{PREFIX}/state");
        change(&etcd, vec![put(key.clone().into_bytes(), value, 0)]);
        let opened = EtcdState::open(address(&etcd), PREFIX, Duration::from_secs(600));
        let refused = opened.map(|_| ()).unwrap_err().to_string();
        assert!(
            refused.contains(&key) && refused.contains("damaged"),
            "{refused}"
        );
    }
}
