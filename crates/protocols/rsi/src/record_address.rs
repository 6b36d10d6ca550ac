//! Where a record or a bucket begins, as a part of a word.

use manxdb_fabric::{Address, ServerId};

/// Places begin at multiples of this many bytes.
pub const PLACE: u64 = 64;

/// Where a record or a bucket begins, in 48 bits: ten of the server, the rest of the offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordAddress(u64);

impl RecordAddress {
    /// Bits of a place.
    pub(crate) const BITS: u32 = 48;
    const OFFSET_BITS: u32 = 38;

    /// An entry is a print and a place.
    const FITS: () = assert!(
        Self::BITS + u16::BITS == u64::BITS && Self::OFFSET_BITS < Self::BITS,
        "a print and a place make a word"
    );

    /// None if it is not a multiple of [`PLACE`], is beyond 16 TiB or at a server beyond the
    /// 1,024th, or is the very first place of the first server, which stands for none.
    #[must_use]
    pub fn new(at: Address) -> Option<Self> {
        let number = at.offset / PLACE;
        let server = u64::from(at.server.0);
        let is_fine = at.offset.is_multiple_of(PLACE)
            && number >> Self::OFFSET_BITS == 0
            && server >> (Self::BITS - Self::OFFSET_BITS) == 0;
        let () = Self::FITS;
        let bits = server << Self::OFFSET_BITS | number;
        let place = (is_fine && bits != 0).then_some(Self(bits));
        assert!(
            place.is_none_or(|place| place.address() == at),
            "a place names its address: {at}"
        );
        place
    }

    /// Where it is.
    #[must_use]
    pub fn address(self) -> Address {
        let number = self.0 & ((1 << Self::OFFSET_BITS) - 1);
        // Ten bits fit.
        let server = u16::try_from(self.0 >> Self::OFFSET_BITS).unwrap_or(0);
        Address {
            server: ServerId(server),
            offset: number * PLACE,
        }
    }

    /// The place in the low bits of a word; none if they are 0.
    pub(crate) fn of_word(word: u64) -> Option<Self> {
        let bits = word & ((1 << Self::BITS) - 1);
        (bits != 0).then_some(Self(bits))
    }

    /// Never 0.
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    /// The place of a word; none if it is no place's.
    pub(crate) fn parse(word: u64) -> Option<Self> {
        Self::of_word(word).filter(|place| place.0 == word)
    }
}
