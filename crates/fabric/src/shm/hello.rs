//! The words on a connection, and the segment that comes with the answer.
//!
//! Whoever connects wants to be let in, or has somebody shut out. Who was let in hears one more word
//! when it is shut out itself.

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
/// Begins the word of one who has somebody shut out; the last byte is the version.
const ORDER: [u8; 8] = *b"MANXEND\x01";
/// What the server says to one who is to let go of its memory, and closes its connection when it has.
pub(super) const LET_GO: u8 = 3;
const ASK: usize = 16;
const ANSWER: usize = 10;
const _: () = assert!(
    ASK == MAGIC.len() + size_of::<u64>() && ASK == ORDER.len() + size_of::<u64>(),
    "what a client asks is a magic and its number"
);
const _: () = assert!(
    ANSWER == MAGIC.len() + size_of::<u16>() && ANSWER > 1,
    "an answer is a magic and the server's number, and is told from BUSY by its length"
);
/// Answers to an order: it is done; it is not, and why; or not yet.
const DONE: u8 = 1;
const KEPT: u8 = 2;
const DYING: u8 = 4;
/// The answer to whoever is at the listener of a server that has no thread for it.
const BUSY: u8 = 5;
const _: () = assert!(
    DONE < KEPT && KEPT < LET_GO && LET_GO < DYING && DYING < BUSY,
    "no two words of a server are the same"
);
const _: () = assert!(MAGIC[0] != BUSY, "an answer does not begin as BUSY does");
/// Longest reason.
const REASON_MAX: u64 = 1024;

/// What somebody at the listener wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// The segment, as this client.
    Admit(u64),
    /// That this client writes nothing more.
    ShutOut(u64),
}

/// What has become of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Report {
    /// The client writes nothing more.
    Done,
    /// Its process is being ended, and has not ended yet.
    Dying,
    /// It may still write, and why.
    Kept(String),
    /// The server has not heard it: it lives, and has no thread for whoever is at its listener.
    Busy,
}

/// Says what one wants. One who is not listened to hears it by the answer, if there is any.
pub(super) fn ask(mut stream: &UnixStream, ask: Ask) -> io::Result<()> {
    let (magic, client) = match ask {
        Ask::Admit(client) => (MAGIC, client),
        Ask::ShutOut(client) => (ORDER, client),
    };
    let mut word = [0; ASK];
    word[..8].copy_from_slice(&magic);
    word[8..].copy_from_slice(&client.to_le_bytes());
    match stream.write_all(&word) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// What somebody said.
///
/// # Errors
/// It is none of ours.
pub(super) fn asked(mut stream: &UnixStream) -> io::Result<Ask> {
    let mut word = [0; ASK];
    stream.read_exact(&mut word)?;
    let (magic, client) = word.split_at(8);
    let client = client.try_into().map(u64::from_le_bytes);
    match client {
        Ok(client) if magic == MAGIC => Ok(Ask::Admit(client)),
        Ok(client) if magic == ORDER => Ok(Ask::ShutOut(client)),
        _ => Err(not_our_protocol()),
    }
}

/// The server says what has become of an order.
pub(super) fn report(mut stream: &UnixStream, report: &Report) -> io::Result<()> {
    match report {
        Report::Done => stream.write_all(&[DONE]),
        Report::Dying => stream.write_all(&[DYING]),
        Report::Kept(reason) => stream.write_all(&[&[KEPT], reason.as_bytes()].concat()),
        Report::Busy => stream.write_all(&[BUSY]),
    }
}

/// What has become of an order.
///
/// # Errors
/// The server does not say.
pub(super) fn reported(mut stream: &UnixStream) -> io::Result<Report> {
    let mut said = [0];
    stream.read_exact(&mut said)?;
    match said {
        [DONE] => Ok(Report::Done),
        [DYING] => Ok(Report::Dying),
        [BUSY] => Ok(Report::Busy),
        [KEPT] => {
            let mut reason = Vec::new();
            stream.take(REASON_MAX).read_to_end(&mut reason)?;
            Ok(Report::Kept(String::from_utf8_lossy(&reason).into_owned()))
        }
        _ => Err(not_our_protocol()),
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
/// It is none of ours, or handed over nothing; [`io::ErrorKind::ResourceBusy`]: it has no thread for
/// us now.
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
    if received.bytes == 1 && word[0] == BUSY {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    if received.bytes < ANSWER || word[..8] != MAGIC {
        return Err(not_our_protocol());
    }
    let mut segments = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
        _ => None,
    });
    let segment = segments.next().ok_or_else(not_our_protocol)?;
    Ok((ServerId(u16::from_le_bytes([word[8], word[9]])), segment))
}

fn not_our_protocol() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the other side is no memory server or client of this release",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reported_is_heard() {
        let kept = Report::Kept("it is mine".to_owned());
        for report in [Report::Done, Report::Dying, Report::Busy, kept] {
            let (near, far) = UnixStream::pair().unwrap();
            super::report(&near, &report).unwrap();
            drop(near);
            assert_eq!(reported(&far).unwrap(), report);
        }
        let (near, far) = UnixStream::pair().unwrap();
        drop(near);
        assert!(reported(&far).is_err(), "a server that says nothing");
    }
}
