//! A counter that acknowledges an increment when it is on disk.

use manxdb_core::channel::Life;
use manxdb_core::{
    Actions, Core, Digest, Event, EventOf, LocalTime, Message, NodeId, RequestId, Token, Weight,
};
use manxdb_sim::System;

#[derive(Debug, Clone)]
pub enum Never {}

impl Message for Never {
    fn weight(&self) -> Weight {
        match *self {}
    }

    fn label(&self) -> &'static str {
        match *self {}
    }
}

#[derive(Debug)]
pub struct Counter {
    pub life: Life,
    pub value: u64,
    /// Counts events; a core that must never see more than this many is broken.
    seen: u64,
    fails_after: u64,
}

impl Core for Counter {
    type Message = Never;
    type Timer = ();
    type Request = ();
    type Reply = u64;
    type Record = u64;

    fn step(&mut self, _: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        self.seen += 1;
        match event {
            Event::Request { id, .. } => {
                self.value += 1;
                out.persist(self.value, Token(id.0));
            }
            Event::Persisted(token) => out.reply(RequestId(token.0), self.value),
            _ => {}
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.seen > self.fails_after {
            return Err(format!("{} events are too many", self.seen));
        }
        Ok(())
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest.number(self.value);
        digest.value()
    }
}

/// Makes [`Counter`]s that go on from the last record.
#[derive(Debug)]
pub struct Counters {
    pub fails_after: u64,
}

impl Default for Counters {
    fn default() -> Self {
        let fails_after = u64::MAX;
        Self { fails_after }
    }
}

impl System for Counters {
    type Core = Counter;

    fn start(&mut self, _: NodeId, life: Life, disk: Vec<u64>) -> Counter {
        for (before, record) in disk.iter().enumerate() {
            assert_eq!(*record, before as u64 + 1, "a hole in the log");
        }
        Counter {
            life,
            value: disk.last().copied().unwrap_or(0),
            seen: 0,
            fails_after: self.fails_after,
        }
    }
}
