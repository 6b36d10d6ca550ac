//! Clients that follow answers from group to group, and drivers that move slots to and fro.

use std::collections::BTreeMap;

use manxdb_checker::linear::check;
use manxdb_core::{Nanos, NodeId, RequestId};
use manxdb_curp::ClientAnswer;
use manxdb_curp::slots::{
    Canceller, Group, Migration, Misplaced, Mover, PieceLimits, Side, SlotAnswer, SlotOperation,
    SlotRange, SlotRefusal,
};
use manxdb_sim::{Driver, Outside, SimTime};

use super::drive::Drive;
use super::machine::{Groups, PLANTED};
use super::{MOVERS, Moving};
use crate::common::machine::{Answer, Call, Command, OneKey, bytes, operations};

/// Configurations that the checker looks at for one key.
const STEPS_MAX: u64 = 3_000_000;
/// The keys of wake-ups that are no client's.
const SETTLE: u64 = u64::MAX;

/// Who waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asker {
    /// A client, with a call.
    Client { client: u32, call: usize },
    /// A driver of moves.
    Mover(usize),
    /// Nobody: it was asked to see whether it does harm.
    Nobody,
    /// The first steps, before anything fails.
    Setup,
}

/// A driver of moves: the groups of its move, and where it is.
struct Driving {
    mover: Option<(Drive, usize, usize)>,
    /// A move that stands still, and is to be gone on with or to be cancelled.
    left: Option<(Migration, bool)>,
    waits: bool,
}

pub struct Load {
    setting: Moving,
    pub calls: Vec<Call>,
    /// Calls that were answered without an effect.
    refused: Vec<bool>,
    open: BTreeMap<RequestId, (Asker, NodeId)>,
    /// Calls that are to be asked again, by the client.
    again: BTreeMap<u32, (usize, usize)>,
    movers: Vec<Driving>,
    setup: Vec<(usize, Vec<u8>)>,
    finals: Option<u8>,
    pushed: u64,
    pub moves: usize,
    pub cancelled: usize,
    pub followed: usize,
}

fn group(number: usize) -> Group {
    Group::new(&number.to_string()).unwrap()
}

fn number(group: &Group) -> usize {
    group.name().parse().unwrap()
}

impl Load {
    pub fn new(setting: Moving) -> Self {
        let mut setup = Vec::new();
        if let Some(mutant) = setting.mutant {
            let plant = bytes(&Command::Set(PLANTED, mutant));
            setup.extend([(0, plant.clone()), (1, plant)]);
        }
        let (slots, to) = (SlotRange::ALL, group(0));
        setup.push((1, SlotOperation::Disown { slots, to }.encode()));
        setup.reverse();
        Self {
            setting,
            calls: Vec::new(),
            refused: Vec::new(),
            open: BTreeMap::new(),
            again: BTreeMap::new(),
            movers: (0..MOVERS)
                .map(|_| Driving {
                    mover: None,
                    left: None,
                    waits: false,
                })
                .collect(),
            setup,
            finals: None,
            pushed: 0,
            moves: 0,
            cancelled: 0,
            followed: 0,
        }
    }

    pub fn is_done(&self) -> bool {
        self.finals == Some(self.setting.keys) && self.open.is_empty() && self.again.is_empty()
    }

    pub fn open(&self) -> usize {
        self.open.len() + self.again.len()
    }

    /// The node of a client, or behind all clients of a mover, in a group.
    fn node(&self, group: usize, client: u32) -> NodeId {
        let group = u32::try_from(group).unwrap();
        NodeId(group * self.setting.nodes_of_one() + Moving::first_client() + client)
    }

    fn request(
        &mut self,
        outside: &mut Outside<'_, Groups>,
        asker: Asker,
        (group, client): (usize, u32),
        body: Vec<u8>,
    ) {
        let node = self.node(group, client);
        let request = outside.request(node, body);
        self.open.insert(request, (asker, node));
    }

