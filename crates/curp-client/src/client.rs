//! A client whose calls block: the loop runs in a thread of its own.

use std::io::{Read as _, Write as _};
use std::marker::PhantomData;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use manxdb_core::channel::Life;
use manxdb_core::{NodeId, RequestId};
use manxdb_curp::{ClientAnswer, CurpNode, Execute};
use manxdb_net::{Driver, Outside, Place, RegionId};

use crate::calls::{Calls, SHOW_EVERY};
use crate::cluster::{Cluster, ConnectError};
use crate::counts::{ClientCounts, ClientMeter};

/// Numbers of clients that no cluster file lists begin here, and are drawn from so many that no two of one
/// cluster are equal.
pub const UNLISTED_FIRST: u32 = 1 << 20;
/// How long a call waits for a cluster that executes nothing.
pub const CALL_PATIENCE: Duration = Duration::from_secs(60);
/// The key of the wake-up to show that this client is there.
const SHOW: u64 = 0;

/// Why a call has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Nobody can say any more whether the command was executed: the master has forgotten a client that
    /// was silent for too long.
    #[error(
        "the outcome of this command is unknown: the master has forgotten this client, which was silent for too long"
    )]
    Forgotten,
    /// The cluster does not answer. The command may still be executed, once.
    #[error("the outcome of this command is unknown: the cluster has not answered it for 60 s")]
    Silent,
    /// The client's thread is over, so that it executes nothing any more.
    #[error("this client has ended; connect again")]
    Ended,
}

struct Question {
    command: Vec<u8>,
    asker: Asker,
}

type Answered = Box<dyn FnOnce(Result<Vec<u8>, CallError>) + Send>;

/// Whoever waits for an answer. It gets one, also when the client ends before.
struct Asker(Option<Answered>);

impl Asker {
    fn tell(mut self, told: Result<Vec<u8>, CallError>) {
        let answered = self.0.take();
        assert!(answered.is_some(), "a command is answered once");
        if let Some(answered) = answered {
            answered(told);
        }
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        if let Some(answered) = self.0.take() {
            answered(Err(CallError::Ended));
        }
    }
}

/// A client of a cluster that replicates the machine `E`. Any number of threads may call it at the same
/// time: their commands are under way together.
pub struct Client<E> {
    questions: Mutex<Sender<Question>>,
    /// Wakes the thread up; the thread ends when it is closed.
    bell: UnixStream,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    meter: Arc<ClientMeter>,
    machine: PhantomData<fn() -> E>,
}

impl<E: Execute + 'static> Client<E> {
    /// A client of the cluster that has one of these coordinators. `nothing` is a command of the machine
    /// that changes nothing: it shows that the client is there.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(coordinators: &[SocketAddr], nothing: Vec<u8>) -> Result<Self, ConnectError> {
        Self::of(Cluster::ask(coordinators)?, nothing)
    }

    /// A client of a cluster that is known.
    ///
    /// # Errors
    /// [`ConnectError::Start`].
    pub fn of(cluster: Cluster, nothing: Vec<u8>) -> Result<Self, ConnectError> {
        let failed = |error: std::io::Error| ConnectError::Start(error.to_string());
        let (bell, rung) = UnixStream::pair().map_err(failed)?;
        bell.set_nonblocking(true).map_err(failed)?;
        rung.set_nonblocking(true).map_err(failed)?;
        let (stop, stops) = UnixStream::pair().map_err(failed)?;
        let (questions, asked) = mpsc::channel();
        let node = unlisted().map_err(failed)?;
        let calls = Calls::new(node);
        let meter = calls.meter();
        let driver = Asking {
            asked,
            bell: rung,
            calls,
            nothing,
        };
        let (started, has_started) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("curp-client".to_owned());
        let run = move || {
            let place = Place {
                node,
                region: RegionId(0),
            };
            let runtime = listen(&cluster).and_then(|listener| {
                // Drawn from so many, its first life is its only one.
                let hosted = cluster.host::<E, _>(place, Life(1), listener, driver, |_| Vec::new());
                hosted.map_err(|error| error.to_string())
            });
            match runtime {
                Ok(mut runtime) => {
                    let _ = started.send(Ok(()));
                    // What ends it ends all calls, which say so.
                    let _ = runtime.run(Some(&stops));
                }
                Err(why) => {
                    let _ = started.send(Err(why));
                }
            }
        };
        let thread = thread.spawn(run).map_err(failed)?;
        let has_started: Result<(), String> = has_started
            .recv()
            .unwrap_or_else(|_| Err("its thread has ended".to_owned()));
        has_started.map_err(ConnectError::Start)?;
        Ok(Self {
            questions: Mutex::new(questions),
            bell,
            stop: Some(stop),
            thread: Some(thread),
            meter,
            machine: PhantomData,
        })
    }

    /// What the machine answers to a command. The command is executed once, however often it has to be
    /// sent.
    ///
    /// # Errors
    /// [`CallError`]: the outcome is unknown.
    pub fn call(&self, command: Vec<u8>) -> Result<Vec<u8>, CallError> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.ask(command, move |told| {
            let _ = answer.send(told); // its caller waits no more
        });
        match answered.recv_timeout(CALL_PATIENCE) {
            Ok(told) => told,
            Err(mpsc::RecvTimeoutError::Timeout) => Err(CallError::Silent),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(CallError::Ended),
        }
    }

    /// Asks for a command as [`Client::call`] does, and waits for nothing: `answered` is called once, by
    /// another thread as a rule, with what the machine answers or why nobody knows that. It must not block.
    /// Commands may be asked for without end while the cluster does not answer: whoever asks says when it
    /// is enough.
    pub fn ask(
        &self,
        command: Vec<u8>,
        answered: impl FnOnce(Result<Vec<u8>, CallError>) + Send + 'static,
    ) {
        let asker = Asker(Some(Box::new(answered)));
        let question = Question { command, asker };
        let questions = self.questions.lock();
        let questions = questions.unwrap_or_else(PoisonError::into_inner);
        // One that is over takes none, and the asker is told so.
        let _ = questions.send(question);
        drop(questions);
        // A bell that is full rings already.
        let _ = (&self.bell).write(&[0]);
    }

    /// How its commands were completed so far.
    #[must_use]
    pub fn counts(&self) -> ClientCounts {
        self.meter.counts()
    }
}

