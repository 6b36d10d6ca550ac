//! Frames: how the bytes of one connection are cut into packets.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | length of what follows this field, little-endian |
//! | 1 | [`VERSION`] |
//! | 4 | CRC-32 of length, version and payload, little-endian |
//! | … | payload: postcard |

use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The format of frames and of what is in them. Nodes of different versions do not talk.
pub const VERSION: u8 = 6;

/// The longest payload: a replica's whole state must fit when it is handed to another.
pub const PAYLOAD_BYTES_MAX: usize = 256 << 20;

/// The longest payload of a peer that has not said who it is.
pub const FIRST_PAYLOAD_BYTES_MAX: usize = 1 << 20;

const LENGTH_BYTES: usize = 4;
const HEADER_BYTES: usize = LENGTH_BYTES + 1 + 4;
/// Version and checksum are counted in the length.
const OVERHEAD_BYTES: usize = HEADER_BYTES - LENGTH_BYTES;

/// Why bytes are no frame. The sender made the mistake, or the line did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Longer than what this side takes.
    #[error("a frame of {bytes} bytes; at most {max} are taken")]
    TooLong {
        /// As its length says.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// Too short to have version and checksum.
    #[error("a frame of {0} bytes; {OVERHEAD_BYTES} are the least")]
    TooShort(usize),
    /// Another version of the format.
    #[error("a frame of version {0}; this is version {VERSION}")]
    Version(u8),
    /// Bytes were changed on the way.
    #[error("a frame whose checksum does not match")]
    Checksum,
    /// The payload is not what it should be.
    #[error("a frame that cannot be read: {0}")]
    Content(String),
}

/// A frame that is being written. Runs of bytes go into it at once.
struct Growing(Vec<u8>);

