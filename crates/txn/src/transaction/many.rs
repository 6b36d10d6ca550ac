//! Many keys or ranges read in one go: a path that is asked once can read neighbours together.

use std::sync::Arc;

use manxdb_storage::{Direction, KeyRange};

use super::page::covered;
use super::{ReadMode, Transaction, UsedPart};
use crate::error::TxnError;
use crate::model::Page;
use crate::waiter::resolve;

impl Transaction {
    /// How many entries `range` has, counted up to `limit`, own writes aside. Nothing is recorded
    /// or locked and no snapshot taken: it is for choosing among ways to the same rows, not for
    /// answers.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn count_up_to(&self, range: &KeyRange, limit: usize) -> Result<usize, TxnError> {
        self.check_usable()?;
        let taken = self.inner.borrow().snapshot.clone();
        let at = match taken {
            Some(snapshot) => snapshot,
            None => self.newest()?,
        };
        let reply = self.path.scan(at.version, range, Direction::Forward, limit);
        let count = resolve(reply, &self.waiter)?.len();
        assert!(count <= limit, "a page is no longer than it may be");
        Ok(count)
    }

    /// As [`Transaction::get`] for each of `keys`, which ascend and differ. Keys that are locked
    /// are read one by one.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn get_many(
        &self,
        keys: &[Vec<u8>],
        mode: ReadMode,
    ) -> Result<Vec<Option<Vec<u8>>>, TxnError> {
        self.get_many_used(keys, mode, None)
    }

    /// As [`Transaction::get_many`] by a reader that uses a part of the values, if it says so:
    /// then a write of another part does not end the transaction.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn get_many_used(
        &self,
        keys: &[Vec<u8>],
        mode: ReadMode,
        used: Option<&Arc<dyn UsedPart>>,
    ) -> Result<Vec<Option<Vec<u8>>>, TxnError> {
        assert!(
            keys.is_sorted_by(|a, b| a < b),
            "keys are given in order, once"
        );
        let is_single = keys.len() < 2 && used.is_none();
        if mode.locks() || is_single {
            return keys.iter().map(|key| self.get(key, mode)).collect();
        }
        self.check_usable()?;
        let own = |key: &Vec<u8>| {
            let inner = self.inner.borrow();
            let own = inner.visible_writes().get(key);
            own.map(|write| write.map(<[u8]>::to_vec))
        };
        let mut found: Vec<Option<Option<Vec<u8>>>> = keys.iter().map(own).collect();
        let asked: Vec<&[u8]> = keys
            .iter()
            .zip(&found)
            .filter(|(_, own)| own.is_none())
            .map(|(key, _)| key.as_slice())
            .collect();
        let at = self.unlocked_view(mode)?;
        let values = resolve(self.path.get_many(at.version, &asked), &self.waiter)?;
        assert_eq!(values.len(), asked.len(), "an answer for every key");
        if self.records(mode) {
            let mut inner = self.inner.borrow_mut();
            for key in asked {
                match used {
                    Some(used) => inner.recorded.used_point(key, &at, used),
                    None => inner.recorded.point(key, &at),
                }
            }
        }
        let open = found.iter_mut().filter(|own| own.is_none());
        for (place, value) in open.zip(values) {
            *place = Some(value);
        }
        assert!(
            found.iter().all(Option::is_some),
            "a key that nobody answered for is not absent"
        );
        Ok(found.into_iter().map(Option::flatten).collect())
    }

    /// The first `limit` entries of each of `ranges`, which ascend and do not overlap; as
    /// [`Transaction::scan`] in ascending order. Ranges that are locked are read one by one.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn scan_many(
        &self,
        ranges: &[KeyRange],
        limit: usize,
        mode: ReadMode,
    ) -> Result<Vec<Page>, TxnError> {
        assert!(
            ranges.is_sorted_by(KeyRange::ends_before),
            "ranges are given in order, and share no key"
        );
        let forward = Direction::Forward;
        if mode.locks() || ranges.len() < 2 || limit == 0 {
            let scan = |range| self.scan(range, forward, limit, mode);
            return ranges.iter().map(scan).collect();
        }
        self.check_usable()?;
        let at = self.unlocked_view(mode)?;
        let pages = self.merged_pages(&at, ranges, limit)?;
        assert_eq!(pages.len(), ranges.len(), "a page for every range");
        if self.records(mode) {
            let mut inner = self.inner.borrow_mut();
            for (range, page) in ranges.iter().zip(&pages) {
                let seen = covered(range, forward, limit, page);
                inner.recorded.range(seen, forward, &at);
            }
        }
        Ok(pages)
    }
}
