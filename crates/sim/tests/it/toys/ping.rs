//! A request `n` makes a node ping its neighbour `n` times; the last pong is the reply.

use std::collections::BTreeMap;

use manxdb_core::channel::Life;
use manxdb_core::{
    Actions, Core, Digest, Event, EventOf, LocalTime, Message, NodeId, RequestId, Weight, Work,
};
use manxdb_sim::System;

#[derive(Debug, Clone)]
pub enum Ball {
    Ping { id: u64, left: u32 },
    Pong { id: u64, left: u32 },
}

impl Message for Ball {
    fn weight(&self) -> Weight {
        match self {
            Self::Ping { left: 0, .. } | Self::Pong { left: 0, .. } => Weight::Report,
            _ => Weight::Call { pieces: 2 },
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Ping { .. } => "ping",
            Self::Pong { .. } => "pong",
        }
    }

    fn txn(&self) -> Option<u64> {
        match self {
            Self::Ping { id, .. } | Self::Pong { id, .. } => Some(*id),
        }
    }
}

/// What a node is asked.
#[derive(Debug, Clone)]
pub struct Play {
    pub with: NodeId,
    pub times: u32,
}

#[derive(Debug, Default)]
pub struct Ping {
    /// What the clock showed at each event.
    pub clock: Vec<LocalTime>,
    games: BTreeMap<u64, NodeId>,
    started: bool,
    too_early: bool,
    seen: u64,
}

impl Core for Ping {
    type Message = Ball;
    type Timer = ();
    type Request = Play;
    type Reply = LocalTime;
    type Record = ();

    fn step(&mut self, now: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        self.clock.push(now);
        self.seen += 1;
        self.too_early |= self.started == matches!(event, Event::Start);
        self.started = true;
        match event {
            Event::Request { id, body } => {
                self.games.insert(id.0, body.with);
                out.mark(id.0, "asked");
                let (id, left) = (id.0, body.times);
                out.send(body.with, Ball::Ping { id, left });
            }
            Event::Message {
                from,
                body: Ball::Ping { id, left },
            } => {
                let pieces = 1;
                out.work(Work {
                    pieces,
                    ..Work::default()
                });
                out.send(from, Ball::Pong { id, left });
            }
            Event::Message {
                from,
                body: Ball::Pong { id, left },
            } => {
                if left > 1 {
                    let left = left - 1;
                    out.send(from, Ball::Ping { id, left });
                } else if self.games.remove(&id).is_some() {
                    out.mark(id, "back");
                    out.reply(RequestId(id), now);
                }
            }
            _ => {}
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.too_early {
            return Err("the start did not come first and once".to_string());
        }
        Ok(())
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest.number(self.seen);
        digest.value()
    }
}

/// Makes [`Ping`]s.
#[derive(Debug, Default)]
pub struct Pings;

impl System for Pings {
    type Core = Ping;

    fn start(&mut self, _: NodeId, _: Life, _: Vec<()>) -> Ping {
        Ping::default()
    }

    fn reply_txn(&self, request: RequestId, _: &LocalTime) -> Option<u64> {
        Some(request.0)
    }
}