impl Flavor for Growing {
    type Output = Vec<u8>;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

/// A packet as a frame.
///
/// # Errors
/// [`FrameError::TooLong`]: the receiver would not take it.
pub fn encode<T: Serialize>(packet: &T) -> Result<Vec<u8>, FrameError> {
    let room = Growing(vec![0; HEADER_BYTES]);
    let mut bytes = postcard::serialize_with_flavor(packet, room)
        .map_err(|error| FrameError::Content(error.to_string()))?;
    let payload = bytes.len() - HEADER_BYTES;
    let too_long = FrameError::TooLong {
        bytes: payload,
        max: PAYLOAD_BYTES_MAX,
    };
    if payload > PAYLOAD_BYTES_MAX {
        return Err(too_long);
    }
    let length = u32::try_from(payload + OVERHEAD_BYTES).map_err(|_| too_long)?;
    bytes[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    bytes[LENGTH_BYTES] = VERSION;
    let checksum = checksum(&bytes);
    bytes[LENGTH_BYTES + 1..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// Of a whole frame, its checksum left out.
fn checksum(frame: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&frame[..=LENGTH_BYTES]);
    hasher.update(&frame[HEADER_BYTES..]);
    hasher.finalize()
}

/// The packet in a payload, all of it.
///
/// # Errors
/// [`FrameError::Content`].
pub fn decode<T: DeserializeOwned>(payload: &[u8]) -> Result<T, FrameError> {
    let unread = |what: String| FrameError::Content(what);
    let (packet, rest) =
        postcard::take_from_bytes(payload).map_err(|error| unread(error.to_string()))?;
    if !rest.is_empty() {
        return Err(unread(format!("{} bytes too many", rest.len())));
    }
    Ok(packet)
}

/// Cuts a stream of bytes into payloads. After an error it has nothing more to say.
#[derive(Debug)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Bytes before this are used up.
    start: usize,
    payload_max: usize,
}

impl Decoder {
    /// A decoder that takes payloads of at most `payload_max` bytes.
    #[must_use]
    pub fn new(payload_max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            payload_max,
        }
    }

    /// Takes longer, or only shorter, payloads from now on.
    pub fn set_payload_max(&mut self, payload_max: usize) {
        self.payload_max = payload_max;
    }

    /// Takes in bytes as they arrive. What is kept is what arrived: a stated length reserves
    /// nothing.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        } else if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next payload, if all of it has arrived.
    ///
    /// # Errors
    /// [`FrameError`]: the connection is of no more use.
    pub fn next_payload(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let arrived = &self.bytes[self.start..];
        let Some(length) = arrived.first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let Some(payload) = length.checked_sub(OVERHEAD_BYTES) else {
            return Err(FrameError::TooShort(length));
        };
        if payload > self.payload_max {
            return Err(FrameError::TooLong {
                bytes: payload,
                max: self.payload_max,
            });
        }
        match arrived.get(LENGTH_BYTES) {
            Some(&version) if version != VERSION => return Err(FrameError::Version(version)),
            _ => {}
        }
        let Some(frame) = arrived.get(..LENGTH_BYTES + length) else {
            return Ok(None);
        };
        let stated = &frame[LENGTH_BYTES + 1..HEADER_BYTES];
        if stated != checksum(frame).to_le_bytes() {
            return Err(FrameError::Checksum);
        }
        let begin = self.start + HEADER_BYTES;
        self.start += frame.len();
        Ok(Some(&self.bytes[begin..self.start]))
    }

    /// Bytes of a frame that has not arrived whole.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.bytes.len() - self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(decoder: &mut Decoder) -> Result<Vec<Vec<u8>>, FrameError> {
        let mut payloads = Vec::new();
        while let Some(payload) = decoder.next_payload()? {
            payloads.push(decode(payload)?);
        }
        Ok(payloads)
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded_however_it_is_cut(
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
            cut in 1_usize..40,
        ) {
            let mut stream = Vec::new();
            for packet in &packets {
                stream.extend(encode(packet).unwrap());
            }
            let mut decoder = Decoder::new(PAYLOAD_BYTES_MAX);
            let mut decoded = Vec::new();
            for part in stream.chunks(cut) {
                decoder.push(part);
                decoded.extend(all(&mut decoder).unwrap());
            }
            prop_assert_eq!(decoded, packets);
            prop_assert_eq!(decoder.pending(), 0);
        }

        #[test]
        fn a_flipped_bit_never_gives_another_packet(
            packet in prop::collection::vec(any::<u8>(), 0..200),
            place in any::<prop::sample::Index>(),
            bit in 0_u32..8,
        ) {
            let mut frame = encode(&packet).unwrap();
            let place = place.index(frame.len());
            frame[place] ^= 1_u8 << bit;
            let mut decoder = Decoder::new(FIRST_PAYLOAD_BYTES_MAX);
            decoder.push(&frame);
            // A longer length waits for bytes that never come; everything else is an error.
            match decoder.next_payload() {
                Ok(None) => prop_assert!(place < LENGTH_BYTES),
                Ok(Some(_)) => prop_assert!(false, "taken"),
                Err(_) => {}
            }
        }

        #[test]
        fn random_bytes_are_refused_or_waited_for(
            bytes in prop::collection::vec(any::<u8>(), 0..2_000),
        ) {
            let mut decoder = Decoder::new(FIRST_PAYLOAD_BYTES_MAX);
            decoder.push(&bytes);
            prop_assert!(!matches!(decoder.next_payload(), Ok(Some(_))));
        }
    }

    #[test]
    fn a_frame_too_long_is_refused_before_it_arrives() {
        let mut decoder = Decoder::new(10);
        let frame = encode(&vec![7_u8; 11]).unwrap();
        decoder.push(&frame[..4]);
        let error = decoder.next_payload().unwrap_err();
        assert_eq!(error, FrameError::TooLong { bytes: 12, max: 10 });
    }

    #[test]
    fn another_version_is_named() {
        let mut frame = encode(&1_u8).unwrap();
        frame[LENGTH_BYTES] = 9;
        let mut decoder = Decoder::new(10);
        decoder.push(&frame);
        assert_eq!(decoder.next_payload(), Err(FrameError::Version(9)));
    }
}