    fn set_up(&mut self, outside: &mut Outside<'_, Groups>) {
        if let Some((group, body)) = self.setup.last().cloned() {
            self.request(outside, Asker::Setup, (group, 0), body);
            return;
        }
        for client in 0..self.setting.clients {
            outside.wake_at(outside.now(), client.into());
        }
        for mover in 0..MOVERS {
            outside.wake_at(outside.now(), mover_key(mover));
        }
    }

    fn command(&mut self, outside: &mut Outside<'_, Groups>) -> Command {
        let keys = u64::from(self.setting.keys);
        let mut below = |bound: u64| u8::try_from(outside.random().below(bound)).unwrap();
        let key = below(keys);
        match (key % 4, below(20)) {
            (_, 0..=3) => Command::Get(key),
            (0, 4..=6) => Command::Set(key, i64::from(below(100))),
            (0, 7) => Command::Del(key),
            (1, _) => {
                self.pushed += 1;
                Command::Push(key, self.pushed)
            }
            (2, 4..=6) => Command::Script(2, 3),
            (2 | 3, 7..=8) => Command::IncrAll(vec![2, 6]),
            (2 | 3, 9) => Command::IncrAll(vec![3, 5]),
            _ => Command::Incr(key),
        }
    }

    /// Asks, in a group that may be the wrong one.
    fn ask(&mut self, outside: &mut Outside<'_, Groups>, client: u32, command: Command) {
        self.calls.push(Call {
            client,
            command,
            invoked: outside.now().0,
            answered: None,
        });
        self.refused.push(false);
        let first = usize::try_from(outside.random().below(2)).unwrap();
        self.ask_group(outside, client, self.calls.len() - 1, first);
    }

    fn ask_group(
        &mut self,
        outside: &mut Outside<'_, Groups>,
        client: u32,
        call: usize,
        group: usize,
    ) {
        if !outside.is_up(self.node(group, client)) {
            self.ask_later(outside, client, call, group);
            return;
        }
        let body = bytes(&self.calls[call].command);
        let asker = Asker::Client { client, call };
        self.request(outside, asker, (group, client), body);
    }

    fn ask_later(
        &mut self,
        outside: &mut Outside<'_, Groups>,
        client: u32,
        call: usize,
        group: usize,
    ) {
        self.again.insert(client, (call, group));
        outside.wake_at(outside.now() + Nanos::from_millis(2), client.into());
    }

    fn client_answered(
        &mut self,
        outside: &mut Outside<'_, Groups>,
        (client, call): (u32, usize),
        group: usize,
        answer: Option<Vec<u8>>,
    ) {
        if let Some(answer) = answer {
            match Misplaced::decode(&answer) {
                Some(Misplaced::Moved { to, .. }) => {
                    self.followed += 1;
                    return self.ask_group(outside, client, call, number(&to));
                }
                Some(Misplaced::TryAgain) => {
                    return self.ask_later(outside, client, call, group);
                }
                Some(Misplaced::CrossSlot) => self.refused[call] = true,
                None => {
                    let answer: Answer = postcard::from_bytes(&answer).unwrap();
                    self.calls[call].answered = Some((outside.now().0, answer));
                }
            }
        }
        let think = outside.random().below(2 * self.setting.think.0 + 1);
        outside.wake_at(outside.now() + Nanos(think), client.into());
    }

    fn wake_client(&mut self, outside: &mut Outside<'_, Groups>, client: u32) {
        if let Some((call, group)) = self.again.remove(&client) {
            return self.ask_group(outside, client, call, group);
        }
        let is_waiting = |(asker, _): &(Asker, NodeId)| matches!(asker, Asker::Client { client: other, .. } if *other == client);
        let is_busy = self.open.values().any(is_waiting);
        if outside.now() < self.setting.until && !is_busy {
            let command = self.command(outside);
            self.ask(outside, client, command);
        }
    }

