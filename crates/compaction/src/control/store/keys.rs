//! Layout of the state in etcd, all of it below one prefix:
//!
//! | key | value |
//! |---|---|
//! | `format` | the number of this format |
//! | `leader` | the leader's address; attached to its lease. Its create revision is the term |
//! | `written` | number of records of this term that the keys below contain |
//! | `jobs/DATABASE-SESSION-NUMBER` | the job, as in a file: postcard, sealed |
//! | `banned/WORKER` | the worker, likewise |
//! | `accounts/DATABASE` | the account of the database, likewise |
//!
//! Numbers in keys are hexadecimal, of 16 digits.

use std::collections::BTreeSet;

use manxdb_jobs::WorkerId;
use manxdb_jobs::job::{DatabaseId, JobId};
use manxdb_jobs::record::{Account, Durable, Record, Stored};

use super::{StoreError, packed};
use crate::seal::unpack;
use manxdb_etcd::api::{KeyValue, RequestOp};
use manxdb_etcd::{delete, put};

/// The format that is written.
pub const CURRENT: &[u8] = b"2";
/// The one before, without accounts. It is read, and written over by the next leader.
const FORMER: &[u8] = b"1";

/// Prefix of an account's value, because values of jobs begin with a database too.
const ACCOUNT: &str = "account";

/// Records written together at most. Each touches two keys at most, and etcd takes 128 operations.
const TOGETHER_MAX: usize = 60;

/// Bytes of descriptions written together at most, unless a single job has more; etcd takes
/// requests of 1.5 MiB.
const TOGETHER_BYTES: usize = 1 << 20;

/// Bytes that a job's description may have, and its result's: both are in one value.
pub const DESCRIPTION_MAX: usize = TOGETHER_BYTES / 2;

/// Names of keys.
#[derive(Debug, Clone)]
pub struct Keys {
    prefix: String,
}

impl Keys {
    /// Keys below `prefix`, which ends in a slash from here on.
    #[must_use]
    pub fn below(prefix: &str) -> Self {
        let prefix = format!("{}/", prefix.trim_end_matches('/'));
        Self { prefix }
    }

    fn key(&self, name: &str) -> Vec<u8> {
        format!("{}{name}", self.prefix).into_bytes()
    }

    /// The key of the leader.
    #[must_use]
    pub fn leader(&self) -> Vec<u8> {
        self.key("leader")
    }

    /// The key that counts the leader's records.
    #[must_use]
    pub fn written(&self) -> Vec<u8> {
        self.key("written")
    }

    /// Of which format the others are.
    #[must_use]
    pub fn format(&self) -> Vec<u8> {
        self.key("format")
    }

    fn job(&self, job: JobId) -> Vec<u8> {
        let (database, session) = (job.database.0, job.session.0);
        self.key(&format!(
            "jobs/{database:016x}-{session:016x}-{:016x}",
            job.number
        ))
    }

    fn banned(&self, worker: WorkerId) -> Vec<u8> {
        self.key(&format!("banned/{:016x}", worker.0))
    }

    fn account(&self, database: DatabaseId) -> Vec<u8> {
        self.key(&format!("accounts/{:016x}", database.0))
    }

    /// The range of all keys: the first, and the one behind the last.
    #[must_use]
    pub fn all(&self) -> (Vec<u8>, Vec<u8>) {
        let first = self.prefix.clone().into_bytes();
        // The slash at its end is followed by a zero.
        let behind = format!("{}0", self.prefix.trim_end_matches('/'));
        (first, behind.into_bytes())
    }

    /// The keys that `records` change, given the state before them.
    ///
    /// # Errors
    /// A record cannot be encoded.
    pub fn changes(
        &self,
        before: &Durable,
        records: &[Record],
    ) -> Result<Vec<RequestOp>, StoreError> {
        let after = before.changed_by(records);
        let touched: BTreeSet<JobId> = records.iter().filter_map(Record::job).collect();
        let jobs = touched.into_iter().map(|job| match after.jobs.get(&job) {
            Some(stored) => Ok(put(self.job(job), packed(&(job, stored))?, 0)),
            None => Ok(delete(self.job(job))),
        });
        let banned = after.banned.iter();
        let banned = banned.map(|worker| Ok(put(self.banned(*worker), packed(worker)?, 0)));
        let touched: BTreeSet<DatabaseId> = records.iter().filter_map(Record::account_of).collect();
        let accounts = touched
            .into_iter()
            .map(|database| match after.accounts.get(&database) {
                Some(account) => {
                    let value = packed(&(ACCOUNT, database, account))?;
                    Ok(put(self.account(database), value, 0))
                }
                None => Ok(delete(self.account(database))),
            });
        jobs.chain(banned).chain(accounts).collect()
    }

