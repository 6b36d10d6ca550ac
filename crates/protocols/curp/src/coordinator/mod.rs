//! The coordinator: decides who is master, backup and witness, and when a view is over.
//!
//! Its decisions are on disk before anybody hears of them. A change of views goes like this:
//!
//! | step | why |
//! |---|---|
//! | a name for the view to come is written down | no name is used twice, whatever fails |
//! | witnesses begin to serve it, beside the old view | a completed operation may be in the old tables alone |
//! | its master brings its backups up to its log (a new master first freezes and replays one old witness) | then old tables are not needed |
//! | the old master's lease is over, if it has another master | or it could answer a read with old values |
//! | the view is written down | from here on the old one is never recovered from |
//! | its master opens; the old tables end | |
//!
//! What fails on the way is tried again under another name.
//!
//! When no process is left that has what was acknowledged in memory, servers that have started again
//! are asked for what their disks have; who may begin again from it, `choice` says.

mod choice;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

use manxdb_core::{Digest, Nanos, NodeId, Token};
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;

use crate::disk::{CurpRecord, Holding};
use crate::ids::{Config, Epoch, Member, View};
use crate::message::{CurpMessage, Shown};
use crate::node::{CurpTimer, Outbox};
use crate::options::{Options, Role};

/// What the coordinator writes down.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CoordinatorRecord {
    /// The newest name given to a view, decided for or not.
    pub reserved: View,
    /// The view that is in use.
    pub config: Option<Config>,
}

#[derive(Debug)]
struct Seen {
    life: u64,
    silent: u64,
    /// Of a server: its log, unless it is master.
    holds: Option<Holding>,
    /// The newest master that it has heard of, or is.
    epoch: Epoch,
}

/// What becomes of the view in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Its master goes on with other backups or witnesses.
    Reconfigure,
    /// One of its backups becomes master; or it is the first one.
    Recover,
    /// All its processes are gone; a server begins again with what its disk has.
    Restore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its name is on the way to disk.
    Naming(Token),
    /// Its members get ready.
    Preparing,
    /// It is on the way to disk.
    Deciding(Token),
}

/// A view that is being tried.
#[derive(Debug)]
struct Attempt {
    new: Config,
    way: Way,
    stage: Stage,
    started: BTreeSet<Member>,
    ready: bool,
}

/// The coordinator.
pub struct Coordinator {
    options: Options,
    /// Makes tokens that nobody can guess.
    secret: u64,
    durable: CoordinatorRecord,
    seen: BTreeMap<NodeId, Seen>,
    attempt: Option<Attempt>,
    /// Spares that have the log of the view in use but for a few entries, as its master says.
    near: Vec<Member>,
    /// Whether the view's members may be in the middle of an attempt that was given up.
    unsettled: bool,
    tokens: u64,
    /// Counts leases; the timer of the last one tells when none holds.
    grants: u64,
    lease_over: bool,
}

impl Coordinator {
    /// With what its disk has, oldest first.
    pub(crate) fn new(options: Options, secret: u64, disk: Vec<CoordinatorRecord>) -> Self {
        let durable = disk.into_iter().next_back().unwrap_or_default();
        Self {
            options,
            secret,
            unsettled: durable.config.is_some(),
            durable,
            seen: BTreeMap::new(),
            attempt: None,
            near: Vec::new(),
            tokens: 0,
            grants: 0,
            lease_over: false,
        }
    }

    /// The view that is in use.
    #[must_use]
    pub fn config(&self) -> Option<&Config> {
        self.durable.config.as_ref()
    }

    pub(crate) fn start(&mut self, out: &mut impl Outbox) {
        // One that starts again has heard nobody, and must not take them for dead before they could speak.
        let first_look = if self.durable.config.is_some() {
            self.options.suspect_after
        } else {
            self.options.heartbeat_every
        };
        out.set_timer(first_look, CurpTimer::Coordinate);
        // An earlier life may have granted a lease just before it ended.
        self.grant(out);
    }

    fn grant(&mut self, out: &mut impl Outbox) {
        self.grants += 1;
        self.lease_over = false;
        assert!(
            self.options.lease > Nanos::ZERO,
            "a lease lasts for a while, here and at the master"
        );
        let lease = self.options.lease;
        let grant = self.grants;
        out.set_timer(lease + Nanos(lease.0 / 4), CurpTimer::LeaseOver(grant));
    }

