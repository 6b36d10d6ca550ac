//! What a command wrote: rows, in order.

/// A row of the store; no value deletes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowWrite {
    /// Its key, with the prefix of all Redis rows.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Option<Vec<u8>>,
}

impl RowWrite {
    /// The database and key that it is the row of, if it is a key's.
    #[must_use]
    pub fn touched(&self) -> Option<(usize, &[u8])> {
        super::rows::split_meta_key(&self.key)
    }
}

/// The rows that one command wrote. They are applied together or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// The rows; a later one of the same key wins.
    pub rows: Vec<RowWrite>,
    /// How many of the rows come from commands that did no more than remove keys whose time is over.
    pub(super) expired: usize,
}

impl Effects {
    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether more was done than removing keys whose time is over. Readers find those gone with or
    /// without the rows, so that a reply need not wait for rows that do only that.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        assert!(
            self.expired <= self.rows.len(),
            "rows of keys whose time is over are among the rows"
        );
        self.rows.len() > self.expired
    }

    /// Which keys were changed, by database: the row of each is among the rows.
    pub fn touched(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.rows.iter().filter_map(RowWrite::touched)
    }

    /// Adds what a later command wrote.
    pub fn append(&mut self, mut later: Self) {
        self.rows.append(&mut later.rows);
        self.expired += later.expired;
    }

    /// Takes all rows out; nothing was written then.
    pub fn drain(&mut self) -> std::vec::Drain<'_, RowWrite> {
        self.expired = 0;
        self.rows.drain(..)
    }
}
