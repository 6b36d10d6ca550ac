//! All that a view has in memory, for who looks for what must not be there.

use super::View;
use crate::contents::Contents;
use crate::slot::{KEY_BYTES, Slot};

/// What a view has under one key.
pub struct HeldKey<'a, C: Contents> {
    /// The key.
    pub key: &'a [u8],
    /// What readers of now are given; `None` while the key is being filled.
    pub contents: Option<&'a C>,
    /// Changes that are kept, for readers of older snapshots or for the end of a fill.
    pub changes: Vec<&'a C::Change>,
}

impl<C: Contents> View<C> {
    /// Shows `each` key that is filled or being filled. No commit is applied meanwhile.
    pub fn for_each_key(&self, each: &mut dyn FnMut(HeldKey<'_, C>)) {
        let inner = self.inner.read();
        let mut bytes_min = 0;
        for (key, slot) in &inner.slots {
            let (contents, changes) = match slot {
                Slot::Filling(filling) => {
                    let waiting = filling.waiting.iter();
                    (None, waiting.map(|(_, change)| change).collect())
                }
                Slot::Filled(filled) => {
                    bytes_min += KEY_BYTES;
                    (Some(&filled.contents), filled.changes().collect())
                }
            };
            each(HeldKey {
                key,
                contents,
                changes,
            });
        }
        assert!(
            self.size_bytes() >= bytes_min,
            "each filled key was counted, and each was shown"
        );
    }
}
