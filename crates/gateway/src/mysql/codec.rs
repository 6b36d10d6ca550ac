//! The protocol's primitive encodings: little-endian integers, length-encoded integers and
//! strings, NUL-terminated strings.

/// A packet did not have the shape its command promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed communication packet")]
pub struct Malformed;

/// Reads a payload front to back; every read past the end is [`Malformed`], never a panic.
#[derive(Debug, Clone, Copy)]
pub struct PayloadReader<'a> {
    rest: &'a [u8],
}

impl<'a> PayloadReader<'a> {
    /// Reads `payload` from its first byte.
    #[must_use]
    pub fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    /// Whether everything has been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// All bytes not read yet.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// [`Malformed`] when fewer are left.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.rest.split_at_checked(count).ok_or(Malformed)?;
        self.rest = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.bytes(N)?.try_into().map_err(|_| Malformed)
    }

    /// One byte.
    ///
    /// # Errors
    /// [`Malformed`] at the end.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes.
    ///
    /// # Errors
    /// [`Malformed`] at the end.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Four bytes.
    ///
    /// # Errors
    /// [`Malformed`] at the end.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Eight bytes.
    ///
    /// # Errors
    /// [`Malformed`] at the end.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A length-encoded integer of 1, 3, 4 or 9 bytes.
    ///
    /// # Errors
    /// [`Malformed`] at the end, and for the reserved first bytes 0xFB and 0xFF.
    pub fn lenenc_int(&mut self) -> Result<u64, Malformed> {
        match self.u8()? {
            small @ 0..=0xFA => Ok(u64::from(small)),
            0xFC => Ok(u64::from(self.u16()?)),
            0xFD => {
                let [a, b, c] = self.array::<3>()?;
                Ok(u64::from(u32::from_le_bytes([a, b, c, 0])))
            }
            0xFE => self.u64(),
            0xFB | 0xFF => Err(Malformed),
        }
    }

    /// A string behind its length-encoded length.
    ///
    /// # Errors
    /// [`Malformed`] when the length reaches past the end.
    pub fn lenenc_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.lenenc_int()?).map_err(|_| Malformed)?;
        self.bytes(length)
    }

    /// A string up to, and without, its NUL.
    ///
    /// # Errors
    /// [`Malformed`] when there is no NUL.
    pub fn nul_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let end = self.rest.iter().position(|&b| b == 0).ok_or(Malformed)?;
        let value = self.bytes(end)?;
        self.bytes(1)?;
        Ok(value)
    }
}

/// Appends a length-encoded integer.
pub fn put_lenenc_int(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        0..=0xFA => out.push(bytes[0]),
        0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends a string behind its length.
pub fn put_lenenc_bytes(out: &mut Vec<u8>, value: &[u8]) {
    put_lenenc_int(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Appends what `write` writes, behind its length, without a second buffer: one byte is kept
/// for the length, and only values of more than 250 bytes are moved to make room for more.
pub fn put_lenenc_with(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.push(0);
    write(out);
    let length = out.len() - start - 1;
    if let Ok(byte) = u8::try_from(length)
        && byte <= 0xFA
    {
        out[start] = byte; // in bounds: pushed above
        return;
    }
    let mut prefix = Vec::with_capacity(9);
    put_lenenc_int(&mut prefix, length as u64);
    out.splice(start..=start, prefix);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_use_the_shortest_form_the_protocol_allows() {
        for (value, size) in [
            (0, 1),
            (250, 1),
            (251, 3),
            (0xFFFF, 3),
            (0x1_0000, 4),
            (0xFF_FFFF, 4),
            (0x100_0000, 9),
            (u64::MAX, 9),
        ] {
            let mut out = Vec::new();
            put_lenenc_int(&mut out, value);
            assert_eq!(out.len(), size, "{value}");
            assert_eq!(PayloadReader::new(&out).lenenc_int(), Ok(value));
        }
    }

    #[test]
    fn a_null_marker_and_an_error_marker_are_no_lengths() {
        assert_eq!(PayloadReader::new(&[0xFB]).lenenc_int(), Err(Malformed));
        assert_eq!(PayloadReader::new(&[0xFF]).lenenc_int(), Err(Malformed));
    }

    #[test]
    fn a_length_past_the_end_is_malformed() {
        assert_eq!(
            PayloadReader::new(&[5, 1, 2]).lenenc_bytes(),
            Err(Malformed)
        );
        assert_eq!(
            PayloadReader::new(&[0xFE, 255, 255, 255, 255, 255, 255, 255, 255]).lenenc_bytes(),
            Err(Malformed)
        );
        assert_eq!(PayloadReader::new(b"abc").nul_bytes(), Err(Malformed));
    }

    proptest! {
        #[test]
        fn strings_written_in_place_equal_strings_written_whole(value in proptest::collection::vec(any::<u8>(), 0..70_000)) {
            let (mut whole, mut in_place) = (vec![7], vec![7]);
            put_lenenc_bytes(&mut whole, &value);
            put_lenenc_with(&mut in_place, |out| out.extend_from_slice(&value));
            prop_assert_eq!(&whole, &in_place);
            prop_assert_eq!(PayloadReader::new(&whole[1..]).lenenc_bytes(), Ok(value.as_slice()));
        }
    }
}
