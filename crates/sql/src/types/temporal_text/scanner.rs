//! The digits of a text, one after the other.

/// Reads digits from a text.
pub(super) struct Scanner<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            bytes: text.trim().as_bytes(),
            at: 0,
        }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// A run of at most `most` digits: value and length.
    pub(super) fn digits(&mut self, most: usize) -> (u64, usize) {
        let start = self.at;
        let mut value = 0u64;
        while let Some(byte) = self.peek().filter(u8::is_ascii_digit) {
            if self.at - start >= most {
                break;
            }
            value = value
                .saturating_mul(10)
                .saturating_add(u64::from(byte - b'0'));
            self.at += 1;
        }
        (value, self.at - start)
    }

    pub(super) fn digit_run(&self) -> usize {
        self.bytes[self.at..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    }

    /// A point and a fraction behind it, as [`Self::fraction`]; nothing where no point is.
    pub(super) fn optional_fraction(&mut self) -> (u64, u8) {
        if self.peek() != Some(b'.') {
            return (0, 0);
        }
        self.at += 1;
        self.fraction()
    }

    /// A fraction after its point: microseconds (rounded at the seventh digit) and digits read.
    fn fraction(&mut self) -> (u64, u8) {
        let mut micros = 0u64;
        let mut count = 0u32;
        let mut round_up = false;
        while let Some(byte) = self.peek().filter(u8::is_ascii_digit) {
            if count < 6 {
                micros = micros * 10 + u64::from(byte - b'0');
            } else if count == 6 {
                round_up = byte >= b'5';
            }
            count += 1;
            self.at += 1;
        }
        micros *= 10u64.pow(6 - count.min(6));
        (micros + u64::from(round_up), count.min(6) as u8)
    }

    /// At a colon with a digit behind it.
    pub(super) fn at_clock_separator(&self) -> bool {
        self.peek() == Some(b':') && self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit)
    }

    pub(super) fn skip_punctuation(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_punctuation()) {
            self.at += 1;
        }
        self.at > start
    }
}
