//! Packets over a byte stream: a 3-byte length, a sequence number, a payload; payloads of
//! 16 MiB − 1 and more continue in the next packet. Below them may lie compressed frames.

use std::io::{self, Read, Write};

use super::compressed::CompressedFrames;
use super::compression::Algorithm;
use super::read_ahead::{READ_AHEAD, ReadAhead};

/// Longest payload of one physical packet; a full one is followed by another.
const CHUNK_MAX: usize = 0xFF_FFFF;
/// Replies are written out when this much is buffered.
const FLUSH_AT: usize = 32 * 1024;
/// A buffer that grew beyond this for one packet is given back afterwards.
const KEEP_CAPACITY: usize = 256 * 1024;
/// An oversized packet is read and thrown away up to this length, so that its sender can
/// read the error; beyond, the connection is closed.
const DRAIN_MAX: usize = 1 << 30;

/// Why a packet could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The client closed the connection between packets.
    #[error("connection closed")]
    Closed,
    /// The sequence number is not the expected one (MySQL 1156).
    #[error("got packets out of order")]
    OutOfOrder,
    /// Longer than `max_allowed_packet` (MySQL 1153); it was skipped, the stream is usable.
    #[error("got a packet bigger than 'max_allowed_packet' bytes")]
    TooLarge,
    /// A compressed frame does not decode to what its header says (MySQL 1157).
    #[error("couldn't uncompress communication packet")]
    Undecodable,
    /// The transport failed, timed out, or ended inside a packet.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Both directions of one connection, over any blocking stream.
pub struct Channel<S> {
    stream: S,
    sequence: u8,
    input: ReadAhead,
    /// Present once the client has logged in and asked for it.
    compressed: Option<Box<CompressedFrames>>,
    output: Vec<u8>,
    /// Where the header of the packet being written starts; `None` between packets.
    packet_start: Option<usize>,
}

