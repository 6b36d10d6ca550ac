//! The algorithms of the compressed protocol, one frame at a time.
//!
//! No state is kept between frames, so that a connection that is idle holds no dictionaries.

use std::io;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use manxdb_sql::session::CompressionInfo;
use mysql_common::constants::CapabilityFlags as Capability;

/// Levels of zstd that a client may ask for.
pub const ZSTD_LEVELS: std::ops::RangeInclusive<u8> = 1..=22;
/// The decoded bytes of a frame are given memory in steps of this many.
const STEP: usize = 64 * 1024;

/// How both directions of a connection are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// zlib (RFC 1950) at its default level.
    Zlib,
    /// zstd (RFC 8878) at a level of [`ZSTD_LEVELS`].
    Zstd(u8),
}

/// A frame's body cannot be decoded, or is not as long as its header says.
#[derive(Debug, PartialEq, Eq)]
pub struct BadFrame;

impl Algorithm {
    /// As SHOW STATUS tells it.
    #[must_use]
    pub fn info(self) -> CompressionInfo {
        match self {
            // Its default, by its own numbers.
            Self::Zlib => CompressionInfo {
                algorithm: "zlib",
                level: 6,
            },
            Self::Zstd(level) => CompressionInfo {
                algorithm: "zstd",
                level,
            },
        }
    }

    /// Compresses `plain` into `packed` (cleared first); false when that does not make it shorter.
    ///
    /// # Errors
    /// The library has no memory.
    pub fn pack(self, plain: &[u8], packed: &mut Vec<u8>) -> io::Result<bool> {
        packed.clear();
        packed.reserve_exact(plain.len()); // anything longer is of no use
        match self {
            Self::Zlib => {
                let mut deflate = Compress::new(Compression::default(), true);
                let end = deflate.compress_vec(plain, packed, FlushCompress::Finish)?;
                Ok(end == Status::StreamEnd && packed.len() < plain.len())
            }
            Self::Zstd(level) => {
                packed.resize(plain.len(), 0);
                let written = zstd::bulk::compress_to_buffer(plain, packed, i32::from(level));
                // The one thing that can be wrong with a buffer of this size is its size.
                let length = written.unwrap_or(plain.len());
                packed.truncate(length);
                Ok(length < plain.len())
            }
        }
    }

    /// Decodes the body of a frame into `plain` (cleared first), which is to be `length` bytes.
    ///
    /// # Errors
    /// [`BadFrame`]; never more than `length` bytes are made.
    pub fn unpack(self, packed: &[u8], length: usize, plain: &mut Vec<u8>) -> Result<(), BadFrame> {
        plain.clear();
        match self {
            Self::Zlib => inflate(packed, length, plain)?,
            Self::Zstd(_) => {
                plain.resize(length, 0);
                let made = zstd::bulk::decompress_to_buffer(packed, plain.as_mut_slice());
                plain.truncate(made.map_err(|_| BadFrame)?);
            }
        }
        if plain.len() == length {
            Ok(())
        } else {
            Err(BadFrame)
        }
    }
}

/// Memory grows with what is decoded: the length that a header promises takes none.
fn inflate(packed: &[u8], length: usize, plain: &mut Vec<u8>) -> Result<(), BadFrame> {
    let mut inflate = Decompress::new(true);
    loop {
        plain.reserve_exact(STEP.min(length - plain.len()));
        let consumed = usize::try_from(inflate.total_in()).map_err(|_| BadFrame)?;
        let before = (consumed, plain.len());
        let rest = packed.get(consumed..).ok_or(BadFrame)?;
        let status = inflate
            .decompress_vec(rest, plain, FlushDecompress::None)
            .map_err(|_| BadFrame)?;
        if plain.len() > length {
            return Err(BadFrame);
        }
        let consumed = usize::try_from(inflate.total_in()).map_err(|_| BadFrame)?;
        match status {
            Status::StreamEnd if consumed == packed.len() => return Ok(()),
            Status::StreamEnd => return Err(BadFrame),
            _ if (consumed, plain.len()) == before => return Err(BadFrame), // cut off
            _ => {}
        }
    }
}

/// The server's `protocol_compression_algorithms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offered {
    zlib: bool,
    zstd: bool,
    uncompressed: bool,
}

impl Offered {
    /// Reads the variable's list; names that are none of the three were refused by SET.
    #[must_use]
    pub fn parse(list: &str) -> Self {
        let has = |name: &str| list.split(',').any(|part| part.trim() == name);
        Self {
            zlib: has("zlib"),
            zstd: has("zstd"),
            uncompressed: has("uncompressed"),
        }
    }

    /// What the greeting says of it.
    #[must_use]
    pub fn capabilities(self) -> Capability {
        let mut capabilities = Capability::empty();
        capabilities.set(Capability::CLIENT_COMPRESS, self.zlib);
        capabilities.set(Capability::CLIENT_ZSTD_COMPRESSION_ALGORITHM, self.zstd);
        capabilities
    }

