//! A control plane as one of several, of which one is the leader.
//!
//! A contender polls the store for the leadership. As the leader it has a [`Control`] over the
//! store's state until its lease ends; at the next election it builds a new one. A contender that
//! is not the leader answers every message with [`Message::NotLeader`] and drops it.
//!
//! Each record goes to the store with the leader's term, and messages wait until their records are
//! stored ([`crate::control`]), so a contender sends nothing that the store has not accepted from
//! this term. Messages without a record (a renewed lease, an answered beat) are valid as of the
//! start of the step: the lease was valid then, so no other contender could lead.

mod leader;

use std::collections::BTreeMap;

use manxdb_core::check::ensure;
use manxdb_core::{
    Action, Actions, Core, Digest, Event, EventOf, LocalTime, Nanos, NodeId, Random, RequestId,
    Token, Weight,
};

use self::leader::{Leader, write};
use crate::control::{Control, Report, Tick};
use crate::election::{FromStore, Lease, Standing, Term, ToStore, Why};
use crate::message::Message;
use crate::options::Options;
use crate::record::Durable;

/// Messages that a control plane sends and receives.
#[derive(Debug, Clone)]
pub enum Word {
    /// To and from databases and workers.
    Pool(Message),
    /// To its store.
    ToStore(ToStore),
    /// From there.
    FromStore(FromStore),
}

impl manxdb_core::Message for Word {
    fn weight(&self) -> Weight {
        match self {
            Self::Pool(message) => message.weight(),
            Self::ToStore(_) | Self::FromStore(_) => Weight::Call { pieces: 1 },
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Pool(message) => message.label(),
            Self::ToStore(ToStore::Campaign { .. }) => "campaign",
            Self::ToStore(ToStore::Renew { .. }) => "renew",
            Self::ToStore(ToStore::Write { .. }) => "write",
            Self::ToStore(ToStore::Resign { .. }) => "resign",
            Self::FromStore(FromStore::Elected { .. }) => "elected",
            Self::FromStore(FromStore::Taken { .. }) => "taken",
            Self::FromStore(FromStore::Renewed { .. }) => "renewed",
            Self::FromStore(FromStore::Written { .. }) => "written",
            Self::FromStore(FromStore::Deposed { .. }) => "deposed",
        }
    }
}

/// Requests of operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaneAsk {
    /// The state of the pool?
    Report,
    /// Which control plane leads?
    Standing,
    /// Shut down: give the leadership back. Answered with a [`Standing`].
    End,
}

/// Answers to operators.
#[derive(Debug, Clone)]
pub enum PlaneAnswer {
    /// The state of the pool.
    Report(Box<Report>),
    /// Which control plane leads.
    Standing(Standing),
}

/// What its timers are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// To ask the store again.
    Again,
    /// Of the control plane of this term.
    Ticks(Term),
}

/// Records that the store did not take are sent again after this long.
const RETRY: Nanos = Nanos::from_secs(1);

/// Campaigns and renewals whose answers may still arrive.
const SENT_MAX: usize = 64;

/// One of several control planes, or the only one.
#[derive(Debug)]
pub struct Contender {
    options: Options,
    /// `None`: it is the only control plane and leads for ever.
    lease: Option<Lease>,
    name: String,
    store: NodeId,
    random: Random,
    state: State,
    numbers: u64,
    /// When campaigns and renewals were asked for.
    sent: BTreeMap<u64, LocalTime>,
    ends: bool,
}

#[derive(Debug)]
enum State {
    /// Another control plane leads, by this name; the name is empty when there is no known leader.
    Follows(String),
    Leads(Box<Leader>),
}

impl Contender {
    /// The only control plane over a store: it leads from the start with the store's state. `seed`
    /// makes the tokens of attempts and must differ between starts.
    #[must_use]
    pub fn sole(options: Options, store: NodeId, seed: u64, durable: Durable) -> Self {
        let mut only = Self::one_of(options, None, String::new(), store, seed);
        let control = Control::new(options, only.random.next_bits(), durable);
        let leader = Leader::new(Term::default(), None, control);
        only.state = State::Leads(Box::new(leader));
        only
    }

    /// One of several, called `name`; none leads before the store says so.
    #[must_use]
    pub fn several(options: Options, lease: Lease, name: String, store: NodeId, seed: u64) -> Self {
        Self::one_of(options, Some(lease), name, store, seed)
    }

    fn one_of(
        options: Options,
        lease: Option<Lease>,
        name: String,
        store: NodeId,
        seed: u64,
    ) -> Self {
        Self {
            options,
            lease,
            name,
            store,
            random: Random::new(seed),
            state: State::Follows(String::new()),
            numbers: 0,
            sent: BTreeMap::new(),
            ends: false,
        }
    }

