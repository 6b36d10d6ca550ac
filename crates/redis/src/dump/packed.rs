//! Many elements in one string, as Redis packs small collections, and compressed strings.

use super::read::Input;
use crate::resp::Limits;

fn text(number: i64) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// A number of `N` bytes, little-endian.
fn number<const N: usize>(input: &mut Input<'_>) -> Option<Vec<u8>> {
    let bytes: [u8; N] = input.array()?;
    let mut wide = [if bytes[N - 1] & 0x80 == 0 { 0 } else { 0xFF }; 8];
    wide[..N].copy_from_slice(&bytes);
    Some(text(i64::from_le_bytes(wide)))
}

fn bytes(input: &mut Input<'_>, length: usize) -> Option<Vec<u8>> {
    input.take(length).map(<[u8]>::to_vec)
}

/// The elements of a ziplist: length, place of the last and number, then each with the length of
/// the one before it.
pub fn ziplist(packed: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut input = Input(packed);
    input.take(10)?;
    let mut elements = Vec::new();
    loop {
        match input.byte()? {
            0xFF => return input.0.is_empty().then_some(elements),
            0xFE => {
                input.take(4)?;
            }
            _ => {}
        }
        let form = input.byte()?;
        elements.push(match form {
            0x00..=0x3F => bytes(&mut input, usize::from(form))?,
            0x40..=0x7F => {
                let length = u16::from_be_bytes([form & 0x3F, input.byte()?]);
                bytes(&mut input, usize::from(length))?
            }
            0x80..=0xBF => {
                let length = u32::from_be_bytes(input.array()?);
                bytes(&mut input, usize::try_from(length).ok()?)?
            }
            0xC0 => number::<2>(&mut input)?,
            0xD0 => number::<4>(&mut input)?,
            0xE0 => number::<8>(&mut input)?,
            0xF0 => number::<3>(&mut input)?,
            0xFE => number::<1>(&mut input)?,
            0xF1..=0xFD => text(i64::from(form & 0x0F) - 1),
            _ => return None,
        });
    }
}

/// The elements of a listpack: length and number, then each with its own length behind it.
pub fn listpack(packed: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut input = Input(packed);
    input.take(6)?;
    let mut elements = Vec::new();
    loop {
        let before = input.0.len();
        let form = input.byte()?;
        elements.push(match form {
            0xFF => return input.0.is_empty().then_some(elements),
            0x00..=0x7F => text(i64::from(form)),
            0x80..=0xBF => bytes(&mut input, usize::from(form & 0x3F))?,
            0xC0..=0xDF => {
                let low = i64::from(u16::from_be_bytes([form & 0x1F, input.byte()?]));
                text(if low < 1 << 12 { low } else { low - (1 << 13) })
            }
            0xE0..=0xEF => {
                let length = u16::from_be_bytes([form & 0x0F, input.byte()?]);
                bytes(&mut input, usize::from(length))?
            }
            0xF0 => {
                let length = u32::from_le_bytes(input.array()?);
                bytes(&mut input, usize::try_from(length).ok()?)?
            }
            0xF1 => number::<2>(&mut input)?,
            0xF2 => number::<3>(&mut input)?,
            0xF3 => number::<4>(&mut input)?,
            0xF4 => number::<8>(&mut input)?,
            _ => return None,
        });
        // The length behind it has seven bits a byte.
        input.take(match before - input.0.len() {
            0..=127 => 1,
            128..=16_382 => 2,
            16_383..=2_097_150 => 3,
            2_097_151..=268_435_454 => 4,
            _ => 5,
        })?;
    }
}

/// The members of an intset: bytes of each, number, then numbers.
pub fn intset(packed: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut input = Input(packed);
    let width = u32::from_le_bytes(input.array()?);
    let count = usize::try_from(u32::from_le_bytes(input.array()?)).ok()?;
    let mut members = Vec::new();
    for _ in 0..count {
        members.push(match width {
            2 => number::<2>(&mut input)?,
            4 => number::<4>(&mut input)?,
            8 => number::<8>(&mut input)?,
            _ => return None,
        });
    }
    input.0.is_empty().then_some(members)
}

/// What was compressed with LZF into these bytes, `whole` bytes long.
pub fn decompressed(compressed: &[u8], whole: usize) -> Option<Vec<u8>> {
    if whole > Limits::REDIS.bulk_bytes {
        return None;
    }
    let mut input = Input(compressed);
    let mut out = Vec::new();
    while let Some(control) = input.byte() {
        let high = usize::from(control >> 5);
        if high == 0 {
            out.extend_from_slice(input.take(usize::from(control) + 1)?);
        } else {
            let more = if high == 7 { input.byte()? } else { 0 };
            let length = high + usize::from(more) + 2;
            let back = usize::from(u16::from_be_bytes([control & 0x1F, input.byte()?])) + 1;
            let from = out.len().checked_sub(back)?;
            // What is copied may be part of what it makes.
            for place in from..from + length {
                out.push(out[place]);
            }
        }
        if out.len() > whole {
            return None;
        }
    }
    (out.len() == whole).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_may_overlap_what_it_makes() {
        // One letter, then six more from one place back.
        assert_eq!(
            decompressed(&[0, b'a', 0x80, 0], 7),
            Some(b"aaaaaaa".to_vec())
        );
        assert_eq!(decompressed(&[0, b'a', 0x80, 1], 7), None);
    }

    #[test]
    fn numbers_of_any_width_keep_their_sign() {
        let header = [0; 10];
        let entries = [0, 0xF0, 0xFF, 0xFF, 0xFF, 2, 0xF1, 2, 0xFE, 0x80, 0xFF];
        let found = ziplist(&[&header[..], &entries].concat()).unwrap();
        assert_eq!(found, [&b"-1"[..], b"0", b"-128"]);
        let entries = [0xDF, 0xFF, 2, 0xF2, 0, 0, 0x80, 4, 7, 1, 0xFF];
        let found = listpack(&[&header[..6], &entries].concat()).unwrap();
        assert_eq!(found, [&b"-1"[..], b"-8388608", b"7"]);
    }
}