    /// Begins a move, or goes on with one.
    fn drive(&mut self, outside: &mut Outside<'_, Groups>, place: usize) {
        if self.movers[place].waits {
            return;
        }
        if self.movers[place].mover.is_none() {
            let (slots, from, to, cancels) = match self.movers[place].left.take() {
                Some((left, cancels)) => {
                    (left.slots, number(&left.from), number(&left.to), cancels)
                }
                None => {
                    let runs = ["0-8191", "8192-16383", "4000-12400", "0-16383"];
                    let run = usize::try_from(outside.random().below(4)).unwrap();
                    let from = usize::try_from(outside.random().below(2)).unwrap();
                    (runs[run].parse().unwrap(), from, 1 - from, false)
                }
            };
            let limits = PieceLimits { keys: 2, bytes: 64 };
            let (source, target) = (group(from), group(to));
            let drive = if cancels {
                // Now and then the target is left as it is for now.
                let asks = outside.random().below(4) > 0;
                let target = asks.then_some(target);
                Drive::Cancel(Canceller::new(slots, source, target, limits), asks)
            } else {
                Drive::Move(Mover::new(slots, source, target, limits))
            };
            self.movers[place].mover = Some((drive, from, to));
        }
        let Some((mover, from, to)) = &self.movers[place].mover else {
            return;
        };
        if let Some((side, operation)) = mover.question() {
            let target = if side == Side::Source { *from } else { *to };
            let client = self.setting.clients + u32::try_from(place).unwrap();
            // By another driver, which does not look at what the groups have.
            let hasty = match &operation {
                // Who asks for it before it is released has no answer that allows it: a defect too.
                SlotOperation::Put { migration, .. } if self.setting.owns_early() => {
                    Some((target, SlotOperation::Own(migration.clone())))
                }
                SlotOperation::Put { migration, .. } if outside.random().below(12) == 0 => {
                    Some((*from, SlotOperation::Cancel(migration.clone())))
                }
                SlotOperation::Own(migration) if outside.random().below(3) == 0 => {
                    Some((*from, SlotOperation::Cancel(migration.clone())))
                }
                _ => None,
            };
            if !outside.is_up(self.node(target, client)) {
                outside.wake_at(outside.now() + Nanos::from_millis(5), mover_key(place));
                return;
            }
            self.movers[place].waits = true;
            self.request(
                outside,
                Asker::Mover(place),
                (target, client),
                operation.encode(),
            );
            if let Some((group, step)) = hasty
                && outside.is_up(self.node(group, client))
            {
                self.request(outside, Asker::Nobody, (group, client), step.encode());
            }
        }
    }

    fn mover_answered(
        &mut self,
        outside: &mut Outside<'_, Groups>,
        place: usize,
        answer: Option<Vec<u8>>,
    ) {
        self.movers[place].waits = false;
        let Some((mover, ..)) = &mut self.movers[place].mover else {
            return;
        };
        match answer.and_then(|answer| SlotAnswer::decode(&answer)) {
            Some(answer) => mover.answered(answer),
            None => mover.again(),
        }
        let Some(outcome) = mover.outcome().cloned() else {
            return self.drive(outside, place);
        };
        let Some(ended) = self.movers[place].mover.take() else {
            return;
        };
        let (drive, from, to) = ended;
        match (outcome, drive) {
            (Ok(()), Drive::Move(_)) => self.moves += 1,
            (Ok(()), Drive::Cancel(canceller, asks)) if !asks || canceller.has_cancelled() => {
                self.cancelled += usize::from(canceller.has_cancelled());
                // Asked again, with the target this time or later, until nothing is left of it.
                self.movers[place].left = Some((named(canceller.slots(), from, to), true));
            }
            (Err(SlotRefusal::Busy(migration)), _) => {
                let cancels = outside.random().below(3) == 0;
                self.movers[place].left = Some((migration, cancels));
            }
            // Its target has something of it still.
            (Err(SlotRefusal::Cancelled), Drive::Move(mover)) => {
                self.movers[place].left = Some((named(mover.slots(), from, to), true));
            }
            (Ok(()), Drive::Cancel(..)) | (Err(_), _) => {}
        }
        let think = Nanos(outside.random().below(2 * self.setting.rests.0 + 1));
        if self.movers[place].left.is_some() || outside.now() < self.setting.until {
            outside.wake_at(outside.now() + think, mover_key(place));
        }
    }

