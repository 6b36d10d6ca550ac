//! Accepts connections. A refused peer is told the reason, and the operators read it in the log:
//! once for each address and reason, because a refused peer tries again and again.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;

/// Connections that are being greeted at a time; the next wait.
const GREETED_MAX: usize = 256;
/// A greeting, such as a TLS handshake, that takes longer is given up, and so is a parting.
const GREETING: Duration = Duration::from_secs(5);
/// Pause when the system gives no connection, because too many files are open.
const PAUSE: Duration = Duration::from_millis(200);
/// Refusals that are remembered.
const SAID_MAX: usize = 1_024;

/// Addresses that were refused, with reasons.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Arc<Mutex<BTreeSet<(IpAddr, String)>>>);

impl Refusals {
    /// Logs a refusal, unless the same was logged for this address.
    pub fn say(&self, peer: Option<IpAddr>, why: &str) {
        let Some(peer) = peer else {
            tracing::warn!(why, "a connection is refused");
            return;
        };
        let mut said = self.0.lock();
        if said.len() >= SAID_MAX {
            said.clear();
        }
        if said.insert((peer, why.to_owned())) {
            tracing::warn!(%peer, why, "a connection is refused");
        }
    }

    /// A peer at this address was accepted: its next refusal is logged again.
    pub fn forget(&self, peer: Option<IpAddr>) {
        if let Some(peer) = peer {
            self.0.lock().retain(|(said, _)| *said != peer);
        }
    }
}

/// A connection that is refused, and why. It stays open until the peer has received the reason.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Where the reason, in the protocol's form, has been written.
    pub stream: TcpStream,
    /// The reason, for the log.
    pub why: String,
}

impl Refused {
    /// Hears the peer out until it closes. To close while something it sent is unread would reset
    /// the connection, and it might find that before the words that say why (RFC 9112 section 9.6
    /// has the same rule). Errors mean that it is gone, which is as well.
    async fn part(mut self) {
        let _ = self.stream.shutdown().await;
        let _ = tokio::io::copy(&mut self.stream, &mut tokio::io::sink()).await;
    }
}

/// All connections that `greet` lets in. To be called inside of a runtime.
pub(crate) fn arrivals<S, G, F>(
    listener: TcpListener,
    refusals: Refusals,
    greet: G,
) -> ReceiverStream<io::Result<S>>
where
    S: Send + 'static,
    G: Fn(TcpStream) -> F + Send + 'static,
    F: Future<Output = Result<S, Refused>> + Send + 'static,
{
    let (entry, arrived) = mpsc::channel(GREETED_MAX);
    tokio::spawn(async move {
        let room = Arc::new(Semaphore::new(GREETED_MAX));
        while let Ok(place) = Arc::clone(&room).acquire_owned().await {
            let (stream, peer) = tokio::select! {
                () = entry.closed() => return,
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        tracing::warn!(%error, "the system gives no connection");
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                },
            };
            let _ = stream.set_nodelay(true); // slower, not wrong
            let greeting = greet(stream);
            let (entry, refusals) = (entry.clone(), refusals.clone());
            tokio::spawn(async move {
                match tokio::time::timeout(GREETING, greeting).await {
                    Ok(Ok(stream)) => {
                        let _ = entry.send(Ok(stream)).await; // the server has ended
                    }
                    Ok(Err(refused)) => {
                        refusals.say(Some(peer.ip()), &refused.why);
                        let _ = tokio::time::timeout(GREETING, refused.part()).await;
                    }
                    Err(_) => refusals.say(Some(peer.ip()), "no TLS handshake within 5 s"),
                }
                drop(place);
            });
        }
    });
    ReceiverStream::new(arrived)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    /// Sends the refusal without reading the peer's bytes.
    async fn refuse(mut stream: TcpStream) -> Result<TcpStream, Refused> {
        stream.readable().await.unwrap();
        stream.write_all(b"not you").await.unwrap();
        let why = String::from("it is a test");
        Err(Refused { stream, why })
    }

    #[test]
    fn whoever_is_refused_reads_why_though_it_was_not_read() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let inside = runtime.enter();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let _arrived = arrivals(listener, Refusals::default(), refuse);
        drop(inside);
        let mut peer = std::net::TcpStream::connect(address).unwrap();
        peer.write_all(b"let me in").unwrap();
        let mut heard = String::new();
        peer.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "not you");
    }
}
