//! All that is at one moment, and what may happen next.

use std::sync::Arc;

use manxdb_fabric::Operation;
use manxdb_rsi::{Head, Stamp, ThreadId};
use stateright::{Model, Property};

use crate::model::case::{Case, RECORDS};
use crate::model::client::{Client, Doing};
use crate::model::memory::{Memory, Piece};
use crate::model::properties;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub memory: Memory,
    /// Those who run transactions, then those who go on for the dead.
    pub clients: Vec<Arc<Client>>,
    /// The versions of each record, in the order in which its head named them.
    pub versions: [Vec<Stamp>; RECORDS],
    /// Whether somebody wrote a record that was not his to write.
    pub has_trespassed: bool,
    /// Deaths so far.
    pub deaths: usize,
}

/// What may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A piece of a client's writes or swaps lands. Those of these clients (bits) that are
    /// reading there have copied it before.
    Lands {
        client: usize,
        piece: Piece,
        after: u8,
    },
    /// All that a client reads and has not copied yet is copied now, and it goes on.
    Reads(usize),
    /// A client is shut out: nothing lands of what it has under way. As it may have stood still
    /// for any time before, it may have been dead or only slow. Somebody goes on for it.
    Dies(usize),
}

impl Model for Case {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let all = self.clients.len() + self.deaths;
        let mut clients: Vec<Client> = (0..all).map(|number| Client::new(self, number)).collect();
        for client in clients.iter_mut().take(self.clients.len()) {
            client.start(self);
        }
        vec![State {
            memory: self.memory(),
            clients: clients.into_iter().map(Arc::new).collect(),
            versions: [vec![self.first()], vec![self.first()]],
            has_trespassed: false,
            deaths: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for client in &state.clients {
            if let Some(batch) = &client.batch {
                if batch.is_read() {
                    actions.push(Action::Reads(client.number));
                } else {
                    let pieces = batch.pieces.iter();
                    let pieces = pieces.filter(|piece| batch.may_land(piece, self.keeps_order));
                    pieces.for_each(|piece| state.landings(client.number, *piece, actions));
                }
            }
            if state.may_die(self, client) {
                actions.push(Action::Dies(client.number));
            }
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Lands {
                client,
                piece,
                after,
            } => next.land(self, client, piece, after),
            Action::Reads(client) => {
                let outcomes = state.clients[client].batch.clone()?.end(&state.memory);
                if !next.client(client).hear(self, outcomes) {
                    return None; // it would ask for ever, and goes on when there is something else
                }
            }
            Action::Dies(client) => next.die(self, client),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

impl State {
    /// A piece lands, before or after those who are reading there copy it. It makes no difference
    /// to them when it changes nothing.
    fn landings(&self, client: usize, piece: Piece, actions: &mut Vec<Action>) {
        let batch = self.clients[client].batch.as_ref().unwrap();
        let (written, _) = batch.effect(&self.memory, &piece);
        let changes = self.memory.0[piece.from..piece.to] != written;
        let mut choices = vec![0];
        for reader in &self.clients {
            if changes && reader.number != client && reader.is_reading(&piece) {
                let with = choices.iter().map(|bits| bits | 1 << reader.number);
                choices.extend(with.collect::<Vec<_>>());
            }
        }
        actions.extend(choices.into_iter().map(|after| Action::Lands {
            client,
            piece,
            after,
        }));
    }

    fn land(&mut self, case: &Case, client: usize, piece: Piece, after: u8) {
        for reader in &mut self.clients {
            if after >> reader.number & 1 == 1 {
                Arc::make_mut(reader).copy(&self.memory, &piece);
            }
        }
        self.has_trespassed |= self.is_trespass(case, client, &piece);
        let writer = Arc::make_mut(&mut self.clients[client]);
        let batch = writer.batch.as_mut().unwrap();
        let (written, outcome) = batch.effect(&self.memory, &piece);
        self.memory.0[piece.from..piece.to].copy_from_slice(&written);
        batch.outcomes[piece.operation] = outcome;
        batch.pieces.retain(|other| *other != piece);
        if batch.pieces.is_empty() {
            let outcomes = batch.outcomes.clone();
            writer.hear(case, outcomes);
        }
        self.note_versions(case);
    }

    fn client(&mut self, number: usize) -> &mut Client {
        Arc::make_mut(&mut self.clients[number])
    }

    /// Whether a piece changes a record whose lock its client has not, nor anybody for whom it
    /// goes on (I2). Locks are taken by swaps, and let go of by swaps for the dead.
    fn is_trespass(&self, case: &Case, client: usize, piece: &Piece) -> bool {
        let client = &self.clients[client];
        let batch = client.batch.as_ref().unwrap();
        let (written, _) = batch.effect(&self.memory, piece);
        if self.memory.0[piece.from..piece.to] == written {
            return false;
        }
        let mut records = (0..RECORDS).map(|record| case.record(record).offset / 8);
        let words = case.layout().bytes() as u64 / 8;
        let Some(record) =
            records.position(|from| (from..from + words).contains(&(piece.from as u64)))
        else {
            return false;
        };
        let is_swap = matches!(
            batch.operations[piece.operation],
            Operation::CompareSwap { .. }
        );
        match self.head(case, record) {
            Head::Free(_) => !is_swap,
            Head::Locked(holder) => {
                let is_own = holder.thread == Case::thread(client.number);
                let is_nobodys = is_swap && self.published(case).admits(holder);
                !is_own && !is_nobodys && Some(holder.thread) != client.dead
            }
        }
    }

    pub fn head(&self, case: &Case, record: usize) -> Head {
        Head::of_word(self.memory.word(case.record(record).offset))
    }

    fn note_versions(&mut self, case: &Case) {
        for record in 0..RECORDS {
            if let Head::Free(stamp) = self.head(case, record)
                && self.versions[record].last() != Some(&stamp)
            {
                self.versions[record].push(stamp);
            }
        }
    }

    fn may_die(&self, case: &Case, client: &Client) -> bool {
        let is_mortal = case.mortals.contains(&client.number) || client.dead.is_some();
        is_mortal && !client.is_over() && self.deaths < case.deaths
    }

    fn die(&mut self, case: &Case, client: usize) {
        let dead = self.client(client);
        let thread: ThreadId = dead.dead.unwrap_or(Case::thread(client));
        dead.shut_out();
        let successor = case.clients.len() + self.deaths;
        self.deaths += 1;
        self.client(successor).succeed(case, thread);
    }

    /// Whether nothing more will happen, but for deaths.
    pub fn is_over(&self) -> bool {
        self.clients.iter().all(|client| client.is_over())
    }
}

impl Client {
    fn is_reading(&self, piece: &Piece) -> bool {
        let batch = self.batch.as_ref().filter(|batch| batch.is_read());
        batch.is_some_and(|batch| batch.pieces.iter().any(|own| own.meets(piece)))
    }

    /// Copies what is about to be written.
    fn copy(&mut self, memory: &Memory, piece: &Piece) {
        if let Some(batch) = &mut self.batch {
            let pieces = std::mem::take(&mut batch.pieces).into_iter();
            let (copied, left): (Vec<Piece>, Vec<Piece>) = pieces.partition(|own| own.meets(piece));
            batch.pieces = left;
            for own in &copied {
                batch.copy(memory, own);
            }
        }
    }

    /// Whether it reads a record a second time because of what it found there.
    pub fn reads_again(&self) -> bool {
        let is_again = self
            .batch
            .as_ref()
            .is_some_and(|batch| batch.former.is_some());
        is_again && matches!(self.doing, Doing::Reading(..))
    }
}

impl Piece {
    fn meets(&self, other: &Self) -> bool {
        self.from < other.to && other.from < self.to
    }
}
