//! Runs a protocol core on a thread of its own.
//!
//! The thread hands the core every input, keeps its timers and passes on its messages and records.
//! It never waits for a network or a disk. The core's clock is this process's monotonic clock,
//! which nothing can set.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use manxdb_core::{
    Action, ActionOf, Actions, Core, Event, EventOf, LocalTime, Nanos, NodeId, RequestId, Token,
};

/// Where a core's actions go. Called on the core's thread: it must not wait.
pub trait Outlet<C: Core>: Send {
    /// A message for another node. It may get lost.
    fn send(&mut self, to: NodeId, message: C::Message);

    /// A record for the disk; [`Handle::persisted`] says when it is there.
    fn persist(&mut self, record: C::Record, token: Token);
}

/// The receiver of an answer.
type Then<C> = Box<dyn FnOnce(<C as Core>::Reply) + Send>;

enum Input<C: Core> {
    Event(EventOf<C>),
    Ask(C::Request, Then<C>),
    End,
}

/// The way to a core that runs.
pub struct Handle<C: Core> {
    inbox: Sender<Input<C>>,
}

impl<C: Core> Clone for Handle<C> {
    fn clone(&self) -> Self {
        Self {
            inbox: self.inbox.clone(),
        }
    }
}

impl<C: Core> Handle<C> {
    /// A message arrived.
    pub fn hear(&self, from: NodeId, body: C::Message) {
        self.put(Input::Event(Event::Message { from, body }));
    }

    /// A record, and all before it, are on disk.
    pub fn persisted(&self, token: Token) {
        self.put(Input::Event(Event::Persisted(token)));
    }

    /// Asks the core; the answer comes when it comes, or never when the core ends before.
    pub fn ask(&self, body: C::Request) -> Receiver<C::Reply>
    where
        C::Reply: Send + 'static,
    {
        let (answer, receiver) = channel();
        self.ask_with(body, move |reply| {
            let _ = answer.send(reply); // nobody waits any more
        });
        receiver
    }

    /// Asks the core; `then` gets the answer on the core's thread.
    pub fn ask_with(&self, body: C::Request, then: impl FnOnce(C::Reply) + Send + 'static) {
        self.put(Input::Ask(body, Box::new(then)));
    }

    /// Tells the core something that it does not answer.
    pub fn tell(&self, body: C::Request) {
        self.ask_with(body, |_| {});
    }

    fn put(&self, input: Input<C>) {
        let _ = self.inbox.send(input); // the core has ended: so has whoever would hear
    }
}

/// A core that runs; ends with it.
pub struct Actor<C: Core> {
    handle: Handle<C>,
    thread: Option<JoinHandle<()>>,
}

impl<C> Actor<C>
where
    C: Core + Send + 'static,
    C::Message: Send,
    C::Timer: Send,
    C::Request: Send,
    C::Reply: Send,
    C::Record: Send,
{
    /// Starts a core. `outlet` is made with the way back to it.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start<O: Outlet<C> + 'static>(
        name: &str,
        core: C,
        outlet: impl FnOnce(Handle<C>) -> O,
    ) -> std::io::Result<Self> {
        let (inbox, arrivals) = channel();
        let handle = Handle { inbox };
        let outlet = outlet(handle.clone());
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || Loop::new(core, outlet).run(&arrivals))?;
        Ok(Self {
            handle,
            thread: Some(thread),
        })
    }
}

impl<C: Core> Actor<C> {
    /// The way to it.
    pub fn handle(&self) -> Handle<C> {
        self.handle.clone()
    }
}

impl<C: Core> Drop for Actor<C> {
    fn drop(&mut self) {
        self.handle.put(Input::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // it panicked: there is nobody left to tell
        }
    }
}

struct Loop<C: Core, O> {
    core: C,
    outlet: O,
    began: Instant,
    timers: BTreeMap<(Instant, u64), C::Timer>,
    asked: BTreeMap<RequestId, Then<C>>,
    numbers: u64,
    actions: Actions<C>,
}

/// With no timer set it looks again after this long.
const IDLE: Duration = Duration::from_secs(60);

impl<C: Core, O: Outlet<C>> Loop<C, O> {
    fn new(core: C, outlet: O) -> Self {
        Self {
            core,
            outlet,
            began: Instant::now(),
            timers: BTreeMap::new(),
            asked: BTreeMap::new(),
            numbers: 0,
            actions: Actions::default(),
        }
    }

    fn run(mut self, arrivals: &Receiver<Input<C>>) {
        self.step(Event::Start);
        loop {
            let next = self.timers.keys().next().map(|(at, _)| *at);
            let wait = next.map_or(IDLE, |at| at.saturating_duration_since(Instant::now()));
            match arrivals.recv_timeout(wait) {
                Ok(Input::Event(event)) => self.step(event),
                Ok(Input::Ask(body, then)) => {
                    self.numbers += 1;
                    let id = RequestId(self.numbers);
                    self.asked.insert(id, then);
                    self.step(Event::Request { id, body });
                }
                Ok(Input::End) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.ring();
        }
    }

    fn ring(&mut self) {
        let now = Instant::now();
        while let Some(first) = self.timers.first_entry()
            && first.key().0 <= now
        {
            let timer = first.remove();
            self.step(Event::Timer(timer));
        }
    }

    fn step(&mut self, event: EventOf<C>) {
        // Not zero, so that a clock that has just begun differs from one that has not.
        let passed = self.began.elapsed().as_nanos() + 1;
        let now = LocalTime(u64::try_from(passed).unwrap_or(u64::MAX));
        let mut actions = std::mem::take(&mut self.actions);
        self.core.step(now, event, &mut actions);
        for action in actions.drain() {
            self.act(action);
        }
        self.actions = actions;
    }

    fn act(&mut self, action: ActionOf<C>) {
        match action {
            Action::Send { to, body } => self.outlet.send(to, body),
            Action::Persist { record, token } => self.outlet.persist(record, token),
            Action::SetTimer { after, timer } => {
                self.numbers += 1;
                let at = Instant::now() + duration(after);
                self.timers.insert((at, self.numbers), timer);
            }
            Action::Reply { id, body } => {
                if let Some(then) = self.asked.remove(&id) {
                    then(body);
                }
            }
            Action::Mark { .. } | Action::Wait { .. } => {} // notes about transactions
        }
    }
}

fn duration(span: Nanos) -> Duration {
    Duration::from_nanos(span.0).min(IDLE)
}