    /// The leader, as far as this control plane knows.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match &self.state {
            State::Follows(leader) => Standing {
                leader: leader.clone(),
                ..Standing::default()
            },
            State::Leads(leader) => Standing {
                leads: true,
                term: leader.term,
                leader: self.name.clone(),
            },
        }
    }

    /// The state of the pool; a control plane that does not lead knows nothing of the pool.
    #[must_use]
    pub fn report(&self) -> Report {
        let report = match &self.state {
            State::Leads(leader) => leader.control.report(),
            State::Follows(_) => Report::default(),
        };
        Report {
            standing: self.standing(),
            ..report
        }
    }

    /// Stops serving when the lease is over. Before anything else in each step: a process that
    /// stood still finds out before it says anything.
    fn look_at_the_clock(&mut self, now: LocalTime, out: &mut Actions<Self>) {
        #[cfg(feature = "mutants")]
        if self.options.mutant == Some(crate::mutants::Mutant::ServesPastItsLease) {
            return;
        }
        let State::Leads(leader) = &self.state else {
            return;
        };
        if leader.until.is_some_and(|until| until <= now) {
            self.step_down(Why::LeaseOver, out);
        }
    }

    fn step_down(&mut self, why: Why, out: &mut Actions<Self>) {
        let follows = State::Follows(String::new());
        let State::Leads(leader) = std::mem::replace(&mut self.state, follows) else {
            return;
        };
        for peer in leader.control.peers() {
            self.say_not_leader(peer, out);
        }
        self.sent.clear();
        let term = leader.term;
        self.ask(ToStore::Resign { term, why }, out);
    }

    fn say_not_leader(&self, to: NodeId, out: &mut Actions<Self>) {
        let leader = self.standing().leader;
        out.send(to, Word::Pool(Message::NotLeader { leader }));
    }

    fn ask(&self, word: ToStore, out: &mut Actions<Self>) {
        out.send(self.store, Word::ToStore(word));
    }

    /// Sends at regular intervals what the store has not acknowledged.
    fn again(&mut self, now: LocalTime, out: &mut Actions<Self>) {
        out.set_timer(self.lease.map_or(RETRY, |lease| lease.every), When::Again);
        if self.ends {
            return;
        }
        if let State::Leads(leader) = &mut self.state
            && !leader.unwritten.is_empty()
            && now.since(leader.tried) >= RETRY
        {
            leader.tried = now;
            let words = write(leader, 0);
            self.ask(words, out);
        }
        if self.lease.is_some() {
            self.ask_to_lead(now, out);
        }
    }

    fn ask_to_lead(&mut self, now: LocalTime, out: &mut Actions<Self>) {
        self.numbers += 1;
        let number = self.numbers;
        self.sent.insert(number, now);
        while self.sent.len() > SENT_MAX {
            self.sent.pop_first();
        }
        let word = match &self.state {
            State::Follows(_) => ToStore::Campaign { number },
            State::Leads(leader) => ToStore::Renew {
                number,
                term: leader.term,
            },
        };
        self.ask(word, out);
    }

    fn hear_store(&mut self, now: LocalTime, word: FromStore, out: &mut Actions<Self>) {
        match word {
            FromStore::Elected {
                number,
                term,
                durable,
            } => self.elected(now, number, term, &durable, out),
            FromStore::Taken { number, leader } => {
                if self.sent.remove(&number).is_some()
                    && let State::Follows(known) = &mut self.state
                {
                    *known = leader;
                }
            }
            FromStore::Renewed { number, term } => self.renewed(number, term),
            FromStore::Written { term, through } => self.written(now, term, through, out),
            FromStore::Deposed { term } => {
                if self.leads_in(term).is_some() {
                    self.step_down(Why::Deposed, out);
                }
            }
        }
    }

    fn leads_in(&mut self, term: Term) -> Option<&mut Leader> {
        match &mut self.state {
            State::Leads(leader) if leader.term == term => Some(leader),
            State::Leads(_) | State::Follows(_) => None,
        }
    }

    fn elected(
        &mut self,
        now: LocalTime,
        number: u64,
        term: Term,
        durable: &Durable,
        out: &mut Actions<Self>,
    ) {
        let asked = self.sent.remove(&number);
        let until = asked.zip(self.lease).map(|(at, lease)| at + lease.serves());
        let is_late = until.is_none_or(|until| until <= now) || self.ends;
        if is_late || matches!(self.state, State::Leads(_)) {
            if self.leads_in(term).is_none() {
                let why = Why::Late;
                self.ask(ToStore::Resign { term, why }, out);
            }
            return;
        }
        let control = Control::new(self.options, self.random.next_bits(), durable.clone());
        self.state = State::Leads(Box::new(Leader::new(term, until, control)));
        self.sent.clear();
        self.step_control(now, Event::Start, out);
    }

    /// The lease counts from when it was asked for: the store cannot have begun it earlier.
    fn renewed(&mut self, number: u64, term: Term) {
        let Some((at, lease)) = self.sent.remove(&number).zip(self.lease) else {
            return;
        };
        if let Some(leader) = self.leads_in(term) {
            leader.until = leader.until.max(Some(at + lease.serves()));
        }
    }

    fn written(&mut self, now: LocalTime, term: Term, through: u64, out: &mut Actions<Self>) {
        let Some(leader) = self.leads_in(term) else {
            return;
        };
        let new = (through + 1).saturating_sub(leader.first);
        let new = usize::try_from(new).unwrap_or(usize::MAX);
        if new == 0 || new > leader.unwritten.len() {
            return; // known, or of records that nobody sent
        }
        leader.unwritten.drain(..new);
        leader.first = through + 1;
        self.step_control(now, Event::Persisted(Token(through)), out);
    }

    /// Steps the control plane of this term, if it leads.
    fn step_control(&mut self, now: LocalTime, event: EventOf<Control>, out: &mut Actions<Self>) {
        let State::Leads(leader) = &mut self.state else {
            return;
        };
        let mut own = Actions::<Control>::default();
        leader.control.step(now, event, &mut own);
        out.work(own.take_work());
        let known = leader.unwritten.len();
        for action in own.drain() {
            match action {
                Action::Send { to, body } => out.send(to, Word::Pool(body)),
                Action::SetTimer { after, timer: Tick } => {
                    out.set_timer(after, When::Ticks(leader.term));
                }
                // Tokens count the records of a control plane from 1, as the store does.
                Action::Persist { record, token } => {
                    assert_eq!(
                        token.0,
                        leader.first + leader.unwritten.len() as u64,
                        "a record has one number at the store and here"
                    );
                    leader.unwritten.push_back(record);
                }
                // No action of the inner core asks for these: only the contender answers requests.
                Action::Reply { .. } | Action::Mark { .. } | Action::Wait { .. } => {}
            }
        }
        if leader.unwritten.len() > known {
            leader.tried = now;
            let words = write(leader, known);
            self.ask(words, out);
        }
    }

    fn answer(&mut self, id: RequestId, ask: PlaneAsk, out: &mut Actions<Self>) {
        match ask {
            PlaneAsk::Report => out.reply(id, PlaneAnswer::Report(Box::new(self.report()))),
            PlaneAsk::Standing => out.reply(id, PlaneAnswer::Standing(self.standing())),
            PlaneAsk::End => {
                if self.lease.is_some() {
                    self.ends = true;
                    self.step_down(Why::Ends, out);
                }
                out.reply(id, PlaneAnswer::Standing(self.standing()));
            }
        }
    }
}