impl<S: Read + Write> Channel<S> {
    /// A channel that reads exactly what it needs until [`Channel::allow_read_ahead`].
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            sequence: 0,
            input: ReadAhead::default(),
            compressed: None,
            output: Vec::new(),
            packet_start: None,
        }
    }

    /// The stream below.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// The stream below.
    pub fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// From now on bytes may be read ahead.
    pub fn allow_read_ahead(&mut self) {
        self.input.allow();
    }

    /// From now on packets travel in compressed frames. Nothing may be buffered for writing.
    pub fn start_compression(&mut self, algorithm: Algorithm) {
        assert!(
            self.output.is_empty(),
            "packets before compression were not sent"
        );
        self.compressed = Some(Box::new(CompressedFrames::new(algorithm)));
    }

    /// A new command begins: sequence numbers start at 0.
    pub fn reset_sequence(&mut self) {
        self.sequence = 0;
        if let Some(frames) = &mut self.compressed {
            frames.reset_sequence();
        }
    }

    /// Blocks until a packet begins to arrive; says whether it is there whole, so that reading
    /// it will not block.
    ///
    /// # Errors
    /// [`FrameError::Closed`] or the stream's.
    pub fn wait_for_packet(&mut self) -> Result<bool, FrameError> {
        if let Some(frames) = &self.compressed
            && !frames.unread().is_empty()
        {
            return Ok(is_whole(frames.unread()));
        }
        if self.input.unread().is_empty() {
            self.input.fill(&mut self.stream)?;
        }
        match self.input.unread() {
            [] => Err(FrameError::Closed),
            // Whether a frame holds a whole packet shows when it is decoded.
            unread => Ok(self.compressed.is_none() && is_whole(unread)),
        }
    }

    /// Gives back buffers that hold nothing.
    pub fn release_buffers(&mut self) {
        self.input.release();
        if self.output.is_empty() {
            self.output = Vec::new();
        }
    }

    /// Reads one logical packet into `payload` (cleared first).
    ///
    /// # Errors
    /// [`FrameError`]; after anything but [`FrameError::TooLarge`] the stream is unusable.
    pub fn read_packet(&mut self, payload: &mut Vec<u8>, max: usize) -> Result<(), FrameError> {
        payload.clear();
        if payload.capacity() > KEEP_CAPACITY {
            payload.shrink_to(READ_AHEAD);
        }
        let mut skipped = 0_usize;
        let mut first = true;
        loop {
            let length = self.read_header(first)?;
            first = false;
            if skipped > 0 || payload.len() + length > max {
                skipped += payload.len() + length;
                payload.clear();
                if skipped > DRAIN_MAX {
                    return Err(FrameError::Io(io::ErrorKind::InvalidData.into()));
                }
                self.skip(length)?;
            } else {
                self.read_into(payload, length)?;
            }
            if length < CHUNK_MAX {
                break;
            }
        }
        if let Some(frames) = &mut self.compressed {
            self.sequence = frames.after_packet(self.sequence.wrapping_sub(1));
        }
        if skipped > 0 {
            return Err(FrameError::TooLarge);
        }
        Ok(())
    }

    fn read_header(&mut self, first: bool) -> Result<usize, FrameError> {
        let mut header = [0; 4];
        let mut filled = 0;
        while filled < header.len() {
            let count = self.read_some(&mut header[filled..])?; // filled < 4
            if count == 0 {
                return Err(if first && filled == 0 {
                    FrameError::Closed
                } else {
                    FrameError::Io(io::ErrorKind::UnexpectedEof.into())
                });
            }
            filled += count;
        }
        let [a, b, c, sequence] = header;
        // Inside compressed frames the frames are counted, see `CompressedFrames::after_packet`.
        if sequence != self.sequence && self.compressed.is_none() {
            return Err(FrameError::OutOfOrder);
        }
        self.sequence = sequence.wrapping_add(1);
        Ok(u32::from_le_bytes([a, b, c, 0]) as usize)
    }

    /// Grows `payload` as bytes arrive, so that a promised length alone takes no memory.
    fn read_into(&mut self, payload: &mut Vec<u8>, length: usize) -> Result<(), FrameError> {
        let mut filled = payload.len();
        let end = filled + length;
        while filled < end {
            if filled == payload.len() {
                let step = (end - filled).min(READ_AHEAD.max(filled));
                payload.resize(filled + step, 0);
            }
            let count = self.read_some(&mut payload[filled..])?; // filled ≤ len
            if count == 0 {
                return Err(FrameError::Io(io::ErrorKind::UnexpectedEof.into()));
            }
            filled += count;
        }
        Ok(())
    }

    fn skip(&mut self, length: usize) -> Result<(), FrameError> {
        let mut scratch = [0; 4096];
        let mut left = length;
        while left > 0 {
            let step = left.min(scratch.len());
            let count = self.read_some(&mut scratch[..step])?; // step ≤ scratch.len()
            if count == 0 {
                return Err(FrameError::Io(io::ErrorKind::UnexpectedEof.into()));
            }
            left -= count;
        }
        Ok(())
    }

    /// Reads what is there, up to the length of `into`; zero is the stream's end.
    fn read_some(&mut self, into: &mut [u8]) -> Result<usize, FrameError> {
        match &mut self.compressed {
            Some(frames) => frames.read(&mut self.input, &mut self.stream, into),
            None => Ok(self.input.read(&mut self.stream, into)?),
        }
    }

    /// Starts a packet; append its payload to the returned buffer, then [`Channel::end_packet`].
    /// A packet begun before and not ended is dropped: its writer failed.
    pub fn start_packet(&mut self) -> &mut Vec<u8> {
        if let Some(unfinished) = self.packet_start {
            self.output.truncate(unfinished);
        }
        self.packet_start = Some(self.output.len());
        self.output.extend_from_slice(&[0; 4]);
        &mut self.output
    }

    /// Completes the packet begun last, and writes out when enough is buffered.
    ///
    /// # Errors
    /// The stream's.
    pub fn end_packet(&mut self) -> io::Result<()> {
        let Some(start) = self.packet_start.take() else {
            return Ok(()); // none was begun
        };
        let length = self.output.len() - start - 4; // its header was appended by start_packet
        if length >= CHUNK_MAX {
            self.split_packet(start);
        } else {
            let [a, b, c, _] = u32::try_from(length).unwrap_or(0).to_le_bytes(); // < 2^24
            self.output[start..start + 4].copy_from_slice(&[a, b, c, self.sequence]);
            self.sequence = self.sequence.wrapping_add(1);
        }
        if self.output.len() >= FLUSH_AT {
            self.flush()?;
        }
        Ok(())
    }

    /// Cuts a payload of 16 MiB − 1 or more into physical packets; the last one may be empty.
    fn split_packet(&mut self, start: usize) {
        let payload = self.output.split_off(start + 4);
        self.output.truncate(start);
        self.output.reserve(payload.len() + 16);
        let mut rest = payload.as_slice();
        loop {
            let (chunk, tail) = rest.split_at(rest.len().min(CHUNK_MAX));
            let [a, b, c, _] = u32::try_from(chunk.len()).unwrap_or(0).to_le_bytes(); // < 2^24
            self.output.extend_from_slice(&[a, b, c, self.sequence]);
            self.output.extend_from_slice(chunk);
            self.sequence = self.sequence.wrapping_add(1);
            rest = tail;
            if chunk.len() < CHUNK_MAX {
                return;
            }
        }
    }

    /// Writes out everything buffered.
    ///
    /// # Errors
    /// The stream's, `TimedOut` or `WouldBlock` when the client does not read.
    pub fn flush(&mut self) -> io::Result<()> {
        if let Some(unfinished) = self.packet_start.take() {
            self.output.truncate(unfinished);
        }
        if self.output.is_empty() {
            return Ok(());
        }
        let written = match &mut self.compressed {
            Some(frames) => frames
                .write(&mut self.stream, &self.output)
                .map(|next| self.sequence = next),
            None => self.stream.write_all(&self.output),
        };
        self.output.clear();
        if self.output.capacity() > KEEP_CAPACITY {
            self.output.shrink_to(FLUSH_AT);
        }
        written?;
        self.stream.flush()
    }
}