    /// The last reads, one after the other, once all else has ended.
    fn settle(&mut self, outside: &mut Outside<'_, Groups>) {
        if self.finals != Some(self.setting.keys) {
            outside.wake_at(outside.now() + Nanos::from_millis(5), SETTLE);
        }
        let moves = self
            .movers
            .iter()
            .any(|one| one.mover.is_some() || one.left.is_some());
        if self.open() > 0 || moves {
            return;
        }
        let next = self.finals.unwrap_or(0);
        if next < self.setting.keys {
            self.finals = Some(next + 1);
            self.ask(outside, 0, Command::Get(next));
        }
    }

    pub fn judge(&self) -> Result<(), String> {
        let named = self.calls.iter().enumerate();
        let effective = named.filter(|(name, _)| !self.refused[*name]);
        let history: Vec<_> = effective
            .flat_map(|(name, call)| operations(name as u64, call))
            .collect();
        let verdict = check(&OneKey, &history, STEPS_MAX);
        verdict
            .is_linearizable()
            .then_some(())
            .ok_or_else(|| verdict.to_string())
    }
}

/// A move of these slots, whatever its number is.
fn named(slots: SlotRange, from: usize, to: usize) -> Migration {
    Migration {
        number: 1,
        slots,
        from: group(from),
        to: group(to),
    }
}

fn mover_key(place: usize) -> u64 {
    (1 << 40) + place as u64
}

impl Driver<Groups> for Load {
    fn begin(&mut self, outside: &mut Outside<'_, Groups>) {
        outside.wake_at(SimTime::from_millis(60), SETTLE - 1);
        outside.wake_at(self.setting.until + Nanos::from_millis(1), SETTLE);
    }

    fn wake(&mut self, outside: &mut Outside<'_, Groups>, key: u64) {
        match key {
            SETTLE => self.settle(outside),
            key if key == SETTLE - 1 => self.set_up(outside),
            key if key >= mover_key(0) => {
                self.drive(outside, usize::try_from(key - mover_key(0)).unwrap());
            }
            key => self.wake_client(outside, u32::try_from(key).unwrap()),
        }
    }

    fn reply(
        &mut self,
        outside: &mut Outside<'_, Groups>,
        node: NodeId,
        id: RequestId,
        body: ClientAnswer,
    ) {
        let Some((asker, _)) = self.open.remove(&id) else {
            return;
        };
        let group = usize::try_from(node.0 / self.setting.nodes_of_one()).unwrap();
        let answer = body.answer.map(|(answer, _)| answer);
        match asker {
            Asker::Client { client, call } => {
                self.client_answered(outside, (client, call), group, answer);
            }
            Asker::Mover(place) => self.mover_answered(outside, place, answer),
            Asker::Nobody => {}
            Asker::Setup => {
                assert!(
                    answer.is_some(),
                    "nothing fails before the first steps are done"
                );
                self.setup.pop();
                self.set_up(outside);
            }
        }
    }

    fn crashed(&mut self, outside: &mut Outside<'_, Groups>, node: NodeId) {
        // What it asked is unknown for ever.
        let mut lost = Vec::new();
        self.open.retain(|_, (asker, asked)| {
            if *asked == node {
                lost.push(*asker);
            }
            *asked != node
        });
        let soon = outside.now() + Nanos::from_millis(5);
        for asker in lost {
            match asker {
                Asker::Client { client, .. } => outside.wake_at(soon, client.into()),
                Asker::Mover(place) => {
                    self.movers[place].waits = false;
                    if let Some((mover, ..)) = &mut self.movers[place].mover {
                        mover.again();
                    }
                    outside.wake_at(soon, mover_key(place));
                }
                Asker::Nobody | Asker::Setup => {}
            }
        }
    }
}
