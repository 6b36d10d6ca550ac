//! Messages in order and exactly once, over a network that loses, repeats and reorders.
//!
//! [`Reliable`] wraps a core and is one itself: it numbers what the core sends to each peer,
//! sends again what was not acknowledged, and hands on what arrives in the order it was sent.
//! A connection is between two *lives* of nodes. A node that starts again has a new [`Life`];
//! what was on its way to the old one is dropped, never delivered to the new one, and numbering
//! starts afresh in both directions. Who may take part again after that is for the protocol to
//! say.
//!
//! All nodes are born with [`Life`] 1, so the first connections need no handshake. A node in a
//! later life does not know which lives the others are in: what it sends waits until a peer has
//! answered it in the peer's present life, and so is not lost to a life that is over.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::machine::{Action, Actions, Core, Event, EventOf, Message, NodeId};
use crate::time::{LocalTime, Nanos};
use crate::work::Weight;

/// How many times a node has started; grows with each start.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Life(pub u64);

impl Life {
    /// The life of a peer that has not answered yet; nobody lives it.
    const UNKNOWN: Life = Life(0);
}

/// How patient a [`Reliable`] is.
#[derive(Debug, Clone, Copy)]
pub struct ChannelOptions {
    /// How often it looks for messages to send again and for acknowledgements that it owes.
    pub tick: Nanos,
    /// Ticks without an acknowledgement after which the oldest messages are sent again; doubles
    /// up to `resend_ticks_max` while there is none.
    pub resend_ticks: u32,
    /// The longest pause between two attempts.
    pub resend_ticks_max: u32,
    /// Messages sent again in one attempt.
    pub burst_max: usize,
    /// Messages that may wait for one peer. Past it the connection is given up, both ways, until
    /// the peer starts a new life: a message left out would be a hole in what the peer hears.
    pub waiting_max: usize,
    /// Whether messages are numbered, acknowledged and sent again. The messages of a core that
    /// mends every loss itself are better without: nothing waits for a peer that is gone.
    pub is_numbered: bool,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self {
            tick: Nanos::from_millis(10),
            resend_ticks: 3,
            resend_ticks_max: 64,
            burst_max: 64,
            waiting_max: 1 << 20,
            is_numbered: true,
        }
    }
}

/// What goes over the network.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Frame<M> {
    /// The life of the sender.
    from: Life,
    /// The life of the receiver that this is for.
    to: Life,
    /// Highest number up to which everything from the receiver has arrived.
    acknowledged: u64,
    /// A numbered message; without one the frame is only an acknowledgement, or a correction of
    /// the receiver's idea of the sender's life.
    body: Option<(u64, M)>,
}

/// The number of a message that has none; numbers begin at 1.
const UNNUMBERED: u64 = 0;

impl<M> Frame<M> {
    /// A message that arrives as the network brings it.
    fn unnumbered(from: Life, body: M) -> Self {
        Self {
            from,
            to: Life::UNKNOWN,
            acknowledged: 0,
            body: Some((UNNUMBERED, body)),
        }
    }
}

impl<M: Message> Message for Frame<M> {
    fn weight(&self) -> Weight {
        self.body
            .as_ref()
            .map_or(Weight::Report, |(_, body)| body.weight())
    }

    fn label(&self) -> &'static str {
        self.body.as_ref().map_or("ack", |(_, body)| body.label())
    }

    fn txn(&self) -> Option<u64> {
        self.body.as_ref().and_then(|(_, body)| body.txn())
    }

    fn is_datagram(&self) -> bool {
        let body = self.body.as_ref();
        body.is_some_and(|(_, body)| body.is_datagram())
    }

    fn encode_datagram(&self) -> Option<Vec<u8>> {
        self.body.as_ref()?.1.encode_datagram()
    }

    fn decode_datagram(bytes: &[u8]) -> Option<Self> {
        // A datagram says nothing of lives; its protocol has names for what it is about.
        M::decode_datagram(bytes).map(|body| Self::unnumbered(Life::UNKNOWN, body))
    }
}

/// Timers of a [`Reliable`].
#[derive(Debug, Clone)]
pub enum ChannelTimer<T> {
    /// Time to look for what must be sent again.
    Tick,
    /// One of the core's own.
    Inner(T),
}

/// The connection to one peer.
#[derive(Debug)]
struct Peer<M> {
    life: Life,
    /// Numbers of `waiting` are consecutive and end at `sent`.
    sent: u64,
    waiting: VecDeque<M>,
    /// Ticks since the last acknowledgement or attempt.
    ticks: u32,
    patience: u32,
    received: u64,
    early: BTreeMap<u64, M>,
    owes_acknowledgement: bool,
    given_up: bool,
}