/// Whether `bytes` begin with a whole physical packet.
fn is_whole(bytes: &[u8]) -> bool {
    match bytes {
        [a, b, c, _, rest @ ..] => rest.len() >= u32::from_le_bytes([*a, *b, *c, 0]) as usize,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    /// A stream that hands out at most `step` bytes a read and keeps what is written.
    struct Trickle {
        input: Cursor<Vec<u8>>,
        step: usize,
        output: Vec<u8>,
    }

    impl Trickle {
        fn new(input: Vec<u8>, step: usize) -> Self {
            Self {
                input: Cursor::new(input),
                step,
                output: Vec::new(),
            }
        }
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

    fn framed(payloads: &[&[u8]]) -> Vec<u8> {
        let mut channel = Channel::new(Trickle::new(Vec::new(), 1));
        for payload in payloads {
            channel.start_packet().extend_from_slice(payload);
            channel.end_packet().unwrap();
        }
        channel.flush().unwrap();
        channel.stream.output
    }

    fn reader(bytes: Vec<u8>, step: usize) -> Channel<Trickle> {
        let mut channel = Channel::new(Trickle::new(bytes, step));
        channel.allow_read_ahead();
        channel
    }

    #[test]
    fn a_payload_of_exactly_one_chunk_is_followed_by_an_empty_packet() {
        let payload = vec![9; CHUNK_MAX];
        let bytes = framed(&[&payload]);
        assert_eq!(bytes.len(), 4 + CHUNK_MAX + 4);
        assert_eq!(&bytes[..4], &[0xFF, 0xFF, 0xFF, 0]);
        assert_eq!(&bytes[4 + CHUNK_MAX..], &[0, 0, 0, 1]);
        let mut read = Vec::new();
        reader(bytes, 1 << 20)
            .read_packet(&mut read, usize::MAX)
            .unwrap();
        assert_eq!(read, payload);
    }

    #[test]
    fn a_64_megabyte_payload_survives_the_trip() {
        let mut payload = vec![7; 64 << 20];
        for (number, block) in payload.chunks_mut(4096).enumerate() {
            block[..8].copy_from_slice(&number.to_le_bytes());
        }
        let mut read = Vec::new();
        reader(framed(&[&payload]), 1 << 16)
            .read_packet(&mut read, 64 << 20)
            .unwrap();
        assert!(read == payload);
    }

    #[test]
    fn an_oversized_packet_is_skipped_and_the_next_one_read() {
        let big = vec![1; CHUNK_MAX + 10];
        let mut channel = reader(framed(&[&big, b"next"]), 1 << 20);
        let mut read = Vec::new();
        assert!(matches!(
            channel.read_packet(&mut read, 1024),
            Err(FrameError::TooLarge)
        ));
        channel.read_packet(&mut read, 1024).unwrap();
        assert_eq!(read, b"next");
    }

    #[test]
    fn a_wrong_sequence_number_is_out_of_order() {
        let mut channel = reader(vec![1, 0, 0, 3, 42], 64);
        assert!(matches!(
            channel.read_packet(&mut Vec::new(), 1024),
            Err(FrameError::OutOfOrder)
        ));
    }

    #[test]
    fn the_end_between_packets_is_a_close_and_inside_one_an_error() {
        let mut read = Vec::new();
        assert!(matches!(
            reader(Vec::new(), 1).read_packet(&mut read, 10),
            Err(FrameError::Closed)
        ));
        for cut in [vec![1, 0], vec![5, 0, 0, 0, 1, 2]] {
            assert!(matches!(
                reader(cut, 64).read_packet(&mut read, 10),
                Err(FrameError::Io(_))
            ));
        }
    }

    #[test]
    fn nothing_is_read_ahead_before_it_is_allowed() {
        let mut bytes = framed(&[b"ssl request"]);
        bytes.extend_from_slice(b"client hello");
        let mut channel = Channel::new(Trickle::new(bytes, 1 << 16));
        let mut read = Vec::new();
        channel.read_packet(&mut read, 1024).unwrap();
        let mut rest = Vec::new();
        channel.stream.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"client hello");
    }

    proptest! {
        #[test]
        fn packets_come_out_as_they_went_in(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40_000), 0..6),
            step in 1_usize..5_000,
        ) {
            let slices: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
            let mut channel = reader(framed(&slices), step);
            let mut read = Vec::new();
            for payload in &payloads {
                channel.read_packet(&mut read, usize::MAX).unwrap();
                prop_assert_eq!(&read, payload);
            }
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
            let mut channel = reader(bytes, 100);
            let mut read = Vec::new();
            while channel.read_packet(&mut read, 1_000).is_ok() {}
        }
    }
}
