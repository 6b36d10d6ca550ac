//! Objects that most histories are made of.

use super::Model;

/// A register: a read gives what was written last, 0 before that.
#[derive(Debug, Clone, Copy, Default)]
pub struct Register;

/// What is asked of a [`Register`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterInput {
    /// Reads it; answers the value.
    Read,
    /// Writes a value; answers it.
    Write(u64),
}

impl Model for Register {
    type State = u64;
    type Input = RegisterInput;
    type Output = u64;

    fn initial(&self) -> u64 {
        0
    }

    fn apply(&self, state: &u64, input: &RegisterInput) -> (u64, u64) {
        let value = match input {
            RegisterInput::Read => *state,
            RegisterInput::Write(value) => *value,
        };
        (value, value)
    }
}

/// A counter: adding (0 to read it) answers the sum so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counter;

impl Model for Counter {
    type State = i64;
    type Input = i64;
    type Output = i64;

    fn initial(&self) -> i64 {
        0
    }

    fn apply(&self, state: &i64, input: &i64) -> (i64, i64) {
        let sum = state.wrapping_add(*input);
        (sum, sum)
    }
}

/// A list: an append answers the new length, a read the whole list.
#[derive(Debug, Clone, Copy, Default)]
pub struct List;

/// What is asked of a [`List`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListInput {
    /// Reads the whole list.
    Read,
    /// Appends an element.
    Append(u64),
}

/// What a [`List`] answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListOutput {
    /// All elements, oldest first.
    Elements(Vec<u64>),
    /// How many there are now.
    Length(usize),
}

impl Model for List {
    type State = Vec<u64>;
    type Input = ListInput;
    type Output = ListOutput;

    fn initial(&self) -> Vec<u64> {
        Vec::new()
    }

    fn apply(&self, state: &Vec<u64>, input: &ListInput) -> (Vec<u64>, ListOutput) {
        match input {
            ListInput::Read => (state.clone(), ListOutput::Elements(state.clone())),
            ListInput::Append(element) => {
                let mut list = state.clone();
                list.push(*element);
                let length = list.len();
                (list, ListOutput::Length(length))
            }
        }
    }
}