    fn token(&self, view: View, purpose: u64) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.secret, !self.secret);
        for number in [view.epoch.0, view.wlv.0.into(), purpose] {
            hasher.write(&number.to_le_bytes());
        }
        hasher.finish()
    }

    pub(crate) fn on_timer(&mut self, timer: &CurpTimer, out: &mut impl Outbox) {
        match timer {
            CurpTimer::Coordinate => {
                self.tick(out);
                out.set_timer(self.options.heartbeat_every, CurpTimer::Coordinate);
            }
            CurpTimer::LeaseOver(grant) if *grant == self.grants => {
                self.lease_over = true;
                self.decide_if_ready(out);
            }
            _ => {}
        }
    }

    pub(crate) fn on_message(&mut self, from: NodeId, body: CurpMessage, out: &mut impl Outbox) {
        match body {
            CurpMessage::Locate => {
                let config = self.durable.config.clone();
                out.send(from, CurpMessage::Located(config));
            }
            CurpMessage::Heartbeat {
                number,
                life,
                shown,
            } => {
                let member = Member { node: from, life };
                self.heartbeat(member, number, shown, out);
            }
            CurpMessage::WitnessStarted { life, view } => {
                if let Some(attempt) = &mut self.attempt
                    && attempt.new.view == view
                {
                    attempt.started.insert(Member { node: from, life });
                    self.decide_if_ready(out);
                }
            }
            CurpMessage::Ready { view } => {
                if let Some(attempt) = &mut self.attempt
                    && attempt.new.view == view
                    && attempt.new.master.node == from
                {
                    attempt.ready = true;
                    self.decide_if_ready(out);
                }
            }
            _ => {}
        }
    }

    fn heartbeat(&mut self, member: Member, number: u64, shown: Shown, out: &mut impl Outbox) {
        let Shown {
            serves,
            holds,
            near,
        } = shown;
        let (life, node) = (member.life, member.node);
        let known = self.seen.get(&node);
        if known.is_some_and(|known| life < known.life) {
            return; // of a process that is over
        }
        let own = serves.map_or(Epoch(0), |view| view.epoch);
        let seen = Seen {
            life,
            silent: 0,
            holds,
            epoch: holds.map_or(own, |holds| holds.epoch.max(own)),
        };
        self.seen.insert(node, seen);
        let attempt = self.attempt.as_ref();
        let recovers = attempt.is_some_and(|attempt| attempt.way != Way::Reconfigure);
        let config = self.durable.config.clone();
        let is_master = config
            .as_ref()
            .is_some_and(|config| config.master == member);
        let granted = is_master && !recovers;
        if granted {
            self.grant(out);
            assert!(!self.lease_over, "a lease that is granted is not over");
        }
        let view = config
            .as_ref()
            .map_or_else(View::default, |config| config.view);
        let is_in_use = is_master && serves == Some(view);
        if is_in_use {
            self.near = near;
        }
        // While another view is tried, all stays as it is.
        let followers = (is_in_use && self.attempt.is_none()).then(|| self.followers());
        let lease = CurpMessage::Lease {
            number,
            view,
            granted,
            followers,
        };
        out.send(node, lease);
        if let Some(config) = config.filter(|_| is_master && self.attempt.is_none())
            && serves != Some(config.view)
        {
            out.send(node, CurpMessage::Serve(config));
        }
    }

    fn is_alive(&self, member: Member) -> bool {
        let every = self.options.heartbeat_every.0.max(1);
        let most = self.options.suspect_after.0 / every;
        let seen = self.seen.get(&member.node);
        seen.is_some_and(|seen| seen.life == member.life && seen.silent <= most)
    }

    /// All processes of a role that show that they live.
    fn alive(&self, role: Role) -> impl Iterator<Item = Member> + '_ {
        let members = self.seen.iter().map(|(node, seen)| Member {
            node: *node,
            life: seen.life,
        });
        members
            .filter(move |member| self.options.role(member.node) == role)
            .filter(|member| self.is_alive(*member))
    }

    fn tick(&mut self, out: &mut impl Outbox) {
        for seen in self.seen.values_mut() {
            seen.silent += 1;
        }
        match &self.attempt {
            Some(attempt) if attempt.stage == Stage::Preparing => {
                let new = &attempt.new;
                let mut members = vec![new.master];
                members.extend(new.backups.iter().chain(&new.witnesses));
                let all_live = members.iter().all(|member| self.is_alive(*member));
                let recovers = attempt.way != Way::Reconfigure;
                if all_live && !(recovers && self.must_keep_master()) {
                    self.prepare(out);
                } else {
                    self.attempt = None;
                    self.unsettled = true;
                }
            }
            Some(_) => {} // the disk will answer
            None => self.look_for_trouble(out),
        }
    }

    /// Whether the master that was taken for dead is there, and nobody else can know what it
    /// completed: no witness of its view is left to recover from.
    fn must_keep_master(&self) -> bool {
        if !self.options.durability.trusts_witnesses() {
            return false; // everything that it completed is at each backup
        }
        self.durable.config.as_ref().is_some_and(|old| {
            let mut witnesses = old.witnesses.iter();
            self.is_alive(old.master) && !witnesses.any(|witness| self.is_alive(*witness))
        })
    }

    fn look_for_trouble(&mut self, out: &mut impl Outbox) {
        let trouble = match &self.durable.config {
            None => true,
            Some(config) => {
                let mut members = config.backups.iter().chain(&config.witnesses);
                self.unsettled
                    || !self.is_alive(config.master)
                    || !members.all(|member| self.is_alive(*member))
            }
        };
        if !trouble {
            return;
        }
        let Some((new, way)) = self.next_view() else {
            return; // not enough processes: it waits for them
        };
        assert!(
            new.view > self.durable.reserved,
            "a name for a view is newer than all before it"
        );
        assert!(
            way == Way::Reconfigure || new.view.epoch > self.durable.reserved.epoch,
            "another master has a life of its own"
        );
        self.durable.reserved = new.view;
        let stage = Stage::Naming(self.persist(self.durable.clone(), out));
        self.attempt = Some(Attempt {
            new,
            way,
            stage,
            started: BTreeSet::new(),
            ready: false,
        });
    }

    fn persist(&mut self, record: CoordinatorRecord, out: &mut impl Outbox) -> Token {
        self.tokens += 1;
        let token = Token(self.tokens);
        out.persist(CurpRecord::Coordinator(record), token);
        token
    }

    /// Tells the members of the view to come what they have to do, again until they have.
    fn prepare(&self, out: &mut impl Outbox) {
        let Some(attempt) = &self.attempt else {
            return;
        };
        let new = &attempt.new;
        for witness in &new.witnesses {
            if !attempt.started.contains(witness) {
                let start = CurpMessage::StartWitness {
                    to: witness.life,
                    view: new.view,
                    in_use: self.config().map(|config| config.view),
                    record_token: new.record_token,
                    gc_token: new.gc_token,
                };
                out.send(witness.node, start);
            }
        }
        if attempt.ready {
            return;
        }
        let new = new.clone();
        let order = if attempt.way == Way::Reconfigure {
            CurpMessage::Reconfigure { new }
        } else {
            CurpMessage::Recover {
                old: self.durable.config.clone(),
                new,
                restores: attempt.way == Way::Restore,
            }
        };
        out.send(attempt.new.master.node, order);
    }

    fn decide_if_ready(&mut self, out: &mut impl Outbox) {
        let lease_over = self.lease_over || self.durable.config.is_none();
        let Some(attempt) = &self.attempt else {
            return;
        };
        let mut witnesses = attempt.new.witnesses.iter();
        let ready = attempt.ready
            && attempt.stage == Stage::Preparing
            && witnesses.all(|witness| attempt.started.contains(witness))
            && (lease_over || attempt.way == Way::Reconfigure);
        if !ready {
            return;
        }
        assert_eq!(
            attempt.new.view, self.durable.reserved,
            "what is decided for has the newest name"
        );
        assert!(
            self.durable
                .config
                .as_ref()
                .is_none_or(|old| old.view < attempt.new.view),
            "views go forward"
        );
        let record = CoordinatorRecord {
            reserved: self.durable.reserved,
            config: Some(attempt.new.clone()),
        };
        let token = self.persist(record, out);
        if let Some(attempt) = &mut self.attempt {
            attempt.stage = Stage::Deciding(token);
        }
    }

    pub(crate) fn persisted(&mut self, token: Token, out: &mut impl Outbox) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        match attempt.stage {
            Stage::Naming(awaited) if awaited == token => {
                attempt.stage = Stage::Preparing;
                assert!(!attempt.ready, "nobody is ready before it was asked");
                self.prepare(out);
            }
            Stage::Deciding(awaited) if awaited == token => {
                let new = attempt.new.clone();
                self.attempt = None;
                self.unsettled = false;
                let keep = new.view;
                let master = new.master.node;
                self.durable.config = Some(new.clone());
                out.send(master, CurpMessage::Serve(new));
                for node in self.seen.keys() {
                    if self.options.role(*node) == Role::Witness {
                        out.send(*node, CurpMessage::EndWitness { keep });
                    }
                }
            }
            _ => {}
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(config) = &self.durable.config {
            if config.view > self.durable.reserved {
                return Err("a view without a name".to_owned());
            }
            let faults = self.options.faults;
            if config.backups.len() != faults || config.witnesses.len() != faults {
                return Err("a view that does not survive what it should".to_owned());
            }
            if config.backups.contains(&config.master) {
                return Err("a master that is its own backup".to_owned());
            }
        }
        let attempt = self.attempt.as_ref();
        if attempt.is_some_and(|attempt| attempt.new.view != self.durable.reserved) {
            return Err("an attempt under a name that is not its own".to_owned());
        }
        Ok(())
    }

    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest
            .number(self.durable.reserved.epoch.0)
            .number(self.durable.reserved.wlv.0.into())
            .number(self.grants);
        digest.value()
    }
}
