//! Nodes that send each other numbered messages, and write down what reaches them.

use std::cell::RefCell;
use std::rc::Rc;

use manxdb_core::channel::{ChannelOptions, Life, Reliable};
use manxdb_core::{
    Actions, Core, Digest, Event, EventOf, LocalTime, Message, Nanos, NodeId, Random, Weight,
};
use manxdb_sim::System;

/// How often a node says something.
const PAUSE: Nanos = Nanos::from_millis(20);

/// The `number`th message of a node's life to one other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    pub life: Life,
    pub number: u64,
    pub sent: LocalTime,
}

impl Message for Word {
    fn weight(&self) -> Weight {
        Weight::Call { pieces: 1 }
    }

    fn label(&self) -> &'static str {
        "word"
    }

    fn txn(&self) -> Option<u64> {
        Some(self.number)
    }
}

/// Something that happened, in the order of virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    Started {
        node: NodeId,
        life: Life,
        at: LocalTime,
    },
    Sent {
        from: NodeId,
        to: NodeId,
        word: Word,
    },
    Heard {
        from: NodeId,
        to: NodeId,
        to_life: Life,
        word: Word,
        at: LocalTime,
    },
}

pub type Log = Rc<RefCell<Vec<Entry>>>;

#[derive(Debug)]
pub struct Chatter {
    me: NodeId,
    life: Life,
    /// Words to each node.
    sent: Vec<u64>,
    random: Random,
    /// Says nothing more after this time.
    until: LocalTime,
    log: Log,
    heard: u64,
}

impl Chatter {
    /// To itself, too.
    fn say(&mut self, now: LocalTime, out: &mut Actions<Self>) {
        let to = self.random.below(self.sent.len() as u64);
        let number = self.sent[usize::try_from(to).unwrap()] + 1;
        self.sent[usize::try_from(to).unwrap()] = number;
        let to = NodeId(u32::try_from(to).unwrap());
        let word = Word {
            life: self.life,
            number,
            sent: now,
        };
        let from = self.me;
        self.log.borrow_mut().push(Entry::Sent { from, to, word });
        out.send(to, word);
    }
}

impl Core for Chatter {
    type Message = Word;
    type Timer = ();
    type Request = ();
    type Reply = ();
    type Record = ();

    fn step(&mut self, now: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        match event {
            Event::Start => {
                let started = Entry::Started {
                    node: self.me,
                    life: self.life,
                    at: now,
                };
                self.log.borrow_mut().push(started);
                self.say(now, out);
                out.set_timer(PAUSE, ());
            }
            Event::Timer(()) if now < self.until => {
                self.say(now, out);
                out.set_timer(PAUSE, ());
            }
            Event::Message { from, body } => {
                self.heard += body.number;
                self.log.borrow_mut().push(Entry::Heard {
                    from,
                    to: self.me,
                    to_life: self.life,
                    word: body,
                    at: now,
                });
            }
            _ => {}
        }
    }

    /// What is said and heard is compared in the log, which all nodes share.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest.number(self.heard);
        digest.value()
    }
}

/// Makes [`Chatter`]s that talk until a time.
pub struct Chatters {
    pub seed: u64,
    pub nodes: usize,
    pub until: LocalTime,
    pub log: Log,
    pub options: ChannelOptions,
}

impl System for Chatters {
    type Core = Reliable<Chatter>;

    fn start(&mut self, node: NodeId, life: Life, _: Vec<()>) -> Reliable<Chatter> {
        Reliable::new(self.chatter(node, life), node, life, self.options)
    }
}

impl Chatters {
    fn chatter(&self, me: NodeId, life: Life) -> Chatter {
        Chatter {
            me,
            life,
            sent: vec![0; self.nodes],
            random: Random::stream(self.seed, &[u64::from(me.0), life.0]),
            until: self.until,
            log: Rc::clone(&self.log),
            heard: 0,
        }
    }
}

/// The same without a channel around them.
pub struct BareChatters(pub Chatters);

impl System for BareChatters {
    type Core = Chatter;

    fn start(&mut self, node: NodeId, life: Life, _: Vec<()>) -> Chatter {
        self.0.chatter(node, life)
    }
}
