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

/// Makes a listpack, element by element.
#[derive(Default)]
pub struct Listpack {
    entries: Vec<u8>,
    count: usize,
}

impl Listpack {
    /// Adds a number.
    pub fn number(&mut self, number: i64) {
        let before = self.entries.len();
        match (
            u8::try_from(number),
            i16::try_from(number),
            i32::try_from(number),
        ) {
            (Ok(small @ 0..=0x7F), ..) => self.entries.push(small),
            (_, Ok(short), _) => self.with_form(0xF1, &short.to_le_bytes()),
            (_, _, Ok(middle)) => self.with_form(0xF3, &middle.to_le_bytes()),
            _ => self.with_form(0xF4, &number.to_le_bytes()),
        }
        self.end(before);
    }

    /// Adds bytes, as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let before = self.entries.len();
        let length = bytes.len();
        match (u8::try_from(length), u16::try_from(length)) {
            (Ok(short @ 0..=0x3F), _) => self.entries.push(0x80 | short),
            (_, Ok(middle @ 0..=0x0FFF)) => {
                self.entries
                    .extend_from_slice(&(0xE000 | middle).to_be_bytes());
            }
            _ => {
                let length = u32::try_from(length).unwrap_or(u32::MAX);
                self.with_form(0xF0, &length.to_le_bytes());
            }
        }
        self.entries.extend_from_slice(bytes);
        self.end(before);
    }

    fn with_form(&mut self, form: u8, bytes: &[u8]) {
        self.entries.push(form);
        self.entries.extend_from_slice(bytes);
    }

    /// An element ends with its length, to be read from behind: seven bits a byte, the last ones last.
    fn end(&mut self, before: usize) {
        let length = self.entries.len() - before;
        let bytes = match length {
            0..=127 => 1,
            128..=16_382 => 2,
            16_383..=2_097_150 => 3,
            2_097_151..=268_435_454 => 4,
            _ => 5,
        };
        for place in (0..bytes).rev() {
            let seven = (length >> (7 * place)) & 0x7F;
            let goes_on = if place + 1 == bytes { 0 } else { 0x80 };
            self.entries
                .push(u8::try_from(seven).unwrap_or(0) | goes_on);
        }
        self.count += 1;
    }

    /// All of it.
    pub fn whole(self) -> Vec<u8> {
        // As many elements as that are counted by who reads them.
        let count = u16::try_from(self.count).unwrap_or(u16::MAX);
        let bytes = u32::try_from(self.entries.len() + 7).unwrap_or(u32::MAX);
        let mut out = Vec::with_capacity(self.entries.len() + 7);
        out.extend_from_slice(&bytes.to_le_bytes());
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&self.entries);
        out.push(0xFF);
        out
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
