//! Payloads in place: what is queued is moved once in and once out.

/// Values under numbers that are used again.
#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Keeps a value; its number.
    pub fn insert(&mut self, value: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(value);
            return slot;
        }
        let slot = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        assert!(slot < u32::MAX, "more events wait than numbers exist");
        self.slots.push(Some(value));
        slot
    }

    /// Gives a value up.
    pub fn take(&mut self, slot: u32) -> Option<T> {
        let value = self.slots.get_mut(slot as usize)?.take();
        if value.is_some() {
            self.free.push(slot);
        }
        value
    }

    /// All values, in the order of their numbers.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten()
    }
}
