//! The compressed protocol: packets travel inside frames, each with a 3-byte length, a sequence
//! number and the 3-byte length of what it holds; zero there says that the body is plain.
//! Packets and frames need not end together.

use std::io::{self, Read, Write};

use super::compression::Algorithm;
use super::framing::FrameError;
use super::read_ahead::ReadAhead;

/// Bytes before a frame's body.
const HEADER: usize = 7;
/// Frames shorter than this are sent plain, as MySQL does.
const PACK_MIN: usize = 50;
/// Most plain bytes put into one frame: what the protocol allows, as in MySQL. There are clients
/// that take a packet from two frames and no more.
const FRAME_MAX: usize = 0xFF_FFFF;
/// A buffer that grew beyond this for one frame is given back with its last byte.
const KEEP_CAPACITY: usize = 16 * 1024;

/// Both directions of a compressed connection, above its stream.
#[derive(Debug)]
pub(super) struct CompressedFrames {
    algorithm: Algorithm,
    /// Of the next frame in either direction.
    sequence: u8,
    /// A frame was read since the command began.
    read_any: bool,
    /// The frame read last; what is unread begins at `start`.
    plain: Vec<u8>,
    start: usize,
}

impl CompressedFrames {
    /// A connection that has just logged in.
    pub(super) fn new(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            sequence: 0,
            read_any: false,
            plain: Vec::new(),
            start: 0,
        }
    }

    /// A new command begins: sequence numbers start at 0.
    pub(super) fn reset_sequence(&mut self) {
        self.sequence = 0;
        self.read_any = false;
    }

    /// What was decoded and not read yet.
    pub(super) fn unread(&self) -> &[u8] {
        &self.plain[self.start..] // start ≤ len
    }

    /// A packet with sequence number `packet` was read; the number that the answer begins with.
    /// Packets inside frames are not counted, as in MySQL, unless a client put two commands into
    /// one frame: then there is nothing else to count by.
    pub(super) fn after_packet(&mut self, packet: u8) -> u8 {
        if !self.read_any {
            self.sequence = packet.wrapping_add(1);
        }
        self.sequence
    }

    /// Reads decoded bytes. Zero is the stream's end between frames.
    ///
    /// # Errors
    /// [`FrameError`]; the stream is unusable then.
    pub(super) fn read(
        &mut self,
        input: &mut ReadAhead,
        stream: &mut impl Read,
        into: &mut [u8],
    ) -> Result<usize, FrameError> {
        // A frame may be empty; each takes its sender more bytes than it takes us work.
        while self.unread().is_empty() && !into.is_empty() {
            if !self.read_frame(input, stream)? {
                return Ok(0);
            }
        }
        let unread = self.unread();
        let count = unread.len().min(into.len());
        into[..count].copy_from_slice(&unread[..count]);
        self.start += count;
        if self.unread().is_empty() {
            self.start = 0;
            self.plain.clear();
            if self.plain.capacity() > KEEP_CAPACITY {
                self.plain = Vec::new();
            }
        }
        Ok(count)
    }

    /// Reads and decodes one frame; false at the stream's end before it.
    fn read_frame(
        &mut self,
        input: &mut ReadAhead,
        stream: &mut impl Read,
    ) -> Result<bool, FrameError> {
        let mut header = [0; HEADER];
        match input.read_full(stream, &mut header)? {
            0 => return Ok(false),
            HEADER => {}
            _ => return Err(cut_off()),
        }
        let three_bytes = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], 0]) as usize
        };
        let (length, sequence, plain_length) = (three_bytes(0), header[3], three_bytes(4));
        if sequence != self.sequence {
            return Err(FrameError::OutOfOrder);
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.read_any = true;
        self.start = 0;
        self.plain.clear();
        if plain_length == 0 {
            return read_body(input, stream, &mut self.plain, length).map(|()| true);
        }
        let mut packed = Vec::new();
        read_body(input, stream, &mut packed, length)?;
        let decoded = self
            .algorithm
            .unpack(&packed, plain_length, &mut self.plain);
        if decoded.is_err() {
            self.plain.clear();
            return Err(FrameError::Undecodable);
        }
        Ok(true)
    }

    /// Sends `bytes` in frames; the sequence number that packets go on with.
    ///
    /// # Errors
    /// The stream's.
    pub(super) fn write(&mut self, stream: &mut impl Write, bytes: &[u8]) -> io::Result<u8> {
        let mut frame = Vec::new();
        let mut packed = Vec::new();
        for plain in bytes.chunks(FRAME_MAX) {
            let shorter = plain.len() >= PACK_MIN && self.algorithm.pack(plain, &mut packed)?;
            let (body, plain_length) = if shorter {
                (packed.as_slice(), plain.len())
            } else {
                (plain, 0)
            };
            frame.clear();
            frame.extend_from_slice(&length_bytes(body.len()));
            frame.push(self.sequence);
            frame.extend_from_slice(&length_bytes(plain_length));
            frame.extend_from_slice(body);
            stream.write_all(&frame)?;
            self.sequence = self.sequence.wrapping_add(1);
        }
        Ok(self.sequence)
    }
}

