//! The string: a header of 16 bytes, then registers.
//!
//! ```text
//! HYLL ‖ form u8 (0 dense, 1 sparse) ‖ 3 zeros ‖ count u64 little-endian (highest bit: out of date)
//! dense: 16384 registers of 6 bits, the first in the lowest bits of the first byte
//! sparse: see `sparse`
//! ```

use super::sparse;
use crate::error::CommandError;

/// Number of registers.
pub const REGISTERS: usize = 16384;
/// Largest value of a register.
pub const REGISTER_MAX: u8 = 63;
/// Bytes before the registers.
pub const HEADER: usize = 16;
/// Bytes of the dense form.
const DENSE_BYTES: usize = HEADER + REGISTERS * 6 / 8;
/// Bytes up to which the sparse form stays (`hll-sparse-max-bytes`).
const SPARSE_MAX: usize = 3000;

const MAGIC: &[u8; 4] = b"HYLL";
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
const OUT_OF_DATE: u8 = 0x80;

/// The string is of the right form and its registers cannot be read.
pub const CORRUPT: CommandError = CommandError::text("INVALIDOBJ Corrupted HLL object detected");

/// A HyperLogLog without elements.
pub fn empty() -> Vec<u8> {
    let mut value = vec![0; HEADER];
    value[..4].copy_from_slice(MAGIC);
    value[4] = SPARSE;
    sparse::push_zeros(&mut value, REGISTERS);
    value
}

/// Whether a string is one.
///
/// # Errors
/// Redis's text for a string that is none.
pub fn check(value: &[u8]) -> Result<(), CommandError> {
    let is_one = value.len() >= HEADER
        && value.starts_with(MAGIC)
        && (value[4] == SPARSE || (value[4] == DENSE && value.len() == DENSE_BYTES));
    is_one.then_some(()).ok_or(CommandError::text(
        "WRONGTYPE Key is not a valid HyperLogLog string value.",
    ))
}

/// Whether it is in the dense form.
pub fn is_dense(value: &[u8]) -> bool {
    value[4] == DENSE
}

/// The count that was worked out last, unless registers changed since.
pub fn known_count(value: &[u8]) -> Option<u64> {
    let count = u64::from_le_bytes(value[8..HEADER].try_into().ok()?);
    (value[15] & OUT_OF_DATE == 0).then_some(count)
}

/// Notes the count.
pub fn keep_count(value: &mut [u8], count: u64) {
    value[8..HEADER].copy_from_slice(&count.to_le_bytes());
    assert!(value[15] & OUT_OF_DATE == 0, "a count of 63 bits");
}

/// Notes that the count is no longer that of the registers.
pub fn forget_count(value: &mut [u8]) {
    value[15] |= OUT_OF_DATE;
}

/// Calls `take` with each register that is not 0 and its value.
///
/// # Errors
/// [`CORRUPT`].
pub fn each(value: &[u8], take: &mut dyn FnMut(usize, u8)) -> Result<(), CommandError> {
    if is_dense(value) {
        for index in 0..REGISTERS {
            let register = dense_get(value, index);
            if register > 0 {
                take(index, register);
            }
        }
        return Ok(());
    }
    let mut at = 0;
    for run in sparse::runs(&value[HEADER..]) {
        let run = run.ok_or(CORRUPT)?;
        if at + run.length > REGISTERS {
            return Err(CORRUPT);
        }
        if run.value > 0 {
            (at..at + run.length).for_each(|index| take(index, run.value));
        }
        at += run.length;
    }
    (at == REGISTERS).then_some(()).ok_or(CORRUPT)
}

/// Raises a register to `register`; whether it was lower.
///
/// # Errors
/// [`CORRUPT`].
pub fn raise(value: &mut Vec<u8>, index: usize, register: u8) -> Result<bool, CommandError> {
    assert!(
        index < REGISTERS && register <= REGISTER_MAX && register > 0,
        "a register that there is not"
    );
    if is_dense(value) {
        return Ok(dense_raise(value, index, register));
    }
    match sparse::raise(value, index, register, SPARSE_MAX)? {
        sparse::Raised::Changed => {
            forget_count(value);
            Ok(true)
        }
        sparse::Raised::Same => Ok(false),
        sparse::Raised::NoRoom => {
            make_dense(value)?;
            Ok(dense_raise(value, index, register))
        }
    }
}

/// Brings it into the dense form.
///
/// # Errors
/// [`CORRUPT`].
pub fn make_dense(value: &mut Vec<u8>) -> Result<(), CommandError> {
    if is_dense(value) {
        return Ok(());
    }
    let mut dense = vec![0; DENSE_BYTES];
    dense[..HEADER].copy_from_slice(&value[..HEADER]);
    dense[4] = DENSE;
    each(value, &mut |index, register| {
        dense_set(&mut dense, index, register);
    })?;
    *value = dense;
    Ok(())
}

fn dense_get(value: &[u8], index: usize) -> u8 {
    let (byte, shift) = (HEADER + index * 6 / 8, index * 6 % 8);
    let high = value.get(byte + 1).copied().unwrap_or(0);
    let both = u16::from_le_bytes([value[byte], high]);
    u8::try_from((both >> shift) & u16::from(REGISTER_MAX)).unwrap_or(REGISTER_MAX)
}

fn dense_set(value: &mut [u8], index: usize, register: u8) {
    let (byte, shift) = (HEADER + index * 6 / 8, index * 6 % 8);
    let high = value.get(byte + 1).copied().unwrap_or(0);
    let mut both = u16::from_le_bytes([value[byte], high]);
    both &= !(u16::from(REGISTER_MAX) << shift);
    both |= u16::from(register) << shift;
    let [low, high] = both.to_le_bytes();
    value[byte] = low;
    if let Some(next) = value.get_mut(byte + 1) {
        *next = high;
    }
}

fn dense_raise(value: &mut [u8], index: usize, register: u8) -> bool {
    if dense_get(value, index) >= register {
        return false;
    }
    dense_set(value, index, register);
    forget_count(value);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn both_forms_keep_the_highest_of_each_register(
            raises in prop::collection::vec((prop_oneof![0..40_usize, 0..REGISTERS], 1..40_u8), 0..1800),
        ) {
            let mut model = vec![0_u8; REGISTERS];
            let mut value = empty();
            for (index, register) in raises {
                let is_higher = register > model[index];
                prop_assert_eq!(raise(&mut value, index, register), Ok(is_higher));
                model[index] = model[index].max(register);
            }
            let mut dense = value.clone();
            make_dense(&mut dense).unwrap();
            for form in [&value, &dense] {
                prop_assert_eq!(check(form), Ok(()));
                let mut found = vec![0_u8; REGISTERS];
                each(form, &mut |index, register| found[index] = register).unwrap();
                prop_assert_eq!(&found, &model);
            }
        }

        #[test]
        fn no_bytes_make_reading_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            index in 0..REGISTERS,
        ) {
            let mut value = empty();
            value.truncate(HEADER);
            value.extend(bytes);
            let _ = each(&value, &mut |_, _| {});
            let _ = raise(&mut value, index, 5);
            let _ = make_dense(&mut value);
        }
    }
}
