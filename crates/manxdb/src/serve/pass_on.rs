//! MySQL clients at a server that is not the master: their bytes are passed on to the one that is.
//!
//! The connection is the client's and the master's; nothing in between is looked at, so that TLS and
//! passwords work as they do there. When the master is another one, or dies, the connection ends, and
//! the client's next one goes to the new master.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::fault::Fault;

/// How long the master may take to accept a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);
/// How often a silent connection looks whether it still leads to the master.
const LOOK: Duration = Duration::from_millis(200);
/// Bytes that are passed on at a time.
const CHUNK: usize = 64 << 10;
/// Stack of a thread that passes bytes on.
const STACK_BYTES: usize = 256 << 10;

/// Where the master is, for people and for connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// At this address.
    At(SocketAddr),
    /// It is this server, which is loading its rows.
    Here,
    /// Nobody knows.
    Unknown,
}

/// Says where the master is.
pub type FindMaster = Arc<dyn Fn() -> Whereabouts + Send + Sync>;

/// Passes connections on until it is stopped.
pub struct PassOn {
    stop: Arc<AtomicBool>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

impl PassOn {
    /// Takes the connections of a listener, at most so many at a time.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(
        listener: TcpListener,
        find: FindMaster,
        connections_max: usize,
    ) -> Result<Self, Fault> {
        let io = |error| Fault::io("cannot pass MySQL connections on", error);
        let address = listener.local_addr().map_err(io)?;
        let stop = Arc::new(AtomicBool::new(false));
        let ending = Arc::clone(&stop);
        let acceptor = thread::Builder::new()
            .name("mysql-pass-on".to_owned())
            .spawn(move || accept(&listener, &ending, &find, connections_max))
            .map_err(io)?;
        Ok(Self {
            stop,
            address,
            acceptor: Some(acceptor),
        })
    }
}

impl Drop for PassOn {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // A blocked accept ends with a connection; failing means that nobody listens any more.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join(); // one that panicked has nothing left to do
        }
    }
}

fn accept(
    listener: &TcpListener,
    stop: &Arc<AtomicBool>,
    find: &FindMaster,
    connections_max: usize,
) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let accepted = listener.accept();
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let Ok((client, _)) = accepted else {
            thread::sleep(LOOK);
            continue;
        };
        if open.load(Ordering::SeqCst) >= connections_max {
            refuse(&client, 1040, "08004", "Too many connections");
            continue;
        }
        open.fetch_add(1, Ordering::SeqCst);
        let (count, find, stop) = (Arc::clone(&open), Arc::clone(find), Arc::clone(stop));
        let spawned = spawn("mysql-passing", move || {
            pass_on(&client, &find, &stop);
            count.fetch_sub(1, Ordering::SeqCst);
        });
        if spawned.is_err() {
            open.fetch_sub(1, Ordering::SeqCst); // its client sees the connection end
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.stack_size(STACK_BYTES).spawn(work)
}

fn pass_on(client: &TcpStream, find: &FindMaster, stop: &Arc<AtomicBool>) {
    let not_here = |why: String| refuse(client, 1105, "08004", &why);
    let address = match find() {
        Whereabouts::At(address) => address,
        Whereabouts::Here => {
            return not_here(
                "this server is becoming the master: try again in a moment".to_owned(),
            );
        }
        Whereabouts::Unknown => {
            return not_here(
                "no server is master at the moment: try again; manxdb cluster status says what the \
                 cluster lacks"
                    .to_owned(),
            );
        }
    };
    let Ok(master) = TcpStream::connect_timeout(&address, CONNECT_PATIENCE) else {
        return not_here(format!(
            "the master, at {address}, does not answer: try again, another server takes over"
        ));
    };
    let leads_there = {
        let (find, stop) = (Arc::clone(find), Arc::clone(stop));
        move || !stop.load(Ordering::SeqCst) && find() == Whereabouts::At(address)
    };
    let (Ok(from_client), Ok(to_master)) = (client.try_clone(), master.try_clone()) else {
        return;
    };
    let own = leads_there.clone();
    let there = spawn("mysql-passing", move || {
        pump(&from_client, &to_master, &own);
    });
    if there.is_ok() {
        pump(&master, client, &leads_there);
    }
    for socket in [client, &master] {
        let _ = socket.shutdown(Shutdown::Both);
    }
    if let Ok(there) = there {
        let _ = there.join();
    }
}

/// Passes bytes on in one direction until one side ends, or it leads elsewhere.
fn pump(mut from: &TcpStream, mut to: &TcpStream, goes_on: &dyn Fn() -> bool) {
    let _ = from.set_read_timeout(Some(LOOK));
    let _ = to.set_nodelay(true);
    let mut chunk = vec![0; CHUNK];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => {
                if to.write_all(&chunk[..count]).is_err() {
                    break;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if !goes_on() {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    for socket in [from, to] {
        let _ = socket.shutdown(Shutdown::Both);
    }
}

/// Tells a client in the first packet why it is not served.
fn refuse(mut client: &TcpStream, code: u16, state: &str, why: &str) {
    let mut body = vec![0xFF];
    body.extend_from_slice(&code.to_le_bytes());
    body.extend_from_slice(format!("#{state}{why}").as_bytes());
    let length = u32::try_from(body.len()).unwrap_or(0).to_le_bytes();
    let mut packet = vec![length[0], length[1], length[2], 0];
    packet.append(&mut body);
    let _ = client.write_all(&packet);
    let _ = client.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[test]
    fn bytes_go_both_ways_and_end_when_the_master_is_another_one() {
        let ((door, at), (master, master_at)) = (listener(), listener());
        let known = Arc::new(Mutex::new(Whereabouts::At(master_at)));
        let told = Arc::clone(&known);
        let find: FindMaster = Arc::new(move || *told.lock().unwrap());
        let passing = PassOn::start(door, find, 10).unwrap();
        let mut client = TcpStream::connect(at).unwrap();
        let (mut end, _) = master.accept().unwrap();
        client.write_all(b"question").unwrap();
        let mut heard = [0; 8];
        end.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"question");
        end.write_all(b"answer").unwrap();
        let mut heard = [0; 6];
        client.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"answer");
        *known.lock().unwrap() = Whereabouts::Unknown;
        assert_eq!(
            client.read(&mut heard).unwrap_or(0),
            0,
            "the connection ends"
        );
        drop(passing);
        assert!(TcpStream::connect(at).is_err(), "nobody listens");
    }

    #[test]
    fn who_cannot_be_served_is_told_why_and_where_the_master_is() {
        let (_, nobody) = listener();
        for (place, words) in [
            (Whereabouts::Unknown, "no server is master".to_owned()),
            (Whereabouts::Here, "becoming the master".to_owned()),
            (Whereabouts::At(nobody), format!("the master, at {nobody}")),
        ] {
            let (door, at) = listener();
            let _passing = PassOn::start(door, Arc::new(move || place), 10).unwrap();
            let mut text = Vec::new();
            let mut client = TcpStream::connect(at).unwrap();
            client.read_to_end(&mut text).unwrap();
            assert_eq!(text[..4], [u8::try_from(text.len() - 4).unwrap(), 0, 0, 0]);
            let text = String::from_utf8_lossy(&text).into_owned();
            assert!(text.contains(&words), "{text}");
        }
    }
}
