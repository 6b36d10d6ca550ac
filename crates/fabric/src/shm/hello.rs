//! The first and only words on a connection, and the segment that comes with the answer.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::address::ServerId;

/// Begins both words; the last byte is the version.
const MAGIC: [u8; 8] = *b"MANXMEM\x01";
const ASK: usize = 16;
const ANSWER: usize = 10;

/// A client says who it is.
pub(super) fn ask(mut stream: &UnixStream, client: u64) -> io::Result<()> {
    let mut word = [0; ASK];
    word[..8].copy_from_slice(&MAGIC);
    word[8..].copy_from_slice(&client.to_le_bytes());
    stream.write_all(&word)
}

/// What a client said.
///
/// # Errors
/// It is none of ours.
pub(super) fn asked(mut stream: &UnixStream) -> io::Result<u64> {
    let mut word = [0; ASK];
    stream.read_exact(&mut word)?;
    let (magic, client) = word.split_at(8);
    let client = client.try_into().map(u64::from_le_bytes);
    match client {
        Ok(client) if magic == MAGIC => Ok(client),
        _ => Err(stranger()),
    }
}

/// The server says who it is, and hands over its segment.
pub(super) fn answer(
    stream: &UnixStream,
    server: ServerId,
    segment: BorrowedFd<'_>,
) -> io::Result<()> {
    let mut word = [0; ANSWER];
    word[..8].copy_from_slice(&MAGIC);
    word[8..].copy_from_slice(&server.0.to_le_bytes());
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let segments = [segment];
    if !control.push(SendAncillaryMessage::ScmRights(&segments)) {
        return Err(io::Error::other("no room for a file descriptor"));
    }
    let sent = sendmsg(
        stream,
        &[IoSlice::new(&word)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    if sent < ANSWER {
        return Err(io::ErrorKind::WriteZero.into());
    }
    Ok(())
}

/// What the server said.
///
/// # Errors
/// It is none of ours, or handed over nothing.
pub(super) fn answered(stream: &UnixStream) -> io::Result<(ServerId, OwnedFd)> {
    let mut word = [0; ANSWER];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        stream.as_fd(),
        &mut [IoSliceMut::new(&mut word)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if received.bytes < ANSWER || word[..8] != MAGIC {
        return Err(stranger());
    }
    let mut segments = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
        _ => None,
    });
    let segment = segments.next().ok_or_else(stranger)?;
    Ok((ServerId(u16::from_le_bytes([word[8], word[9]])), segment))
}

fn stranger() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the other side is no memory server or client of this release",
    )
}
