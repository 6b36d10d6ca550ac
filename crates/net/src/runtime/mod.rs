//! The loop of a process: cores, timers and sockets in one thread.
//!
//! | file | |
//! |---|---|
//! | [`agenda`] | what is to be done when |
//! | `cores` | stepping cores and doing what they ask for |
//! | `poller` | what is waited for |
//! | `sockets` | waiting, accepting, reading, writing |
//! | `unordered` | datagrams, and what journals report |
//!
//! One round: wait until a socket is ready or something is due; do what is due; read; do what that
//! made due; write. What is due comes first, and again before each message: a process that stood
//! still must meet the end of its lease before a request that needs it. The wait is an epoll, whose
//! time is exact to the kernel's timer slack (some 50 µs, unless the process asks for less): a
//! clock report every 2.5 ms or a delay of as much must not be rounded to whole milliseconds.
//! Sockets of the driver's own wait in an epoll of its own, which is one descriptor in this one.

mod agenda;
mod cores;
mod poller;
mod sockets;
mod unordered;

use std::collections::{BTreeMap, VecDeque};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use manxdb_core::channel::{ChannelOptions, Life, Reliable};
use manxdb_core::{Actions, Core, LocalTime, Nanos, NodeId, RequestId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::agenda::Agenda;
use self::poller::Poller;
use crate::cluster_id::ClusterId;
use crate::counters::Counters;
use crate::datagrams::DatagramSocket;
use crate::delay::{Delays, Holder};
use crate::directory::Directory;
use crate::driver::{Driver, Outside};
use crate::frame::{self, FrameError};
use crate::inbound::Inbound;
use crate::journal::{JournalReports, JournalWriter, RecordStore};
use crate::outbound::Outbound;
use crate::packet::{Hello, Packet, Place, RegionId};
use crate::tenure::Tenure;

/// Why a process cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// Sockets cannot be had or waited for.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// What a node must say first does not fit into a frame.
    #[error("cannot introduce this process: {0}")]
    Hello(FrameError),
    /// A record may not be on disk: what follows from it must not happen.
    #[error("the journal cannot be written: {0}; free or mend the disk, then start again")]
    Journal(String),
    /// Another process may act for the nodes of this one.
    #[error("the lease was not renewed in time")]
    TenureOver,
}

