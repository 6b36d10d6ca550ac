//! CRC-64 with the polynomial of Jones, as Redis has it.

/// The polynomial 0xAD93D23594C935A9 with its bits in reverse.
const POLYNOMIAL: u64 = 0x95AC_9329_AC4B_C9B5;

const TABLE: [u64; 256] = table();

const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 {
                sum >> 1 ^ POLYNOMIAL
            } else {
                sum >> 1
            };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
}

/// The checksum of `bytes`.
pub fn crc64(bytes: &[u8]) -> u64 {
    let add = |sum: u64, byte: &u8| TABLE[usize::from(sum.to_le_bytes()[0] ^ byte)] ^ sum >> 8;
    bytes.iter().fold(0, add)
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_the_published_one() {
        assert_eq!(super::crc64(b"123456789"), 0xE9C6_D914_C4B8_D9CA);
    }
}
