//! Where a key belongs.

use crate::rows::Key;

/// Bits that look as if they had nothing to do with the key (the finaliser of SplitMix).
pub(crate) fn hash(key: Key) -> u64 {
    let mut bits = u64::from(key.0).wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// The share, of so many equal ones, that a hash falls into: its upper bits decide, so that the
/// shares of a finer division lie within those of a coarser one of which it is a multiple.
pub(crate) fn share(hash: u64, of: usize) -> usize {
    let wide = u128::from(hash) * of as u128;
    // Below `of`, which is a usize.
    usize::try_from(wide >> 64).unwrap_or(0)
}

/// The lower bits, for tables inside of a share; `mask` is a power of two less one.
pub(crate) fn slot(hash: u64, mask: usize) -> usize {
    usize::try_from(hash & mask as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finer_shares_lie_within_coarser_ones() {
        for key in 0..10_000 {
            let hash = hash(Key(key));
            assert_eq!(share(hash, 3 * 40) / 40, share(hash, 3));
        }
        assert_eq!(share(u64::MAX, 7), 6);
        assert_eq!(share(0, 7), 0);
    }

    #[test]
    fn keys_in_a_row_are_spread_evenly() {
        let mut counts = [0; 16];
        for key in 0..16_000 {
            counts[share(hash(Key(key)), 16)] += 1;
        }
        assert!(counts.iter().all(|count| (900..1_100).contains(count)));
    }
}
