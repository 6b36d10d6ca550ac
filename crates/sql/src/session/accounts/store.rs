//! Reading and writing account records, and picking the account of a login.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::{ReadMode, Transaction};

use super::access::like;
use super::privilege::Level;
use super::record::{Account, AccountKey};
use crate::error::{SqlError, SqlResult};

/// Account records lie under this prefix, beside the catalog's; `u` is for users.
const PREFIX: &[u8] = b"\x00\xF0u";
/// Format of a record.
const FORMAT: u8 = 2;
/// Format of releases without the privilege GDPR.
const WITHOUT_GDPR: u8 = 1;
/// Records read at a time.
const PAGE: usize = 256;

/// All accounts, immutable: a change makes a new one.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// By key.
    pub all: BTreeMap<AccountKey, Arc<Account>>,
    /// Grows with every change.
    pub version: u64,
}

impl Accounts {
    /// The account that `user` from `host` logs in to: the most specific host first, a named
    /// user before the anonymous one.
    pub(crate) fn of_login(&self, user: &str, host: &str) -> Option<&Arc<Account>> {
        let host = host.to_lowercase();
        self.all
            .values()
            .filter(|account| account.key.user == user || account.key.user.is_empty())
            .filter(|account| host_matches(&account.key.host, &host))
            .max_by_key(|account| specificity(&account.key))
    }

    /// The account with this identity.
    pub(crate) fn of_identity(&self, identity: &str) -> Option<&Arc<Account>> {
        let (user, host) = identity.rsplit_once('@')?;
        self.get(user, host)
    }

    /// The account `user@host`, patterns taken as written.
    pub(crate) fn get(&self, user: &str, host: &str) -> Option<&Arc<Account>> {
        let key = AccountKey {
            user: user.to_string(),
            host: host.to_lowercase(),
        };
        self.all.get(&key)
    }
}

fn host_matches(pattern: &str, host: &str) -> bool {
    let loopback = |name: &str| matches!(name, "localhost" | "127.0.0.1" | "::1");
    like(pattern, host) || loopback(pattern) && loopback(host)
}

/// Literal hosts before patterns, longer literal starts before shorter, named users first.
fn specificity(key: &AccountKey) -> (bool, usize, bool) {
    let wild = key.host.find(['%', '_']);
    (
        wild.is_none(),
        wild.unwrap_or(key.host.len()),
        !key.user.is_empty(),
    )
}

fn key_bytes(key: &AccountKey) -> Vec<u8> {
    let mut bytes = PREFIX.to_vec();
    bytes.extend_from_slice(key.user.as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(key.host.as_bytes());
    bytes
}

/// Reads all accounts.
///
/// # Errors
/// Storage; 1712 for a record that cannot be read.
pub(crate) fn load(txn: &Transaction, version: u64) -> SqlResult<Accounts> {
    let mut range = KeyRange::prefix(PREFIX);
    let mut all = BTreeMap::new();
    loop {
        let page = txn.scan(&range, Direction::Forward, PAGE, ReadMode::Validate)?;
        for (_, value) in &page {
            let account = decode(value)?;
            all.insert(account.key.clone(), Arc::new(account));
        }
        match page.last() {
            Some((key, _)) if page.len() == PAGE => {
                range.start = std::ops::Bound::Excluded(key.clone());
            }
            _ => return Ok(Accounts { all, version }),
        }
    }
}

/// Writes an account.
///
/// # Errors
/// Storage.
pub(crate) fn put(txn: &Transaction, account: &Account) -> SqlResult<()> {
    let mut as_before = account.clone();
    renew(&mut as_before);
    // As releases before wrote it, where they would be understood in the same way.
    let format = if as_before == *account {
        WITHOUT_GDPR
    } else {
        FORMAT
    };
    let mut record = vec![format];
    let body = postcard::to_stdvec(account)
        .map_err(|error| SqlError::internal(format!("account record: {error}")))?;
    record.extend_from_slice(&body);
    txn.put(key_bytes(&account.key), record)?;
    Ok(())
}

/// Deletes an account.
///
/// # Errors
/// Storage.
pub(crate) fn delete(txn: &Transaction, key: &AccountKey) -> SqlResult<()> {
    txn.delete(key_bytes(key))?;
    Ok(())
}

/// Who had everything has what came since.
fn renew(account: &mut Account) {
    account.global = account.global.renewed(Level::Global);
    for held in account.databases.values_mut() {
        *held = held.renewed(Level::Database);
    }
}

fn decode(record: &[u8]) -> SqlResult<Account> {
    let damaged = || SqlError::new(1712, "HY000", "account record is damaged");
    match record.split_first() {
        Some((&FORMAT, body)) => postcard::from_bytes(body).map_err(|_| damaged()),
        Some((&WITHOUT_GDPR, body)) => {
            let mut account: Account = postcard::from_bytes(body).map_err(|_| damaged())?;
            renew(&mut account);
            Ok(account)
        }
        _ => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(list: &[(&str, &str)]) -> Accounts {
        let mut accounts = Accounts::default();
        for (user, host) in list {
            let key = AccountKey {
                user: (*user).into(),
                host: (*host).into(),
            };
            accounts
                .all
                .insert(key.clone(), Arc::new(Account::new(key)));
        }
        accounts
    }

    fn login(accounts: &Accounts, user: &str, host: &str) -> Option<String> {
        accounts.of_login(user, host).map(|a| a.key.identity())
    }

    #[test]
    fn the_most_specific_host_wins_even_for_the_anonymous_user() {
        let all = accounts(&[
            ("ann", "%"),
            ("ann", "10.%"),
            ("", "10.0.0.1"),
            ("bob", "localhost"),
        ]);
        assert_eq!(login(&all, "ann", "192.0.2.1").as_deref(), Some("ann@%"));
        assert_eq!(login(&all, "ann", "10.9.9.9").as_deref(), Some("ann@10.%"));
        assert_eq!(login(&all, "ann", "10.0.0.1").as_deref(), Some("@10.0.0.1"));
        assert_eq!(
            login(&all, "bob", "127.0.0.1").as_deref(),
            Some("bob@localhost")
        );
        assert_eq!(login(&all, "eve", "192.0.2.1"), None);
    }

    #[test]
    fn a_damaged_record_is_an_error_not_a_panic() {
        for record in [&[][..], &[9, 1, 2], &[FORMAT, 0xFF]] {
            assert_eq!(decode(record).unwrap_err().code, 1712);
        }
    }
}
