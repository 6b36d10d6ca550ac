//! The sparse form: runs of equal registers.
//!
//! ```text
//! 00llllll            up to 64 registers of 0
//! 01llllll llllllll   up to 16384 registers of 0
//! 1vvvvvll            up to 4 registers of a value up to 32
//! ```
//!
//! All lengths, and values, are one less than meant. Which of several encodings of the same registers
//! is made is Redis's choice, so that strings are equal.

use super::registers::{CORRUPT, HEADER};
use crate::error::CommandError;

const ZEROS_MAX: usize = 64;
const VALUES_MAX: usize = 4;
const VALUE_MAX: u8 = 32;
/// Runs behind a change that are looked at for a neighbour with the same value.
const MERGE_LOOKS: usize = 5;

/// Registers of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterRun {
    /// The value.
    pub value: u8,
    /// How many.
    pub length: usize,
    /// Bytes of its encoding.
    bytes: usize,
}

/// What became of raising a register.
#[derive(Debug, PartialEq, Eq)]
pub enum Raised {
    /// It was lower.
    Changed,
    /// It was not.
    Same,
    /// It is for the dense form.
    NoRoom,
}

fn run(bytes: &[u8]) -> Option<RegisterRun> {
    let first = *bytes.first()?;
    let low = usize::from(first & 0x3F);
    Some(match first >> 6 {
        0 => RegisterRun {
            value: 0,
            length: low + 1,
            bytes: 1,
        },
        1 => RegisterRun {
            value: 0,
            length: (low << 8 | usize::from(*bytes.get(1)?)) + 1,
            bytes: 2,
        },
        _ => RegisterRun {
            value: ((first >> 2) & 0x1F) + 1,
            length: usize::from(first & 3) + 1,
            bytes: 1,
        },
    })
}

/// The runs of bytes; `None` for one that is cut off, which is the last.
pub fn runs(mut bytes: &[u8]) -> impl Iterator<Item = Option<RegisterRun>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let found = run(bytes);
        bytes = &bytes[found.map_or(bytes.len(), |run| run.bytes)..];
        Some(found)
    })
}

/// Adds a run of zeros.
pub fn push_zeros(out: &mut Vec<u8>, length: usize) {
    assert!(
        length > 0 && length <= super::registers::REGISTERS,
        "a run has registers"
    );
    let [high, low] = u16::try_from(length - 1).unwrap_or(u16::MAX).to_be_bytes();
    if length > ZEROS_MAX {
        out.push(0x40 | high);
    }
    out.push(low);
}

fn values(value: u8, length: usize) -> u8 {
    assert!(
        (1..=VALUE_MAX).contains(&value) && (1..=VALUES_MAX).contains(&length),
        "a run of values that the form cannot hold"
    );
    0x80 | (value - 1) << 2 | u8::try_from(length - 1).unwrap_or(0)
}

fn push_run(out: &mut Vec<u8>, value: u8, length: usize) {
    match (value, length) {
        (_, 0) => {}
        (0, _) => push_zeros(out, length),
        _ => out.push(values(value, length)),
    }
}

/// Raises a register in a whole string, as long as it has at most `bytes_max` bytes.
pub fn raise(
    value: &mut Vec<u8>,
    index: usize,
    register: u8,
    bytes_max: usize,
) -> Result<Raised, CommandError> {
    if register > VALUE_MAX {
        return Ok(Raised::NoRoom);
    }
    // The run that holds the register, and the one before it.
    let (mut at, mut before, mut first) = (HEADER, None, 0);
    let found = loop {
        let found = value.get(at..).and_then(run).ok_or(CORRUPT)?;
        if index < first + found.length {
            break found;
        }
        first += found.length;
        before = Some(at);
        at += found.bytes;
    };
    if found.value >= register {
        return Ok(Raised::Same);
    }
    let mut split = Vec::with_capacity(5);
    push_run(&mut split, found.value, index - first);
    split.push(values(register, 1));
    push_run(&mut split, found.value, first + found.length - 1 - index);
    if split.len() > found.bytes && value.len() + split.len() - found.bytes > bytes_max {
        return Ok(Raised::NoRoom);
    }
    value.splice(at..at + found.bytes, split);
    merge(value, before.unwrap_or(HEADER));
    Ok(Raised::Changed)
}

/// Joins neighbours of one value, from a place on.
fn merge(value: &mut Vec<u8>, mut at: usize) {
    for _ in 0..MERGE_LOOKS {
        let Some(one) = value.get(at..).and_then(run) else {
            return;
        };
        let next = value.get(at + one.bytes..).and_then(run);
        let joined = next.filter(|next| next.value == one.value && one.value > 0);
        match joined.map(|next| next.length + one.length) {
            Some(length) if length <= VALUES_MAX => {
                value[at + 1] = values(one.value, length);
                value.remove(at);
            }
            _ => at += one.bytes,
        }
    }
}