impl NetError {
    fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

/// What a core says of itself, by name, for [`crate::status`].
pub type Notes<C> = fn(&C) -> Vec<(String, String)>;

/// How a process takes part in a cluster.
pub struct Settings<C> {
    /// Which cluster.
    pub cluster: ClusterId,
    /// Where the servers are.
    pub directory: Directory,
    /// How far apart regions are.
    pub delays: Delays,
    /// How patient channels are. See [`channel_options`].
    pub channel: ChannelOptions,
    /// Whether datagrams are held as long as their way is, when they are sent and when they come: by
    /// those who ask, because what answers may be a data plane that holds nothing.
    pub holds_datagrams: bool,
    /// Decides the jitter.
    pub seed: u64,
    /// What cores say of themselves.
    pub notes: Notes<C>,
}

/// How patient channels are over TCP, which loses nothing while a connection lasts: longer than a
/// far round trip, so that only what broke with a connection is sent again.
#[must_use]
pub fn channel_options(delays: &Delays) -> ChannelOptions {
    let tick = Nanos::from_millis(10);
    let far = delays.pairs.values().copied().max().unwrap_or_default();
    let round_trip = (far.max(delays.wan) + delays.wan_jitter) * 2;
    let ticks = u32::try_from((round_trip * 2).0 / tick.0).unwrap_or(u32::MAX);
    let resend_ticks = ticks.clamp(20, 1_000);
    ChannelOptions {
        tick,
        resend_ticks,
        resend_ticks_max: resend_ticks.saturating_mul(4),
        burst_max: 1_024,
        ..ChannelOptions::default()
    }
}

struct Hosted<C: Core> {
    core: Reliable<C>,
    region: RegionId,
    life: Life,
    journal: Option<JournalWriter>,
    supersedes: Supersedes<C>,
}

/// Whether a record says all that those before it said.
pub type Supersedes<C> = fn(&<C as Core>::Record) -> bool;

/// How long a process that ends still does what its timers say, without reading anything: a core that
/// waits a moment before it writes something down has written it then.
const LAST_TIMERS: Nanos = Nanos::from_millis(2);

/// A process: some nodes of a cluster, and whoever asks them.
pub struct Runtime<C: Core, D> {
    settings: Settings<C>,
    driver: D,
    outside: Outside<C>,
    nodes: BTreeMap<NodeId, Hosted<C>>,
    agenda: Agenda<C>,
    actions: Actions<Reliable<C>>,
    replies: VecDeque<(NodeId, RequestId, C::Reply)>,
    holder: Holder,
    holds_hosted: bool,
    listener: TcpListener,
    address: SocketAddr,
    hello: Vec<u8>,
    inbound: BTreeMap<u64, Inbound>,
    outbound: BTreeMap<SocketAddr, Outbound>,
    datagrams: BTreeMap<NodeId, DatagramSocket>,
    /// Who sent the datagram that is being handled.
    unknown_sender: Option<SocketAddr>,
    reports: Arc<JournalReports>,
    /// For how long its nodes are its own.
    tenure: Option<Tenure>,
    /// Connections in and out so far: their numbers.
    accepted: u64,
    opened: u64,
    /// Whether new connections are waited for.
    accepts: bool,
    poller: Poller,
    /// Why the process cannot go on.
    failure: Option<NetError>,
    counters: Counters,
    started: Instant,
    looked_after: Nanos,
}

impl<C, D> Runtime<C, D>
where
    C: Core,
    C::Record: Serialize + DeserializeOwned,
    C::Message: Serialize + DeserializeOwned,
    D: Driver<C>,
{
    /// A process that listens on `listener` and runs no node yet.
    ///
    /// # Errors
    /// [`NetError::Io`].
    pub fn new(settings: Settings<C>, listener: TcpListener, driver: D) -> Result<Self, NetError> {
        listener
            .set_nonblocking(true)
            .map_err(NetError::io("listen"))?;
        let address = listener.local_addr().map_err(NetError::io("listen"))?;
        Ok(Self {
            holder: Holder::new(settings.delays.clone(), settings.seed),
            holds_hosted: true,
            settings,
            driver,
            outside: Outside::default(),
            nodes: BTreeMap::new(),
            agenda: Agenda::default(),
            actions: Actions::default(),
            replies: VecDeque::new(),
            listener,
            address,
            hello: Vec::new(),
            inbound: BTreeMap::new(),
            outbound: BTreeMap::new(),
            datagrams: BTreeMap::new(),
            unknown_sender: None,
            reports: Arc::new(JournalReports::new(poller::bell()?)),
            tenure: None,
            accepted: 0,
            opened: 0,
            accepts: true,
            poller: Poller::new()?,
            failure: None,
            counters: Counters::default(),
            started: Instant::now(),
            looked_after: Nanos::ZERO,
        })
    }

    /// Where others find it.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Tells others another address than the one it listens at: that of a forwarded port.
    pub fn advertise(&mut self, address: SocketAddr) {
        self.address = address;
    }

    /// Messages between nodes of this process are not held: they stand for one machine, however far
    /// apart machines are.
    pub fn hold_no_hosted(&mut self) {
        self.holds_hosted = false;
    }

    /// Steps its nodes until a tenure is over, and ends then: other processes may act for them.
    pub fn act_during(&mut self, tenure: Tenure) {
        self.tenure = Some(tenure);
    }

    /// Adds a node in its `life`th life, that writes nothing down.
    pub fn add(&mut self, place: Place, life: Life, core: C) {
        self.host(place, life, core, (None, |_| false));
    }

    /// Adds a node in its `life`th life, whose core has what was in the journal or another store. A
    /// record that supersedes all before it begins a new file.
    ///
    /// # Errors
    /// [`NetError::Io`].
    pub fn add_with_journal(
        &mut self,
        place: Place,
        life: Life,
        core: C,
        (journal, supersedes): (impl RecordStore, Supersedes<C>),
    ) -> Result<(), NetError> {
        let writer = JournalWriter::start(place.node, journal, Arc::clone(&self.reports))
            .map_err(NetError::io("start the journal's thread"))?;
        self.host(place, life, core, (Some(writer), supersedes));
        Ok(())
    }

    /// Gives a node a socket for datagrams: a server where it listens, others anywhere.
    ///
    /// # Errors
    /// [`NetError::Io`].
    pub fn open_datagrams(&mut self, node: NodeId) -> Result<(), NetError> {
        let directory = &self.settings.directory;
        let own = directory.find(node).filter(|_| directory.is_server(node));
        let anywhere = SocketAddr::new(self.address.ip(), 0);
        let address = own.map_or(anywhere, |(address, _)| address);
        let socket = DatagramSocket::bind(address);
        let socket = socket.map_err(NetError::io("open a socket for datagrams"))?;
        self.poller
            .add(&socket.socket, poller::datagrams(node), poller::READABLE)?;
        self.datagrams.insert(node, socket);
        Ok(())
    }

    fn host(
        &mut self,
        place: Place,
        life: Life,
        core: C,
        (journal, supersedes): (Option<JournalWriter>, Supersedes<C>),
    ) {
        let core = Reliable::new(core, place.node, life, self.settings.channel);
        let hosted = Hosted {
            core,
            region: place.region,
            life,
            journal,
            supersedes,
        };
        self.nodes.insert(place.node, hosted);
    }

    /// Runs until the driver is done, or `stop` becomes readable or is closed.
    ///
    /// # Errors
    /// [`NetError`]. What comes over the network is never one.
    pub fn run(&mut self, stop: Option<&UnixStream>) -> Result<(), NetError> {
        self.introduce()?;
        self.watch(stop)?;
        if self.tenure.is_some() {
            self.greet();
        }
        self.start();
        while !self.driver.done() {
            let ready = self.wait()?;
            if ready.stop {
                self.do_last();
                break;
            }
            self.do_due();
            self.take_ready(&ready);
            self.do_due();
            self.end_round();
            self.write();
            self.look_after();
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Does what timers say for a last moment. Records are on disk when the process has ended.
    fn do_last(&mut self) {
        let end = self.now() + LAST_TIMERS;
        while let Some(first) = self.agenda.first().filter(|first| *first <= end) {
            let wait = first.saturating_sub(self.now());
            std::thread::park_timeout(std::time::Duration::from_nanos(wait.0));
            self.do_due();
        }
        self.write();
    }

    /// Who asked, and what was answered.
    pub fn into_driver(self) -> D {
        self.driver
    }

    /// What it has counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The core of a node of this process.
    #[must_use]
    pub fn core(&self, node: NodeId) -> Option<&C> {
        Some(self.nodes.get(&node)?.core.core())
    }

    fn introduce(&mut self) -> Result<(), NetError> {
        let places = self.nodes.iter().map(|(node, hosted)| Place {
            node: *node,
            region: hosted.region,
        });
        let hello = Hello {
            cluster: self.settings.cluster,
            address: self.address,
            places: places.collect(),
        };
        // A node knows where it is itself.
        let _ = self.settings.directory.learn(&hello);
        let packet = Packet::<()>::Hello(hello);
        self.hello = frame::encode(&packet).map_err(NetError::Hello)?;
        Ok(())
    }

    /// Time since the process started; never goes back.
    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// What the machine's clock shows.
fn wall() -> LocalTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    LocalTime(u64::try_from(nanos).unwrap_or(u64::MAX))
}
