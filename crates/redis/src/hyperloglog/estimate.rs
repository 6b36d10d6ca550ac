//! From an element to its register, and from registers to a count.
//!
//! The hash is MurmurHash64A; the estimate is Ertl's (“New cardinality estimation algorithms for
//! HyperLogLog sketches”, 2017), as in Redis: the same registers make the same count.

use super::registers::{REGISTER_MAX, REGISTERS};

const INDEX_BITS: u32 = 14;
const SEED: u64 = 0xADC8_3B19;
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// The register of an element, and what it is raised to.
pub fn register_of(element: &[u8]) -> (usize, u8) {
    let hash = murmur(element);
    let index = usize::try_from(hash).unwrap_or(usize::MAX) & (REGISTERS - 1);
    // A bit above all others ends the count of zeros.
    let rest = (hash >> INDEX_BITS) | 1 << (64 - INDEX_BITS);
    let register = u8::try_from(rest.trailing_zeros() + 1).unwrap_or(REGISTER_MAX);
    assert!(register <= REGISTER_MAX, "the bit above ends the count");
    (index, register)
}

fn murmur(bytes: &[u8]) -> u64 {
    const M: u64 = 0xC6A4_A793_5BD1_E995;
    const R: u32 = 47;
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(M);
    let (blocks, tail) = bytes.as_chunks::<8>();
    for block in blocks {
        let mut mixed = u64::from_le_bytes(*block).wrapping_mul(M);
        mixed ^= mixed >> R;
        hash = (hash ^ mixed.wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(M);
    }
    hash ^= hash >> R;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> R
}

/// The count, from how many registers have each value.
#[allow(clippy::cast_precision_loss)] // counts of registers
pub fn count(histogram: &[usize; 64]) -> u64 {
    let registers = REGISTERS as f64;
    let largest = 64 - INDEX_BITS as usize;
    let mut z = registers * tau((registers - histogram[largest + 1] as f64) / registers);
    for value in (1..=largest).rev() {
        z = 0.5 * (z + histogram[value] as f64);
    }
    z += registers * sigma(histogram[0] as f64 / registers);
    // Never below zero; an infinite z, of no registers at all, makes 0.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rounded = (ALPHA * registers * registers / z).round() as u64;
    rounded
}

fn tau(x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut x, mut y, mut z) = (x, 1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        #[allow(clippy::float_cmp)] // until nothing changes any more
        if before == z {
            return z / 3.0;
        }
    }
}

fn sigma(x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut x, mut y, mut z) = (x, 1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        #[allow(clippy::float_cmp)] // until nothing changes any more
        if before == z {
            return z;
        }
    }
}
