//! Tables by which the XDP program computes CRC-32C of eight bytes at a time.

use crate::layout::CRC_TABLES_BYTES;

/// Castagnoli's polynomial, its bits in reverse.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// The tables as they lie in their map: table k has the checksum of a byte with k zero bytes behind it.
pub(crate) fn crc_tables() -> Box<[u8; CRC_TABLES_BYTES]> {
    let mut tables = [[0_u32; 256]; 8];
    for (crc, entry) in (0..).zip(&mut tables[0]) {
        *entry = (0..8).fold(crc, |crc: u32, _| {
            (crc >> 1) ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 }
        });
    }
    for table in 1..8 {
        for byte in 0..256 {
            let crc = tables[table - 1][byte];
            tables[table][byte] = (crc >> 8) ^ tables[0][usize::from(crc.to_le_bytes()[0])];
        }
    }
    assert_eq!(tables[0][0], 0, "zero bytes do not change a checksum of 0");
    assert_eq!(tables[0][1], 0xF26B_8303, "the first entry is well known");
    let mut bytes = Box::new([0; CRC_TABLES_BYTES]);
    let words = tables.iter().flatten();
    for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the program does it.
    fn crc_of(bytes: &[u8]) -> u32 {
        let tables = crc_tables();
        let word = |table: usize, byte: u8| {
            let at = (table * 256 + usize::from(byte)) * 4;
            u32::from_le_bytes(tables[at..at + 4].try_into().unwrap())
        };
        let mut crc = u32::MAX;
        let eights = bytes.chunks_exact(8);
        let rest = eights.remainder();
        for eight in eights {
            let mut eight: [u8; 8] = eight.try_into().unwrap();
            for (byte, of_crc) in eight.iter_mut().zip(crc.to_le_bytes()) {
                *byte ^= of_crc;
            }
            crc = (0..8).fold(0, |crc, at| crc ^ word(7 - at, eight[at]));
        }
        for byte in rest {
            crc = (crc >> 8) ^ word(0, crc.to_le_bytes()[0] ^ byte);
        }
        !crc
    }

    #[test]
    fn the_tables_give_the_checksum_of_datagrams() {
        let bytes: Vec<u8> = (0..255).collect();
        for length in [0, 1, 7, 8, 9, 48, 76, 255] {
            let bytes = &bytes[..length];
            let expected = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes);
            assert_eq!(u64::from(crc_of(bytes)), expected, "{length} bytes");
        }
        assert_eq!(
            crc_of(b"123456789"),
            0xE306_9283,
            "the published check value"
        );
    }
}