impl<M> Peer<M> {
    fn new(life: Life, patience: u32) -> Self {
        Self {
            life,
            sent: 0,
            waiting: VecDeque::new(),
            ticks: 0,
            patience,
            received: 0,
            early: BTreeMap::new(),
            owes_acknowledgement: false,
            given_up: false,
        }
    }

    /// The number of the oldest message in `waiting`.
    fn oldest(&self) -> u64 {
        self.sent + 1 - self.waiting.len() as u64
    }
}

/// A core whose messages arrive in order and once.
#[derive(Debug)]
pub struct Reliable<C: Core> {
    core: C,
    me: NodeId,
    life: Life,
    options: ChannelOptions,
    peers: BTreeMap<NodeId, Peer<C::Message>>,
    inner: Actions<C>,
}

impl<C: Core> Reliable<C> {
    /// `core` as node `me`, in its `life`th life.
    pub fn new(core: C, me: NodeId, life: Life, options: ChannelOptions) -> Self {
        Self {
            core,
            me,
            life,
            options,
            peers: BTreeMap::new(),
            inner: Actions::default(),
        }
    }

    /// The core inside.
    pub fn core(&self) -> &C {
        &self.core
    }

    fn peer(&mut self, peer: NodeId) -> &mut Peer<C::Message> {
        let patience = self.options.resend_ticks;
        let life = match self.life {
            own if peer == self.me => own,
            Life(1) => Life(1),
            _ => Life::UNKNOWN,
        };
        let fresh = || Peer::new(life, patience);
        self.peers.entry(peer).or_insert_with(fresh)
    }

    fn frame(&mut self, to: NodeId, body: Option<(u64, C::Message)>, out: &mut Actions<Self>) {
        let from = self.life;
        let peer = self.peer(to);
        peer.owes_acknowledgement = false;
        let frame = Frame {
            from,
            to: peer.life,
            acknowledged: peer.received,
            body,
        };
        out.send(to, frame);
    }

    /// Tells a life of a peer in which life this node is.
    fn introduce(&mut self, to: NodeId, life: Life, out: &mut Actions<Self>) {
        let frame = Frame {
            from: self.life,
            to: life,
            acknowledged: 0,
            body: None,
        };
        out.send(to, frame);
    }

    /// Whether a message goes as it is, to be lost or doubled.
    fn goes_unnumbered(&self, body: &C::Message) -> bool {
        !self.options.is_numbered || body.is_datagram()
    }

    fn send(&mut self, to: NodeId, body: C::Message, out: &mut Actions<Self>) {
        if self.goes_unnumbered(&body) {
            return out.send(to, Frame::unnumbered(self.life, body));
        }
        let waiting_max = self.options.waiting_max;
        let peer = self.peer(to);
        if peer.given_up {
            return;
        }
        if peer.waiting.len() >= waiting_max {
            peer.given_up = true;
            peer.waiting.clear();
            peer.early.clear();
            return;
        }
        peer.sent += 1;
        if peer.waiting.is_empty() {
            peer.ticks = 0;
        }
        peer.waiting.push_back(body.clone());
        let number = peer.sent;
        self.frame(to, Some((number, body)), out);
    }

    /// Steps the core and passes on what it asks for.
    fn step_core(&mut self, now: LocalTime, event: EventOf<C>, out: &mut Actions<Self>) {
        let mut inner = std::mem::take(&mut self.inner);
        self.core.step(now, event, &mut inner);
        out.work(inner.take_work());
        for action in inner.drain() {
            match action {
                Action::Send { to, body } => self.send(to, body, out),
                Action::SetTimer { after, timer } => {
                    out.set_timer(after, ChannelTimer::Inner(timer));
                }
                Action::Persist { record, token } => out.persist(record, token),
                Action::Reply { id, body } => out.reply(id, body),
                Action::Mark { txn, phase } => out.mark(txn, phase),
                Action::Wait { txn, wait } => out.wait(txn, wait),
            }
        }
        self.inner = inner;
    }

