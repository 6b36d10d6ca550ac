//! A connection that can be held or cut.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Bytes pass.
    Open,
    /// Bytes wait, as when every packet is dropped; connections stay.
    Held,
    /// Connections break, and new ones too.
    Cut,
}

struct Road {
    state: Mutex<(Way, SocketAddr, Vec<TcpStream>)>,
    change: Condvar,
}

impl Road {
    /// Waits while bytes do; whether they may pass then.
    fn passes(&self) -> bool {
        let state = self.state.lock().unwrap();
        let state = self.change.wait_while(state, |state| state.0 == Way::Held);
        state.unwrap().0 == Way::Open
    }

    fn carry(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(length) = from.read(&mut bytes) {
            if length == 0 || !self.passes() || to.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }

    fn take(self: &Arc<Self>, incoming: TcpStream) {
        let target = {
            let mut state = self.state.lock().unwrap();
            if state.0 == Way::Cut {
                return;
            }
            state.2.push(incoming.try_clone().unwrap());
            state.1
        };
        let Ok(outgoing) = TcpStream::connect(target) else {
            return;
        };
        let (there, back) = (Arc::clone(self), Arc::clone(self));
        let (from, to) = (incoming.try_clone().unwrap(), outgoing.try_clone().unwrap());
        std::thread::spawn(move || there.carry(from, to));
        std::thread::spawn(move || back.carry(outgoing, incoming));
    }
}

/// Between one process and the control plane, wherever that is.
pub struct Proxy {
    pub address: SocketAddr,
    road: Arc<Road>,
}

impl Proxy {
    pub fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let road = Arc::new(Road {
            state: Mutex::new((Way::Open, target, Vec::new())),
            change: Condvar::new(),
        });
        let takes = Arc::clone(&road);
        std::thread::spawn(move || {
            for incoming in listener.incoming().flatten() {
                takes.take(incoming);
            }
        });
        Self { address, road }
    }

    fn set(&self, way: Way) {
        let mut state = self.road.state.lock().unwrap();
        state.0 = way;
        if way == Way::Cut {
            for stream in state.2.drain(..) {
                let _ = stream.shutdown(Shutdown::Both); // it has ended
            }
        }
        drop(state);
        self.road.change.notify_all();
    }

    pub fn hold(&self) {
        self.set(Way::Held);
    }

    pub fn cut(&self) {
        self.set(Way::Cut);
    }

    pub fn open(&self) {
        self.set(Way::Open);
    }

    /// The control plane is somewhere else now.
    pub fn lead_to(&self, target: SocketAddr) {
        self.road.state.lock().unwrap().1 = target;
    }
}
