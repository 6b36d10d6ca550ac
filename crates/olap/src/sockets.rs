//! Messages between nodes: a socket to each other one, and a thread that reads it.
//!
//! A message says what it is, which relation it is about, and how long it is; its bytes follow.
//! What a node does has stages, and it says when one is over: what it sends after that belongs to
//! the next. So a node that is ahead disturbs nobody.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::error::OlapError;
use crate::hash::{hash, share};
use crate::rows::{Key, Rows, Side};
use crate::traffic::Traffic;

/// Bytes of rows that are sent together: sockets carry large messages for less.
const TOGETHER: usize = 32 << 10;
/// The most that a message carries.
const PAYLOAD_MAX: usize = 1 << 20;
/// Bytes before them.
const HEAD: usize = 8;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Rows.
    Rows,
    /// A part of a filter.
    Filter,
    /// The sender's stage is over.
    End,
}

/// A message that has come.
#[derive(Debug)]
pub(crate) struct Message {
    pub from: u16,
    pub kind: Kind,
    pub side: Side,
    pub payload: Vec<u8>,
}

/// A node's sockets to all others.
pub struct Sockets {
    me: u16,
    /// By node; none: this one.
    streams: Vec<Option<TcpStream>>,
    inbox: Receiver<Result<Message, OlapError>>,
    /// Stages that each node has ended, this one included,
    ended: Vec<u32>,
    /// and whether anything else will come of it.
    is_gone: Vec<bool>,
    sent: Traffic,
}

impl Sockets {
    /// Over a connection to each other node, in the order of nodes; none in the place of this one.
    ///
    /// # Errors
    /// There is not one place without a connection, or the system says no.
    pub fn new(streams: Vec<Option<TcpStream>>) -> io::Result<Self> {
        let mut empty = (0..).zip(&streams).filter(|(_, one)| one.is_none());
        let (Some((me, _)), None) = (empty.next(), empty.next()) else {
            let error = "a node has a connection to each other node, and none to itself";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        };
        let (sender, inbox) = channel();
        for (from, stream) in (0..).zip(&streams) {
            if let Some(stream) = stream {
                stream.set_nodelay(true)?; // an end does not wait for more
                let (stream, sender) = (stream.try_clone()?, sender.clone());
                thread::Builder::new()
                    .name(format!("from-node-{from}"))
                    .spawn(move || read_all(from, stream, &sender))?;
            }
        }
        let count = streams.len();
        Ok(Self {
            me,
            streams,
            inbox,
            ended: vec![0; count],
            is_gone: vec![false; count],
            sent: Traffic::default(),
        })
    }

    /// Nodes, this one included.
    pub(crate) fn nodes(&self) -> usize {
        self.streams.len()
    }

    /// What has been sent.
    pub(crate) fn sent(&self) -> Traffic {
        self.sent
    }

    fn send(&mut self, to: usize, kind: Kind, side: Side, payload: &[u8]) -> Result<(), OlapError> {
        let Some(Some(stream)) = self.streams.get_mut(to) else {
            return Ok(()); // this node has nothing to tell itself
        };
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let mut head = [0; HEAD];
        head[0] = kind as u8;
        head[1] = side as u8;
        head[4..].copy_from_slice(&length.to_le_bytes());
        let sent = stream
            .write_all(&head)
            .and_then(|()| stream.write_all(payload));
        self.sent.count((HEAD + payload.len()) as u64);
        sent.map_err(|error| OlapError::Socket(u16::try_from(to).unwrap_or(u16::MAX), error))
    }

    /// Sends a filter to all others.
    ///
    /// # Errors
    /// A node is gone.
    pub(crate) fn send_filter(&mut self, side: Side, filter: &[u8]) -> Result<(), OlapError> {
        for to in 0..self.nodes() {
            for part in filter.chunks(PAYLOAD_MAX) {
                self.send(to, Kind::Filter, side, part)?;
            }
        }
        Ok(())
    }

    /// Sends rows of which `keeps` is true to the nodes of their keys; this node's own go to `own`.
    ///
    /// # Errors
    /// A node is gone.
    pub(crate) fn send_rows(
        &mut self,
        side: Side,
        rows: &Rows,
        keeps: impl Fn(Key) -> bool,
        own: &mut Rows,
    ) -> Result<(), OlapError> {
        let nodes = self.nodes();
        let mut buffers = vec![Vec::with_capacity(TOGETHER + rows.width().bytes()); nodes];
        for row in rows {
            let key = Key::of(row);
            if !keeps(key) {
                continue;
            }
            let to = share(hash(key), nodes);
            if to == usize::from(self.me) {
                own.extend(row)?;
                continue;
            }
            let Some(buffer) = buffers.get_mut(to) else {
                continue; // unreachable: a share is below their number
            };
            buffer.extend_from_slice(row);
            if buffer.len() >= TOGETHER {
                self.send(to, Kind::Rows, side, buffer)?;
                buffer.clear();
            }
        }
        for (to, buffer) in buffers.iter().enumerate() {
            if !buffer.is_empty() {
                self.send(to, Kind::Rows, side, buffer)?;
            }
        }
        Ok(())
    }

