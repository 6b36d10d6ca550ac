//! Things by number, so that a state is a few numbers.

use std::collections::HashMap;

use crate::common::machine::bytes;

/// Different things, in the order in which they were first seen.
pub struct Numbered<T> {
    all: Vec<T>,
    numbers: HashMap<Vec<u8>, u32>,
}

impl<T: serde::Serialize> Numbered<T> {
    pub fn new() -> Self {
        Self {
            all: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    pub fn number(&mut self, thing: T) -> u32 {
        let next = u32::try_from(self.all.len()).unwrap();
        let number = *self.numbers.entry(bytes(&thing)).or_insert(next);
        if number == next {
            self.all.push(thing);
        }
        number
    }

    pub fn get(&self, number: u32) -> &T {
        &self.all[number as usize]
    }
}