impl<E> Drop for Client<E> {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // one that has panicked is over too
        }
    }
}

/// A number that no other client has.
///
/// # Errors
/// The operating system has no randomness to give.
pub fn unlisted() -> std::io::Result<NodeId> {
    let mut bytes = [0; 4];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let drawn = u32::from_le_bytes(bytes) & (u32::MAX >> 1);
    Ok(NodeId(drawn.max(UNLISTED_FIRST)))
}

/// Where answers come in: on this machine alone if the cluster is.
fn listen(cluster: &Cluster) -> Result<TcpListener, String> {
    let coordinator = cluster.directory.find(cluster.options.coordinator);
    let ip = match coordinator {
        Some((address, _)) if address.ip().is_loopback() => address.ip(),
        Some((SocketAddr::V6(_), _)) => Ipv6Addr::UNSPECIFIED.into(),
        _ => own_address(coordinator.map(|(address, _)| address)),
    };
    TcpListener::bind((ip, 0)).map_err(|error| format!("cannot listen for answers: {error}"))
}

/// The address of this machine from which the coordinator is reached: it is told to others.
fn own_address(coordinator: Option<SocketAddr>) -> std::net::IpAddr {
    let found = coordinator.and_then(|coordinator| {
        let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.connect(coordinator).ok()?;
        Some(socket.local_addr().ok()?.ip())
    });
    found.unwrap_or(Ipv4Addr::UNSPECIFIED.into())
}

/// Takes questions from other threads into the loop, and answers back.
struct Asking {
    asked: Receiver<Question>,
    bell: UnixStream,
    calls: Calls<Asker>,
    nothing: Vec<u8>,
}

impl<E: Execute> Driver<CurpNode<E>> for Asking {
    fn begin(&mut self, outside: &mut Outside<CurpNode<E>>) {
        outside.wake_after(SHOW_EVERY, SHOW);
    }

    fn sockets(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bell.as_fd())
    }

    fn ready(&mut self, outside: &mut Outside<CurpNode<E>>) {
        let _ = (&self.bell).read(&mut [0; 64]); // what it says is that there are questions
        while let Ok(Question { command, asker }) = self.asked.try_recv() {
            self.calls.ask(asker, command, outside);
        }
    }

    fn reply(
        &mut self,
        _: &mut Outside<CurpNode<E>>,
        _: NodeId,
        id: RequestId,
        body: ClientAnswer,
    ) {
        if let Some(asker) = self.calls.answered(id, &body) {
            let answer = body.answer.map(|(answer, _)| answer);
            asker.tell(answer.ok_or(CallError::Forgotten));
        }
    }

    fn wake(&mut self, outside: &mut Outside<CurpNode<E>>, _: u64) {
        self.calls.show(self.nothing.clone(), outside);
        outside.wake_after(SHOW_EVERY, SHOW);
    }
}