impl Core for Contender {
    type Message = Word;
    type Timer = When;
    type Request = PlaneAsk;
    type Reply = PlaneAnswer;
    /// Nothing is written here: records go to the store.
    type Record = ();

    fn step(&mut self, now: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        self.look_at_the_clock(now, out);
        match event {
            Event::Start => {
                self.step_control(now, Event::Start, out);
                self.again(now, out);
            }
            Event::Message { from, body } => match body {
                Word::FromStore(word) if from == self.store => self.hear_store(now, word, out),
                Word::Pool(body) => match &self.state {
                    State::Leads(_) => self.step_control(now, Event::Message { from, body }, out),
                    State::Follows(_) => self.say_not_leader(from, out),
                },
                Word::FromStore(_) | Word::ToStore(_) => {} // nobody else says this
            },
            Event::Timer(When::Again) => self.again(now, out),
            Event::Timer(When::Ticks(term)) => {
                if self.leads_in(term).is_some() {
                    self.step_control(now, Event::Timer(Tick), out);
                }
            }
            Event::Request { id, body } => self.answer(id, body, out),
            Event::Persisted(_) => {}
        }
    }

    fn check(&self) -> Result<(), String> {
        ensure(self.sent.len() <= SENT_MAX, || {
            format!("{} questions to the store are kept", self.sent.len())
        })?;
        let last = self.sent.keys().next_back();
        ensure(last.is_none_or(|last| *last <= self.numbers), || {
            format!("question {last:?} was not asked yet")
        })?;
        let is_renewed =
            |lease: Lease| lease.every < lease.serves() && lease.serves() <= lease.span;
        ensure(self.lease.is_none_or(is_renewed), || {
            format!("a lease is renewed before it ends: {:?}", self.lease)
        })?;
        let leads = matches!(self.state, State::Leads(_));
        ensure(self.lease.is_some() || leads, || {
            "the only control plane leads for ever".to_owned()
        })?;
        ensure(self.lease.is_some() || self.sent.is_empty(), || {
            "the only control plane asks for no leadership".to_owned()
        })?;
        let State::Leads(leader) = &self.state else {
            return Ok(());
        };
        ensure(leader.until.is_some() == self.lease.is_some(), || {
            format!(
                "term {} has a lease where there is none, or none",
                leader.term.0
            )
        })?;
        ensure(!self.ends, || {
            format!("term {} goes on, and it ends", leader.term.0)
        })?;
        leader.check()
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        if let State::Leads(leader) = &self.state {
            digest.number(leader.term.0).number(leader.first);
            digest.number(leader.control.digest());
        }
        digest.value()
    }
}