    /// Ends this node's stage, and takes what the others send until theirs have ended.
    ///
    /// # Errors
    /// A node is gone, or says what makes no sense; or `take` says so.
    pub(crate) fn end_stage(
        &mut self,
        mut take: impl FnMut(Message) -> Result<(), OlapError>,
    ) -> Result<(), OlapError> {
        for to in 0..self.nodes() {
            self.send(to, Kind::End, Side::Build, &[])?;
        }
        let stage = self.ended.get(usize::from(self.me)).copied();
        let stage = stage.unwrap_or(0) + 1;
        self.end_of(self.me);
        loop {
            let mut late = self.ended.iter().zip(&self.is_gone).zip(0..);
            let late = late.find(|((ended, is_gone), _)| **ended < stage && **is_gone);
            if let Some((_, node)) = late {
                return Err(OlapError::Gone(node));
            }
            if self.ended.iter().all(|ended| *ended >= stage) {
                return Ok(());
            }
            match self.inbox.recv() {
                Ok(Ok(message)) if message.kind == Kind::End => self.end_of(message.from),
                Ok(Ok(message)) => take(message)?,
                // It may have ended all that it had to.
                Ok(Err(OlapError::Gone(node))) => {
                    if let Some(is_gone) = self.is_gone.get_mut(usize::from(node)) {
                        *is_gone = true;
                    }
                }
                Ok(Err(error)) => return Err(error),
                Err(_) => self.is_gone.fill(true), // nobody is left who could send
            }
        }
    }

    fn end_of(&mut self, node: u16) {
        if let Some(ended) = self.ended.get_mut(usize::from(node)) {
            *ended += 1;
        }
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        for stream in self.streams.iter().flatten() {
            let _ = stream.shutdown(Shutdown::Both); // ends its thread, and tells the other side
        }
    }
}

/// Takes messages from a node until it is gone.
fn read_all(from: u16, mut stream: TcpStream, inbox: &Sender<Result<Message, OlapError>>) {
    loop {
        let message = read_one(from, &mut stream);
        let is_last = message.is_err();
        if inbox.send(message).is_err() || is_last {
            return;
        }
    }
}

fn read_one(node: u16, stream: &mut TcpStream) -> Result<Message, OlapError> {
    let gone = |_| OlapError::Gone(node);
    let mut head = [0; HEAD];
    stream.read_exact(&mut head).map_err(gone)?;
    let (kind, side, length) = meaning(node, head)?;
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).map_err(gone)?;
    Ok(Message {
        from: node,
        kind,
        side,
        payload,
    })
}

/// What a head says: what comes, of which relation, of how many bytes.
fn meaning(node: u16, head: [u8; HEAD]) -> Result<(Kind, Side, usize), OlapError> {
    let nonsense = || OlapError::Nonsense {
        node,
        what: format!("a message that begins with {head:?}"),
    };
    let [kind, side, _, _, length @ ..] = head;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    let kind = [Kind::Rows, Kind::Filter, Kind::End]
        .into_iter()
        .find(|one| *one as u8 == kind);
    let side = [Side::Build, Side::Probe]
        .into_iter()
        .find(|one| *one as u8 == side);
    match (kind, side) {
        (Some(kind), Some(side)) if length <= PAYLOAD_MAX => Ok((kind, side, length)),
        _ => Err(nonsense()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_that_make_no_sense_are_refused() {
        let head = |kind: u8, side: u8, length: u32| {
            let [a, b, c, d] = length.to_le_bytes();
            meaning(5, [kind, side, 0, 0, a, b, c, d])
        };
        assert_eq!(head(1, 1, 9).unwrap(), (Kind::Filter, Side::Probe, 9));
        for wrong in [head(3, 0, 0), head(0, 2, 0), head(0, 0, u32::MAX)] {
            let said = wrong.unwrap_err().to_string();
            assert!(
                said.starts_with("node 5 says what makes no sense"),
                "{said}"
            );
        }
    }

    #[test]
    fn a_node_has_one_place_of_its_own() {
        assert!(Sockets::new(Vec::new()).is_err());
        assert!(Sockets::new(vec![None, None]).is_err());
        assert_eq!(Sockets::new(vec![None]).unwrap().nodes(), 1);
    }
}
