//! Places of records in the order of their keys: a B-link tree that clients read and write
//! one-sided (Lehman and Yao, "Efficient Locking for Concurrent Operations on B-Trees", 1981).
//!
//! Its nodes are records, and what writes them are transactions: a node that is split, its new
//! neighbour and the entry above them are written together or not at all, by whoever began or by
//! whoever recovers it, and a snapshot sees a tree that fits together. What is read of nodes is
//! validated as any other record is: a leaf that has not changed since it was scanned has got no
//! new keys, so there are no phantoms.
//!
//! Adding keys adds the places of records that nobody has written yet, which any transaction may write
//! or leave alone. It is a transaction of its own, as it is in [`crate::directory`], or a part of the
//! one that writes the records first, while nobody else writes the leaf ([`crate::rows`]). So those
//! who insert neighbours wait for each other as long as it takes to write leaves, and never for the
//! rest of a transaction. A snapshot that sees a record sees its key as well, because its writer had
//! (I6), or was the one who entered it.
//!
//! A node keeps its place and its lower bound while it is in the tree, and gives its upper half to a new one to
//! its right. So a leaf found once can be gone to at once ([`Hint`]): what it has lost lies to its
//! right, where its link leads.
//!
//! A key is taken out when all snapshots in use see that there is nothing under it
//! ([`crate::rows::collect`]), so a node that is newer than a snapshot is as good as the one it would
//! see: it has the same keys that matter and more, or they are to its right. So a snapshot never
//! becomes too old for the tree, only for records.
//!
//! | question | answered in |
//! |---|---|
//! | what is in a node | [`node`] |
//! | which leaf a key belongs to, and what is between two keys | [`locate`], [`scan`] |
//! | how a tree gets keys | [`enter`] |
//!
//! A leaf without keys is given back in the same way.

pub mod enter;
pub mod locate;
pub mod node;
pub mod scan;

use crate::block::Layout;
use crate::directory::RecordAddress;

/// Where a tree begins, and how its nodes lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tree {
    root: RecordAddress,
    layout: Layout,
}

/// A tree that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "nodes of a tree are records without keys and with values of at least {least} bytes, so that \
     keys of {} bytes fit; not with keys of {key} and values of {value}",
    Tree::KEY_LEAST
)]
pub struct TreeError {
    least: usize,
    key: usize,
    value: usize,
}

impl Tree {
    /// Of the shortest key that every tree takes.
    const KEY_LEAST: usize = 16;
    /// Nodes have room for at least so many entries with the longest keys, so that each half of
    /// one that is split has some.
    const FAN_LEAST: usize = 4;

    /// The tree whose root is at a place; it is empty while the root was never written.
    ///
    /// # Errors
    /// [`TreeError`].
    pub const fn new(root: RecordAddress, layout: Layout) -> Result<Self, TreeError> {
        let (_, value, key) = layout.sizes();
        let least = node::room(Self::KEY_LEAST, Self::FAN_LEAST);
        if key > 0 || value < least {
            return Err(TreeError { least, key, value });
        }
        let tree = Self { root, layout };
        assert!(
            tree.key_max() >= Self::KEY_LEAST,
            "the longest key and the space of a node agree"
        );
        Ok(tree)
    }

    /// Bytes of the longest key that it takes.
    #[must_use]
    pub const fn key_max(&self) -> usize {
        node::longest_key(self.layout.value_max(), Self::FAN_LEAST)
    }

    /// Where the root is, for good.
    #[must_use]
    pub const fn root(&self) -> RecordAddress {
        self.root
    }

    /// How its nodes lie in memory.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.layout
    }
}

/// A leaf that was found before, where a search may begin. It is never wrong, only late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hint(pub(crate) RecordAddress);