fn length_bytes(length: usize) -> [u8; 3] {
    assert!(length <= FRAME_MAX, "a frame is longer than it may be");
    let [a, b, c, _] = u32::try_from(length).unwrap_or(0).to_le_bytes(); // FRAME_MAX fits
    [a, b, c]
}

fn cut_off() -> FrameError {
    FrameError::Io(io::ErrorKind::UnexpectedEof.into())
}

/// Grows `body` as bytes arrive, so that a promised length alone takes no memory.
fn read_body(
    input: &mut ReadAhead,
    stream: &mut impl Read,
    body: &mut Vec<u8>,
    length: usize,
) -> Result<(), FrameError> {
    while body.len() < length {
        let filled = body.len();
        let step = (length - filled).min(KEEP_CAPACITY.max(filled));
        body.resize(filled + step, 0);
        if input.read_full(stream, &mut body[filled..])? < step {
            return Err(cut_off());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::framing::Channel;
    use proptest::prelude::*;
    use std::io::Cursor;

    const BOTH: [Algorithm; 2] = [Algorithm::Zlib, Algorithm::Zstd(3)];

    /// Hands out at most `step` bytes a read and keeps what is written.
    struct Trickle {
        input: Cursor<Vec<u8>>,
        step: usize,
        output: Vec<u8>,
    }

    impl Read for Trickle {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let step = self.step.min(into.len());
            self.input.read(&mut into[..step])
        }
    }

    impl Write for Trickle {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.output.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn channel(algorithm: Algorithm, input: Vec<u8>, step: usize) -> Channel<Trickle> {
        let mut channel = Channel::new(Trickle {
            input: Cursor::new(input),
            step,
            output: Vec::new(),
        });
        channel.allow_read_ahead();
        channel.start_compression(algorithm);
        channel
    }

    /// What a sender of `payloads` puts on the wire.
    fn sent(algorithm: Algorithm, payloads: &[Vec<u8>]) -> Vec<u8> {
        let mut channel = channel(algorithm, Vec::new(), 1);
        for payload in payloads {
            channel.start_packet().extend_from_slice(payload);
            channel.end_packet().unwrap();
        }
        channel.flush().unwrap();
        std::mem::take(&mut channel.stream_mut().output)
    }

    fn frame(sequence: u8, length: usize, body: &[u8]) -> Vec<u8> {
        let mut frame = length_bytes(body.len()).to_vec();
        frame.push(sequence);
        frame.extend_from_slice(&u32::try_from(length).unwrap().to_le_bytes()[..3]);
        frame.extend_from_slice(body);
        frame
    }

    fn read_one(algorithm: Algorithm, bytes: Vec<u8>) -> Result<Vec<u8>, FrameError> {
        let mut read = Vec::new();
        channel(algorithm, bytes, 64).read_packet(&mut read, 1 << 20)?;
        Ok(read)
    }

    #[test]
    fn a_short_packet_travels_plain() {
        assert_eq!(
            sent(Algorithm::Zlib, &[b"\x0Eping".to_vec()]),
            b"\x09\0\0\0\0\0\0\x05\0\0\0\x0Eping"
        );
    }

    #[test]
    fn a_payload_of_several_frames_and_packets_survives_the_trip() {
        let mut payload = vec![7; 20 << 20];
        for (number, block) in payload.chunks_mut(4096).enumerate() {
            block[..8].copy_from_slice(&number.to_le_bytes());
        }
        for algorithm in BOTH {
            let bytes = sent(algorithm, std::slice::from_ref(&payload));
            assert!(bytes.len() < payload.len() / 4);
            let mut read = Vec::new();
            channel(algorithm, bytes, 1 << 16)
                .read_packet(&mut read, 64 << 20)
                .unwrap();
            assert!(read == payload);
        }
    }

    #[test]
    fn a_packet_may_be_cut_by_frames_even_inside_its_header() {
        let mut bytes = frame(0, 0, b"\x05\0");
        bytes.extend(frame(1, 0, b"\0\0he"));
        bytes.extend(frame(2, 0, b""));
        bytes.extend(frame(3, 0, b"llo"));
        assert_eq!(read_one(Algorithm::Zlib, bytes).unwrap(), b"hello");
    }

    #[test]
    fn the_answer_goes_on_with_the_number_after_the_last_frame() {
        let mut bytes = frame(0, 0, b"\x05\0\0\0he");
        bytes.extend(frame(1, 0, b"llo"));
        let mut channel = channel(Algorithm::Zlib, bytes, 64);
        channel.read_packet(&mut Vec::new(), 100).unwrap();
        channel.start_packet().push(0);
        channel.end_packet().unwrap();
        channel.flush().unwrap();
        let output = &channel.stream().output;
        assert_eq!(output, b"\x05\0\0\x02\0\0\0\x01\0\0\x02\0");
    }

    #[test]
    fn two_commands_in_one_frame_are_both_answered() {
        let bytes = frame(0, 0, b"\x01\0\0\0\x0E\x01\0\0\0\x0E");
        let mut channel = channel(Algorithm::Zlib, bytes, 64);
        let mut read = Vec::new();
        for _ in 0..2 {
            channel.reset_sequence();
            channel.wait_for_packet().unwrap();
            channel.read_packet(&mut read, 100).unwrap();
            channel.start_packet().push(0);
            channel.end_packet().unwrap();
            channel.flush().unwrap();
        }
        assert_eq!(read, [0x0E]);
        let answer = b"\x05\0\0\x01\0\0\0\x01\0\0\x01\0";
        assert_eq!(channel.stream().output, answer.repeat(2));
    }

    #[test]
    fn a_wrong_frame_number_is_out_of_order() {
        let bytes = frame(1, 0, b"\x01\0\0\0\x0E");
        let read = read_one(Algorithm::Zlib, bytes);
        assert!(matches!(read, Err(FrameError::OutOfOrder)));
    }

    #[test]
    fn a_body_that_is_not_what_the_header_says_is_undecodable() {
        let plain = [b"\x64\0\0\0".as_slice(), &[9; 100]].concat();
        for algorithm in BOTH {
            let mut packed = Vec::new();
            algorithm.pack(&plain, &mut packed).unwrap();
            assert!(read_one(algorithm, frame(0, plain.len(), &packed)).is_ok());
            for length in [1, plain.len() - 1, plain.len() + 1, 0xFF_FFFF] {
                let read = read_one(algorithm, frame(0, length, &packed));
                assert!(matches!(read, Err(FrameError::Undecodable)), "{length}");
            }
            let read = read_one(algorithm, frame(0, 60, b"neither zlib nor zstd"));
            assert!(matches!(read, Err(FrameError::Undecodable)));
        }
    }

    #[test]
    fn the_end_between_frames_is_a_close_and_inside_one_an_error() {
        let whole = frame(0, 0, b"\x05\0\0\0hello");
        assert!(matches!(
            read_one(Algorithm::Zlib, Vec::new()),
            Err(FrameError::Closed)
        ));
        for cut in 1..whole.len() {
            let read = read_one(Algorithm::Zlib, whole[..cut].to_vec());
            assert!(matches!(read, Err(FrameError::Io(_))), "{cut}");
        }
    }

    #[test]
    fn a_frame_of_many_bytes_that_decode_to_too_long_a_packet_is_skipped() {
        let mut big = vec![0; 4 << 20];
        big[0] = 1;
        for algorithm in BOTH {
            let bytes = sent(algorithm, &[big.clone(), b"next".to_vec()]);
            let mut channel = channel(algorithm, bytes, 1 << 16);
            let mut read = Vec::new();
            assert!(matches!(
                channel.read_packet(&mut read, 1 << 20),
                Err(FrameError::TooLarge)
            ));
            channel.read_packet(&mut read, 1 << 20).unwrap();
            assert_eq!(read, b"next");
        }
    }

    #[test]
    fn the_buffer_of_a_large_frame_is_given_back_when_it_is_read() {
        let bytes = sent(Algorithm::Zlib, &[vec![0; 8 << 20]]);
        let mut input = ReadAhead::default();
        input.allow();
        let mut frames = CompressedFrames::new(Algorithm::Zlib);
        let mut stream = Cursor::new(bytes);
        let mut into = vec![0; 1 << 20];
        while frames.read(&mut input, &mut stream, &mut into).unwrap() > 0 {}
        assert!(frames.plain.capacity() <= KEEP_CAPACITY);
    }

    proptest! {
        #[test]
        fn packets_come_out_as_they_went_in(
            payloads in proptest::collection::vec(proptest::collection::vec(0_u8..4, 0..40_000), 0..6),
            step in 1_usize..5_000,
        ) {
            for algorithm in BOTH {
                let mut channel = channel(algorithm, sent(algorithm, &payloads), step);
                let mut read = Vec::new();
                for payload in &payloads {
                    channel.read_packet(&mut read, usize::MAX).unwrap();
                    prop_assert_eq!(&read, payload);
                }
            }
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
            for algorithm in BOTH {
                let mut channel = channel(algorithm, bytes.clone(), 100);
                let mut read = Vec::new();
                while channel.read_packet(&mut read, 1_000).is_ok() {}
            }
        }
    }
}
