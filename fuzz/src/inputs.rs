//! Random bytes from a seed, and changes of good inputs.

/// A small seeded generator (SplitMix64): the same seed, the same inputs, on every machine.
#[derive(Debug, Clone)]
pub struct Source(u64);

impl Source {
    /// A generator from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit` (0 when `limit` is 0).
    pub fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.word() % limit).unwrap_or(0)
    }

    /// Up to `most` random bytes.
    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most + 1);
        (0..length).map(|_| self.word().to_le_bytes()[0]).collect()
    }
}

/// Bytes as a list of decisions; when they are used up, every further one is 0.
#[derive(Debug, Clone)]
pub struct Script<'a> {
    rest: &'a [u8],
}

impl<'a> Script<'a> {
    /// A script of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether no decision is left.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// Up to `count` bytes as they are.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, left) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = left;
        taken
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// A number of two bytes.
    pub fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// A number of eight bytes.
    pub fn word(&mut self) -> u64 {
        let mut bytes = [0; 8];
        for (to, from) in bytes.iter_mut().zip(self.bytes(8)) {
            *to = *from;
        }
        u64::from_le_bytes(bytes)
    }

    /// A number below `limit` (0 when `limit` is 0).
    pub fn below(&mut self, limit: usize) -> usize {
        usize::from(self.short()) % limit.max(1)
    }
}

/// `good` with a few bytes changed, cut, doubled, or joined with a piece of `other`.
#[must_use]
pub fn mutated(source: &mut Source, good: &[u8], other: &[u8]) -> Vec<u8> {
    let mut out = good.to_vec();
    for _ in 0..=source.below(4) {
        let place = source.below(out.len() + 1);
        match source.below(6) {
            0 => out.truncate(place),
            1 => out.insert(place, source.word().to_le_bytes()[0]),
            2 => {
                if let Some(byte) = out.get_mut(place) {
                    *byte ^= 1 << source.below(8);
                }
            }
            3 => {
                if let Some(byte) = out.get_mut(place) {
                    *byte = [0, 1, 0x7F, 0x80, 0xFE, 0xFF][source.below(6)];
                }
            }
            4 => {
                let from = source.below(other.len() + 1);
                let until = from + source.below(other.len() - from + 1);
                out.splice(place..place, other[from..until].iter().copied());
            }
            _ => {
                let until = place + source.below(out.len() - place + 1);
                let piece = out[place..until].to_vec();
                out.splice(place..place, piece);
            }
        }
    }
    out
}
