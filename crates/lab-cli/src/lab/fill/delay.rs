//! A way between two zones: whatever is said arrives later.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A port that leads to another, with a delay each way. Bandwidth is not limited.
pub struct Way {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
}

impl Way {
    /// A way to `target`.
    ///
    /// # Errors
    /// The system has no port or thread left.
    pub fn start(target: SocketAddr, delay: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        thread::Builder::new().spawn(move || {
            for incoming in listener.incoming().flatten() {
                if seen.load(Ordering::Relaxed) {
                    return;
                }
                let _ = join(incoming, target, delay); // who called sees it closed
            }
        })?;
        Ok(Self { address, ended })
    }

    /// Where it begins.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address); // wakes it
    }
}

fn join(incoming: TcpStream, target: SocketAddr, delay: Duration) -> io::Result<()> {
    let outgoing = TcpStream::connect(target)?;
    for stream in [&incoming, &outgoing] {
        stream.set_nodelay(true)?;
    }
    carry(incoming.try_clone()?, outgoing.try_clone()?, delay)?;
    carry(outgoing, incoming, delay)
}

/// Carries bytes one way, on two threads: one notes when each piece came, one lets it go later.
fn carry(mut from: TcpStream, to: TcpStream, delay: Duration) -> io::Result<()> {
    let (pieces, due) = channel();
    thread::Builder::new().spawn(move || {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(length) = from.read(&mut bytes) {
            let piece = bytes.get(..length).unwrap_or_default().to_vec();
            if length == 0 || pieces.send((Instant::now() + delay, piece)).is_err() {
                return;
            }
        }
    })?;
    thread::Builder::new().spawn(move || let_go(&due, to))?;
    Ok(())
}

fn let_go(due: &Receiver<(Instant, Vec<u8>)>, mut to: TcpStream) {
    while let Ok((at, piece)) = due.recv() {
        thread::sleep(at.saturating_duration_since(Instant::now()));
        if to.write_all(&piece).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both); // the other side has ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_arrives_in_order_and_not_before_its_time() {
        let target = TcpListener::bind("127.0.0.1:0").unwrap();
        let delay = Duration::from_millis(30);
        let way = Way::start(target.local_addr().unwrap(), delay).unwrap();
        let mut near = TcpStream::connect(way.address()).unwrap();
        let (mut far, _) = target.accept().unwrap();
        let began = Instant::now();
        for piece in ["one ", "two ", "three"] {
            near.write_all(piece.as_bytes()).unwrap();
        }
        let mut heard = [0; 13];
        far.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"one two three");
        far.write_all(b"yes").unwrap();
        let mut answer = [0; 3];
        near.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"yes");
        assert!(began.elapsed() >= delay * 2); // a delay may be longer, never shorter
        drop(near);
        assert_eq!(far.read(&mut heard).unwrap(), 0);
    }
}
