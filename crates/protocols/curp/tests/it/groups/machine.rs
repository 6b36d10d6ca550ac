//! The small machine of keys as one whose keys move, and two groups of it as one system.

use manxdb_core::channel::Life;
use manxdb_core::{Action, Actions, Core, Event, EventOf, LocalTime, NodeId};
use manxdb_curp::disk::CurpRecord;
use manxdb_curp::ids::Stamp;
use manxdb_curp::message::CurpMessage;
use manxdb_curp::mutants::SlotMutant;
use manxdb_curp::slots::{
    Movable, Named, Piece, PieceLimits, Removal, Slot, SlotRange, Slotted, Survey,
};
use manxdb_curp::{ClientAnswer, CurpNode, CurpTimer, Execute, Options};
use manxdb_sim::System;

use crate::common::machine::{Answer, KeyValue, Value, bytes};

/// The key under which a defect is planted in a machine. It is in no slot, and stays.
pub const PLANTED: u8 = 255;

impl Movable for KeyValue {
    const KEY_BYTES_MAX: u64 = 1_000;

    fn named(command: &[u8]) -> Named {
        Named {
            keys: Self::declare(command).map_or(Vec::new(), |declared| declared.keys),
            ..Named::default()
        }
    }

    fn slot(key: &[u8]) -> Slot {
        Slot::of(key)
    }

    fn survey(&self, slots: SlotRange) -> Survey {
        let keys = self.values.keys().filter(|key| is_in(slots, **key)).count();
        Survey {
            keys: keys as u64,
            largest_bytes: 1,
        }
    }

    fn read_piece(&mut self, slots: SlotRange, after: Option<&[u8]>, limits: PieceLimits) -> Piece {
        let (looked, next) = self.look(after, limits);
        let inside = looked.iter().filter(|key| is_in(slots, **key));
        let carried: Answer = inside
            .map(|key| (*key, self.values.get(key).cloned()))
            .collect();
        Piece {
            bytes: bytes(&carried),
            next,
        }
    }

    fn put_piece(&mut self, slots: SlotRange, piece: &[u8], _: Stamp) -> Option<Vec<u8>> {
        let carried: Answer = postcard::from_bytes(piece).ok()?;
        let is_right = carried.iter().all(|(key, _)| is_in(slots, *key));
        is_right.then(|| bytes(&carried))
    }

    fn remove_piece(
        &mut self,
        slots: SlotRange,
        after: Option<&[u8]>,
        limits: PieceLimits,
        _: Stamp,
    ) -> Removal {
        let (looked, next) = self.look(after, limits);
        let inside = looked.iter().filter(|key| is_in(slots, **key));
        let gone: Answer = inside.map(|key| (*key, None)).collect();
        Removal {
            effects: bytes(&gone),
            next,
        }
    }

    fn planted(&self) -> Option<SlotMutant> {
        match self.values.get(&PLANTED)? {
            Value::Number(number) => SlotMutant::ALL
                .get(usize::try_from(*number).unwrap())
                .copied(),
            Value::List(_) => None,
        }
    }
}

fn is_in(slots: SlotRange, key: u8) -> bool {
    key != PLANTED && slots.has(Slot::of(&[key]))
}

impl KeyValue {
    fn look(&self, after: Option<&[u8]>, limits: PieceLimits) -> (Vec<u8>, Option<Vec<u8>>) {
        let after = after.map_or(-1, |key| i32::from(key[0]));
        let mut behind = self.values.keys().filter(|key| i32::from(**key) > after);
        let looked: Vec<u8> = behind
            .by_ref()
            .take(limits.keys as usize)
            .copied()
            .collect();
        let last = looked.last().map(|key| vec![*key]);
        (looked, behind.next().and(last))
    }
}

/// A node of one of two groups, which has its own numbers in it.
pub struct GroupNode {
    pub inside: CurpNode<Slotted<KeyValue>>,
    base: u32,
    scratch: Actions<CurpNode<Slotted<KeyValue>>>,
}

impl Core for GroupNode {
    type Message = CurpMessage;
    type Timer = CurpTimer;
    type Request = Vec<u8>;
    type Reply = ClientAnswer;
    type Record = CurpRecord;

    fn step(&mut self, now: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        let event = match event {
            Event::Message { from, body } => Event::Message {
                from: NodeId(from.0 - self.base),
                body,
            },
            other => other,
        };
        self.inside.step(now, event, &mut self.scratch);
        for action in self.scratch.drain() {
            match action {
                Action::Send { to, body } => out.send(NodeId(to.0 + self.base), body),
                Action::SetTimer { after, timer } => out.set_timer(after, timer),
                Action::Persist { record, token } => out.persist(record, token),
                Action::Reply { id, body } => out.reply(id, body),
                Action::Mark { txn, phase } => out.mark(txn, phase),
                Action::Wait { txn, wait } => out.wait(txn, wait),
            }
        }
        out.work(self.scratch.take_work());
    }

    fn check(&self) -> Result<(), String> {
        self.inside.check()
    }

    fn digest(&self) -> u64 {
        self.inside.digest()
    }
}

/// Two groups: the nodes of the second one follow those of the first.
pub struct Groups {
    pub options: Options,
    pub nodes_of_one: u32,
}

impl System for Groups {
    type Core = GroupNode;

    fn start(&mut self, node: NodeId, life: Life, disk: Vec<CurpRecord>) -> GroupNode {
        let base = node.0 / self.nodes_of_one * self.nodes_of_one;
        let own = NodeId(node.0 - base);
        let opened = CurpNode::open(own, life.0, self.options, 0x005E_C2E7, disk);
        GroupNode {
            inside: opened.expect("a simulation gives each node its own disk"),
            base,
            scratch: Actions::default(),
        }
    }
}