    /// What a client with these agreed capabilities gets; zlib goes before zstd, as in MySQL.
    ///
    /// # Errors
    /// [`NoAgreement`].
    pub fn choose(
        self,
        agreed: Capability,
        zstd_level: u8,
    ) -> Result<Option<Algorithm>, NoAgreement> {
        if agreed.contains(Capability::CLIENT_COMPRESS) {
            return Ok(Some(Algorithm::Zlib));
        }
        if agreed.contains(Capability::CLIENT_ZSTD_COMPRESSION_ALGORITHM) {
            return if ZSTD_LEVELS.contains(&zstd_level) {
                Ok(Some(Algorithm::Zstd(zstd_level)))
            } else {
                Err(NoAgreement::Level(zstd_level))
            };
        }
        if self.uncompressed {
            Ok(None)
        } else {
            Err(NoAgreement::Uncompressed)
        }
    }
}

/// Why a client's wish for compression ends its login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAgreement {
    /// It compresses nothing, which the server does not permit (MySQL 3922).
    Uncompressed,
    /// A level that zstd does not have (MySQL 3923).
    Level(u8),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOTH: [Algorithm; 2] = [Algorithm::Zlib, Algorithm::Zstd(3)];

    fn packed(algorithm: Algorithm, plain: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        assert!(algorithm.pack(plain, &mut packed).unwrap());
        packed
    }

    #[test]
    fn text_comes_back_and_is_shorter_on_the_way() {
        let plain = b"SELECT * FROM orders; ".repeat(4_000);
        for algorithm in BOTH.into_iter().chain(ZSTD_LEVELS.map(Algorithm::Zstd)) {
            let packed = packed(algorithm, &plain);
            assert!(packed.len() * 10 < plain.len(), "{algorithm:?}");
            let mut back = Vec::new();
            assert_eq!(algorithm.unpack(&packed, plain.len(), &mut back), Ok(()));
            assert!(back == plain, "{algorithm:?}");
        }
    }

    #[test]
    fn noise_is_not_worth_packing() {
        let mut seed = 1_u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u8::try_from(seed >> 56).unwrap()
        })
        .take(1_000)
        .collect();
        for algorithm in BOTH {
            assert!(!algorithm.pack(&noise, &mut Vec::new()).unwrap());
        }
    }

    #[test]
    fn a_length_that_lies_in_either_direction_is_a_bad_frame() {
        let plain = vec![0; 1 << 20];
        for algorithm in BOTH {
            let packed = packed(algorithm, &plain);
            for length in [0, 1, plain.len() - 1, plain.len() + 1, 0xFF_FFFF] {
                let mut back = Vec::new();
                assert_eq!(
                    algorithm.unpack(&packed, length, &mut back),
                    Err(BadFrame),
                    "{algorithm:?} {length}"
                );
                assert!(back.capacity() <= 0xFF_FFFF + STEP);
            }
        }
    }

    #[test]
    fn a_promised_length_takes_no_memory_before_its_bytes_come() {
        let packed = packed(Algorithm::Zlib, &[7; 100]);
        let mut back = Vec::new();
        let result = Algorithm::Zlib.unpack(&packed, 0xFF_FFFF, &mut back);
        assert_eq!(result, Err(BadFrame));
        assert!(back.capacity() <= 2 * STEP, "{}", back.capacity());
    }

    #[test]
    fn a_frame_that_is_cut_or_continued_is_bad() {
        let plain = b"ab".repeat(500);
        for algorithm in BOTH {
            let whole = packed(algorithm, &plain);
            for cut in 0..whole.len() {
                let result = algorithm.unpack(&whole[..cut], plain.len(), &mut Vec::new());
                assert_eq!(result, Err(BadFrame), "{algorithm:?} {cut}");
            }
            let longer = [whole.as_slice(), b"more"].concat();
            let result = algorithm.unpack(&longer, plain.len(), &mut Vec::new());
            assert_eq!(result, Err(BadFrame), "{algorithm:?}");
        }
    }

    #[test]
    fn zlib_goes_first_and_what_is_not_offered_is_not_chosen() {
        let all = Offered::parse("zlib,zstd,uncompressed");
        let zlib = Capability::CLIENT_COMPRESS;
        let zstd = Capability::CLIENT_ZSTD_COMPRESSION_ALGORITHM;
        assert_eq!(all.capabilities(), zlib | zstd);
        assert_eq!(all.choose(zlib | zstd, 3), Ok(Some(Algorithm::Zlib)));
        assert_eq!(all.choose(zstd, 7), Ok(Some(Algorithm::Zstd(7))));
        assert_eq!(all.choose(zstd, 0), Err(NoAgreement::Level(0)));
        assert_eq!(all.choose(zstd, 23), Err(NoAgreement::Level(23)));
        assert_eq!(all.choose(Capability::empty(), 0), Ok(None));
        let plain = Offered::parse("uncompressed");
        assert_eq!(plain.capabilities(), Capability::empty());
        let strict = Offered::parse("zstd");
        assert_eq!(strict.capabilities(), zstd);
        assert_eq!(
            strict.choose(Capability::empty(), 0),
            Err(NoAgreement::Uncompressed)
        );
    }

    proptest! {
        #[test]
        fn garbage_is_a_bad_frame_or_bytes_and_never_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            length in 0_usize..100_000,
        ) {
            for algorithm in BOTH {
                let mut plain = Vec::new();
                if algorithm.unpack(&bytes, length, &mut plain).is_ok() {
                    prop_assert_eq!(plain.len(), length);
                }
            }
        }
    }
}