    fn receive(
        &mut self,
        now: LocalTime,
        from: NodeId,
        frame: Frame<C::Message>,
        out: &mut Actions<Self>,
    ) {
        let frame = match frame.body {
            Some((UNNUMBERED, body)) => {
                // From a peer of the same kind only: others would lose the order that they rely on.
                if self.goes_unnumbered(&body) {
                    self.step_core(now, Event::Message { from, body }, out);
                }
                return;
            }
            body => Frame { body, ..frame },
        };
        if !self.options.is_numbered {
            return; // nothing here waits for acknowledgements
        }
        let patience = self.options.resend_ticks;
        let mine = self.life;
        let known = self.peer(from).life;
        if known == Life::UNKNOWN {
            if frame.to != mine {
                // Perhaps from a life that is over. Who lives will answer this.
                self.introduce(from, frame.from, out);
                return;
            }
            self.peer(from).life = frame.from;
            self.send_again(from, out);
        } else if frame.from > known {
            // The peer started again: nothing of its old life is of use to the new one.
            *self.peer(from) = Peer::new(frame.from, patience);
        }
        let peer = self.peer(from);
        if frame.from < peer.life || peer.given_up {
            return;
        }
        if frame.to != mine {
            // The peer does not know yet that this node started again.
            self.introduce(from, frame.from, out);
            return;
        }
        while peer.oldest() <= frame.acknowledged && peer.waiting.pop_front().is_some() {
            peer.ticks = 0;
            peer.patience = patience;
        }
        let Some((number, body)) = frame.body else {
            return;
        };
        peer.owes_acknowledgement = true;
        if number > peer.received {
            peer.early.insert(number, body);
        }
        while let Some(body) = self.next_in_order(from) {
            self.step_core(now, Event::Message { from, body }, out);
        }
    }

    fn next_in_order(&mut self, from: NodeId) -> Option<C::Message> {
        let peer = self.peer(from);
        let body = peer.early.remove(&(peer.received + 1))?;
        peer.received += 1;
        Some(body)
    }

    fn tick(&mut self, out: &mut Actions<Self>) {
        let ids: Vec<NodeId> = self.peers.keys().copied().collect();
        for id in ids {
            if !self.resend(id, out) && self.peer(id).owes_acknowledgement {
                self.frame(id, None, out);
            }
        }
        out.set_timer(self.options.tick, ChannelTimer::Tick);
    }

    /// Sends again what has waited too long; whether anything was sent.
    fn resend(&mut self, to: NodeId, out: &mut Actions<Self>) -> bool {
        let options = self.options;
        let peer = self.peer(to);
        if peer.waiting.is_empty() {
            return false;
        }
        peer.ticks += 1;
        if peer.ticks < peer.patience {
            return false;
        }
        peer.patience = (peer.patience * 2).min(options.resend_ticks_max);
        self.send_again(to, out);
        true
    }

    /// Sends the oldest messages that wait.
    fn send_again(&mut self, to: NodeId, out: &mut Actions<Self>) {
        let burst_max = self.options.burst_max;
        let peer = self.peer(to);
        peer.ticks = 0;
        let oldest = peer.oldest();
        let again: Vec<_> = peer.waiting.iter().take(burst_max).cloned().collect();
        for (number, body) in (oldest..).zip(again) {
            self.frame(to, Some((number, body)), out);
        }
    }
}

impl<C: Core> Core for Reliable<C> {
    type Message = Frame<C::Message>;
    type Timer = ChannelTimer<C::Timer>;
    type Request = C::Request;
    type Reply = C::Reply;
    type Record = C::Record;

    fn step(&mut self, now: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        match event {
            Event::Start => {
                if self.options.is_numbered {
                    out.set_timer(self.options.tick, ChannelTimer::Tick);
                }
                self.step_core(now, Event::Start, out);
            }
            Event::Message { from, body } => self.receive(now, from, body, out),
            Event::Timer(ChannelTimer::Tick) => self.tick(out),
            Event::Timer(ChannelTimer::Inner(timer)) => {
                self.step_core(now, Event::Timer(timer), out);
            }
            Event::Request { id, body } => self.step_core(now, Event::Request { id, body }, out),
            Event::Persisted(token) => self.step_core(now, Event::Persisted(token), out),
        }
    }

    fn check(&self) -> Result<(), String> {
        if !self.options.is_numbered && !self.peers.is_empty() {
            return Err(format!(
                "{:?}: a connection of messages without numbers",
                self.me
            ));
        }
        for (id, peer) in &self.peers {
            if peer.waiting.len() as u64 > peer.sent {
                return Err(format!(
                    "{:?}: more waits for {id:?} than was sent",
                    self.me
                ));
            }
            if peer
                .early
                .keys()
                .next()
                .is_some_and(|&first| first <= peer.received)
            {
                return Err(format!(
                    "{:?}: a message of {id:?} would be delivered twice",
                    self.me
                ));
            }
        }
        self.core.check()
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest.number(self.core.digest());
        for (id, peer) in &self.peers {
            digest
                .number(u64::from(id.0))
                .number(peer.sent)
                .number(peer.received);
        }
        digest.value()
    }
}
