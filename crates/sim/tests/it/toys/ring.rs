//! A token that goes round. Node 0 makes a new one when it has not seen it for too long, although
//! the old one may still live: a planted bug, which shows when two tokens of one round meet.

use manxdb_core::channel::Life;
use manxdb_core::{
    Actions, Core, Digest, Event, EventOf, LocalTime, Message, Nanos, NodeId, Weight,
};
use manxdb_sim::System;

/// How long node 0 waits.
pub const PATIENCE: Nanos = Nanos::from_millis(50);

#[derive(Debug, Clone)]
pub struct Round(pub u64);

impl Message for Round {
    fn weight(&self) -> Weight {
        Weight::Call { pieces: 0 }
    }

    fn label(&self) -> &'static str {
        "token"
    }
}

#[derive(Debug)]
pub struct Ring {
    me: NodeId,
    next: NodeId,
    pub round: u64,
    seen_twice: bool,
}

impl Core for Ring {
    type Message = Round;
    type Timer = u64;
    type Request = ();
    type Reply = ();
    type Record = ();

    fn step(&mut self, _: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        match event {
            Event::Start if self.me == NodeId(0) => out.send(self.next, Round(1)),
            Event::Message { body, .. } => {
                self.seen_twice |= body.0 <= self.round;
                self.round = body.0;
                let ends = self.me == NodeId(0);
                out.send(self.next, Round(body.0 + u64::from(ends)));
                if ends {
                    out.set_timer(PATIENCE, body.0);
                }
            }
            Event::Timer(round) if round == self.round => out.send(self.next, Round(round + 1)),
            _ => {}
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.seen_twice {
            return Err(format!("two tokens in round {}", self.round));
        }
        Ok(())
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest.number(self.round);
        digest.value()
    }
}

/// Makes a ring of so many nodes.
#[derive(Debug)]
pub struct Rings {
    pub nodes: u32,
}

impl System for Rings {
    type Core = Ring;

    fn start(&mut self, me: NodeId, _: Life, _: Vec<()>) -> Ring {
        Ring {
            me,
            next: NodeId((me.0 + 1) % self.nodes),
            round: 0,
            seen_twice: false,
        }
    }
}