    /// Reads one key into `durable`; returns whether the key belongs to the present format.
    ///
    /// # Errors
    /// It is damaged, or of a newer release.
    pub fn read(&self, pair: &KeyValue, durable: &mut Durable) -> Result<bool, StoreError> {
        let name = pair.key.strip_prefix(self.prefix.as_bytes());
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        let damaged = || StoreError::Format(format!("{} is damaged", text(&pair.key)));
        match name {
            Some("leader" | "written") => {}
            Some("format") if pair.value == CURRENT => return Ok(true),
            Some("format") if pair.value == FORMER => {}
            Some("format") => {
                let format = text(&pair.value);
                return Err(StoreError::Format(format!("its format is {format}")));
            }
            Some(name) if name.starts_with("jobs/") => {
                let (job, stored): (JobId, Stored) = unpack(&pair.value).ok_or_else(damaged)?;
                if self.job(job) != pair.key {
                    return Err(damaged());
                }
                durable.jobs.insert(job, stored);
            }
            Some(name) if name.starts_with("banned/") => {
                let worker: WorkerId = unpack(&pair.value).ok_or_else(damaged)?;
                if self.banned(worker) != pair.key {
                    return Err(damaged());
                }
                durable.banned.insert(worker);
            }
            Some(name) if name.starts_with("accounts/") => {
                let (word, database, account): (String, DatabaseId, Account) =
                    unpack(&pair.value).ok_or_else(damaged)?;
                if word != ACCOUNT || self.account(database) != pair.key {
                    return Err(damaged());
                }
                durable.accounts.insert(database, account);
            }
            _ => {
                let key = text(&pair.key);
                return Err(StoreError::Format(format!(
                    "nothing is known of a key {key}"
                )));
            }
        }
        Ok(false)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// How many of these records may be written together: at least one, if there is one.
#[must_use]
pub fn together(before: &Durable, records: &[Record]) -> usize {
    let (mut count, mut bytes) = (0, 0);
    for record in records.iter().take(TOGETHER_MAX) {
        bytes += weight(before, record);
        if count > 0 && bytes > TOGETHER_BYTES {
            break;
        }
        count += 1;
    }
    count
}

/// Bytes that the value of a record's key takes at most, about.
fn weight(before: &Durable, record: &Record) -> usize {
    const FRAME: usize = 256;
    let spec = match record {
        Record::Job { spec, .. } => Some(spec),
        Record::Leased { .. } | Record::Released { .. } | Record::Result { .. } => {
            let stored = record.job().and_then(|job| before.jobs.get(&job));
            stored.map(|stored| &stored.spec)
        }
        Record::Over { .. } | Record::Banned { .. } | Record::Gone { .. } => None,
    };
    let result = match record {
        Record::Result { result, .. } => result.len(),
        _ => 0,
    };
    FRAME + spec.map_or(0, |spec| spec.input.len()) + result
}

#[cfg(test)]
mod tests {
    use super::*;
    use manxdb_etcd::api::request_op::Request;
    use manxdb_jobs::{AttemptId, Spec};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn job(number: u64) -> JobId {
        JobId {
            number,
            ..JobId::default()
        }
    }

    fn taken(number: u64, bytes: usize) -> Record {
        let spec = Spec {
            input: vec![7; bytes].into(),
            ..Spec::default()
        };
        let job = job(number);
        Record::Job { job, spec }
    }

    fn leased(database: u64, number: u64) -> Record {
        let attempt = AttemptId {
            job: JobId {
                database: DatabaseId(database),
                ..job(number)
            },
            number: 1,
            token: 9,
        };
        Record::Leased {
            attempt,
            worker: WorkerId(7),
            account: Account {
                lately: number,
                ..Account::default()
            },
        }
    }

    fn result(number: u64, bytes: usize) -> Record {
        let attempt = AttemptId {
            job: job(number),
            number: 1,
            token: 9,
        };
        Record::Result {
            attempt,
            worker: WorkerId(7),
            result: Arc::from(vec![8; bytes]),
        }
    }

    /// Keys and values as etcd would have them.
    fn apply(held: &mut BTreeMap<Vec<u8>, Vec<u8>>, operations: Vec<RequestOp>) {
        for operation in operations {
            match operation.request.unwrap() {
                Request::RequestPut(put) => {
                    held.insert(put.key, put.value);
                }
                Request::RequestDeleteRange(delete) => {
                    held.remove(&delete.key);
                }
                Request::RequestRange(_) => panic!("nothing is to be read"),
            }
        }
    }

    fn read(keys: &Keys, held: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<Durable, StoreError> {
        let mut durable = Durable::default();
        for (key, value) in held {
            let pair = KeyValue {
                key: key.clone(),
                create_revision: 1,
                value: value.clone(),
            };
            keys.read(&pair, &mut durable)?;
        }
        Ok(durable)
    }

    fn history() -> Vec<Record> {
        let worker = WorkerId(7);
        vec![
            taken(1, 3),
            taken(2, 3),
            leased(0, 2),
            Record::Gone {
                database: DatabaseId(0),
            },
            leased(5, 1),
            leased(0, 2),
            result(2, 5),
            Record::Over { job: job(1) },
            Record::Banned { worker },
            taken(3, 0),
        ]
    }

    #[test]
    fn what_is_written_in_any_parts_is_what_is_read() {
        let keys = Keys::below("/here");
        for step in 1..=history().len() {
            let (mut held, mut before) = (BTreeMap::new(), Durable::default());
            for part in history().chunks(step) {
                apply(&mut held, keys.changes(&before, part).unwrap());
                for record in part {
                    before.apply(record.clone());
                }
            }
            assert_eq!(read(&keys, &held).unwrap(), Durable::of(history()));
            let (first, behind) = keys.all();
            assert!(held.keys().all(|key| first < *key && *key < behind));
        }
    }

    #[test]
    fn no_bit_flips_unseen() {
        let keys = Keys::below("/here/");
        let mut held = BTreeMap::new();
        apply(
            &mut held,
            keys.changes(&Durable::default(), &history()).unwrap(),
        );
        for key in held.keys() {
            for bit in 0..held[key].len() * 8 {
                let mut damaged = held.clone();
                damaged.get_mut(key).unwrap()[bit / 8] ^= 1 << (bit % 8);
                assert!(read(&keys, &damaged).is_err(), "{}, bit {bit}", text(key));
            }
        }
        // What stands at the wrong place is no better.
        let (key, other) = (held.keys().next().unwrap(), held.keys().last().unwrap());
        let exchanged = BTreeMap::from([(key.clone(), held[other].clone())]);
        assert!(read(&keys, &exchanged).is_err());
    }

    #[test]
    fn another_format_and_strange_keys_are_refused() {
        let keys = Keys::below("/here");
        let pair = |name: &str, value: &[u8]| BTreeMap::from([(keys.key(name), value.to_vec())]);
        assert!(read(&keys, &pair("format", b"3")).is_err());
        assert!(read(&keys, &pair("settings", b"")).is_err());
        assert!(read(&keys, &pair("format", CURRENT)).is_ok());
        assert!(read(&keys, &pair("format", FORMER)).is_ok());
        assert!(read(&keys, &pair("leader", b"anybody")).is_ok());
    }

    #[test]
    fn what_is_written_together_is_no_more_than_etcd_takes() {
        let none = Durable::default();
        let small: Vec<Record> = (0..1_000).map(|number| taken(number, 10)).collect();
        assert_eq!(together(&none, &small), TOGETHER_MAX);
        // Jobs of a database each: what touches the most keys.
        let given: Vec<Record> = (0..1_000).map(|one| leased(one, one)).collect();
        let part = &given[..together(&none, &given)];
        let keys = Keys::below("/here");
        let operations = keys.changes(&none, part).unwrap().len();
        assert!(
            operations < 128,
            "{operations}, and how much is written then"
        );
        let large: Vec<Record> = (0..10).map(|one| taken(one, DESCRIPTION_MAX)).collect();
        assert_eq!(together(&none, &large), 1);
        let before = Durable::of(large);
        let results: Vec<Record> = (0..10).map(|one| result(one, DESCRIPTION_MAX)).collect();
        assert_eq!(together(&before, &results), 1);
        assert_eq!(together(&before, &[]), 0);
        let largest = keys.changes(&before, &results[..1]).unwrap();
        let bytes: usize = largest.iter().map(prost::Message::encoded_len).sum();
        assert!(bytes < 1_500_000, "{bytes}");
    }
}
