//! Which events belong to which command, in Redis's order.

use std::collections::BTreeSet;

use super::events::{Done, Events};
use crate::number;
use crate::resp::Reply;

/// An event to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// The argument that is the key.
    pub place: usize,
    pub class: Events,
    pub event: &'static str,
    /// The key's database where it is not the connection's.
    pub other_db: Option<usize>,
}

/// Events of one command, as they come.
struct Telling<'a> {
    done: &'a Done<'a>,
    told: Vec<Told>,
}

/// The events of a command, which changed rows.
pub(super) fn of(done: &Done<'_>) -> Vec<Told> {
    let mut telling = Telling {
        done,
        told: Vec::new(),
    };
    telling.tell_all();
    telling.told
}

/// The event of a command that changes its key, or one of several of which it takes the first that is
/// there; where that key is gone then, it was deleted.
fn plain(done: &Done<'_>) -> Option<(Events, &'static str)> {
    let has = |word: &str| (1..done.command.len()).any(|place| done.command.is_word(place, word));
    Some(match done.name {
        "append" | "setrange" | "incrbyfloat" | "setbit" | "pfadd" => (Events::STRING, done.name),
        "incr" | "decr" | "incrby" | "decrby" => (Events::STRING, "incrby"),
        "bitfield" => (Events::STRING, "setbit"),
        "lpush" | "rpush" | "linsert" | "lset" | "lrem" | "ltrim" | "lpop" | "rpop" => {
            (Events::LIST, done.name)
        }
        "lpushx" => (Events::LIST, "lpush"),
        "rpushx" => (Events::LIST, "rpush"),
        "blpop" => (Events::LIST, "lpop"),
        "brpop" => (Events::LIST, "rpop"),
        "lmpop" | "blmpop" if has("LEFT") => (Events::LIST, "lpop"),
        "lmpop" | "blmpop" => (Events::LIST, "rpop"),
        "hset" | "hincrby" | "hincrbyfloat" | "hdel" => (Events::HASH, done.name),
        "hmset" | "hsetnx" => (Events::HASH, "hset"),
        "sadd" | "srem" | "spop" => (Events::SET, done.name),
        "zadd" if adds_up(done) => (Events::ZSET, "zincr"),
        "zincrby" => (Events::ZSET, "zincr"),
        "zadd" | "zrem" | "zremrangebyscore" | "zremrangebyrank" | "zremrangebylex" | "zpopmin"
        | "zpopmax" => (Events::ZSET, done.name),
        "geoadd" => (Events::ZSET, "zadd"),
        "bzpopmin" => (Events::ZSET, "zpopmin"),
        "bzpopmax" => (Events::ZSET, "zpopmax"),
        "zmpop" | "bzmpop" if has("MIN") => (Events::ZSET, "zpopmin"),
        "zmpop" | "bzmpop" => (Events::ZSET, "zpopmax"),
        "xtrim" | "xdel" | "xsetid" => (Events::STREAM, done.name),
        "xgroup|create" => (Events::STREAM, "xgroup-create"),
        "xgroup|setid" => (Events::STREAM, "xgroup-setid"),
        "xgroup|destroy" => (Events::STREAM, "xgroup-destroy"),
        "xgroup|createconsumer" => (Events::STREAM, "xgroup-createconsumer"),
        "xgroup|delconsumer" => (Events::STREAM, "xgroup-delconsumer"),
        _ => return None,
    })
}

/// Whether ZADD has the option INCR.
fn adds_up(done: &Done<'_>) -> bool {
    let options = ["NX", "XX", "GT", "LT", "CH", "INCR"];
    let is_option = |place: &usize| {
        options
            .iter()
            .any(|word| done.command.is_word(*place, word))
    };
    let mut places = (2..done.command.len()).take_while(is_option);
    places.any(|place| done.command.is_word(place, "INCR"))
}

/// The event of a command that puts its result under a key, the first of its keys or the second.
fn stored(done: &Done<'_>) -> Option<(usize, Events, &'static str)> {
    Some(match done.name {
        "sinterstore" | "sunionstore" | "sdiffstore" => (0, Events::SET, done.name),
        "zunionstore" | "zinterstore" | "zdiffstore" | "zrangestore" | "geosearchstore" => {
            (0, Events::ZSET, done.name)
        }
        "bitop" => (0, Events::STRING, "set"),
        "pfmerge" => (0, Events::STRING, "pfadd"),
        "sort" => (1, Events::LIST, "sortstore"),
        "georadius" | "georadiusbymember" => (1, Events::ZSET, "georadiusstore"),
        _ => return None,
    })
}

/// The events of a command about fields of hashes that expire, which changed some.
fn field_events(done: &Done<'_>) -> Vec<&'static str> {
    let command = done.command;
    let mut options = (2..command.len()).take_while(|place| !command.is_word(*place, "FIELDS"));
    let is_time = |place| {
        let words = ["EX", "PX", "EXAT", "PXAT"];
        words.iter().any(|word| command.is_word(place, word))
    };
    let has_time = options.any(is_time);
    match done.name {
        "hpersist" => vec!["hpersist"],
        "hgetdel" => vec!["hdel"],
        "hgetex" if !has_time => vec!["hpersist"],
        // Their time is over already.
        "hgetex" if !done.has_fields => vec!["hdel"],
        "hgetex" => vec!["hexpire"],
        "hsetex" if !done.has_fields => vec!["hset", "hdel"],
        "hsetex" if has_time => vec!["hset", "hexpire"],
        "hsetex" => vec!["hset"],
        _ => {
            let outcomes = match done.reply {
                Reply::Array(outcomes) => outcomes.as_slice(),
                _ => &[],
            };
            let told = [(2, "hdel"), (1, "hexpire")];
            let told = told.into_iter();
            let told = told.filter(|(outcome, _)| outcomes.contains(&Reply::Integer(*outcome)));
            told.map(|(_, event)| event).collect()
        }
    }
}

impl Telling<'_> {
    /// Tells of the key at a place of the list of keys.
    fn tell(&mut self, key: usize, class: Events, event: &'static str) {
        self.tell_in(None, key, class, event);
    }

    fn tell_in(&mut self, db: Option<usize>, key: usize, class: Events, event: &'static str) {
        if let Some(place) = self.done.before.places.get(key) {
            self.told.push(Told {
                place: *place,
                class,
                event,
                other_db: db,
            });
        }
    }

    fn was_there(&self, key: usize) -> bool {
        self.done.before.was_there.get(key) == Some(&true)
    }

    fn is_there(&self, key: usize) -> bool {
        self.done.is_there.get(key) == Some(&true)
    }

    fn is_touched(&self, key: usize) -> bool {
        self.done.is_touched.get(key) == Some(&true)
    }

    fn tell_if_new(&mut self, key: usize) {
        if !self.was_there(key) && self.is_there(key) {
            self.tell(key, Events::NEW, "new");
        }
    }

    fn tell_if_gone(&mut self, key: usize) {
        if self.was_there(key) && !self.is_there(key) {
            self.tell(key, Events::GENERIC, "del");
        }
    }

    /// What came under a key, or that nothing did and what was there is gone.
    fn tell_stored(&mut self, key: usize, class: Events, event: &'static str) {
        if !self.is_touched(key) {
            return;
        }
        self.tell_if_new(key);
        if self.is_there(key) {
            self.tell(key, class, event);
        }
        self.tell_if_gone(key);
    }

    fn tell_all(&mut self) {
        if let Some((class, event)) = plain(self.done) {
            let Some(key) = (0..self.done.before.places.len()).find(|key| self.is_touched(*key))
            else {
                return;
            };
            self.tell_if_new(key);
            self.tell(key, class, event);
            return match class {
                // A stream without entries is there.
                Events::STREAM => {}
                _ => self.tell_if_gone(key),
            };
        }
        if let Some((key, class, event)) = stored(self.done) {
            return self.tell_stored(key, class, event);
        }
        match self.done.name {
            "set" | "setex" | "psetex" | "setnx" | "getset" | "mset" | "msetnx" => self.tell_set(),
            "del" | "unlink" | "getdel" => self.tell_deleted(),
            "expire" | "pexpire" | "expireat" | "pexpireat" | "getex" | "persist" => {
                self.tell_expiry();
            }
            "rename" | "renamenx" => self.tell_renamed(),
            "copy" | "move" => self.tell_elsewhere(),
            "restore" => {
                if self.is_touched(0) && self.is_there(0) {
                    // What was there before it replaces is deleted without a word.
                    self.tell(0, Events::NEW, "new");
                    self.tell(0, Events::GENERIC, "restore");
                }
                self.tell_if_gone(0);
            }
            "lmove" | "blmove" | "rpoplpush" | "brpoplpush" => self.tell_moved(),
            "hexpire" | "hpexpire" | "hexpireat" | "hpexpireat" | "hpersist" | "hgetdel"
            | "hgetex" | "hsetex" => self.tell_fields(),
            "smove" => {
                if self.is_touched(0) {
                    self.tell(0, Events::SET, "srem");
                    self.tell_if_gone(0);
                }
                self.tell_stored(1, Events::SET, "sadd");
            }
            "xadd" => self.tell_added(),
            "xreadgroup" | "xclaim" | "xautoclaim"
                if self.done.stream_after.1 > self.done.before.stream.1 =>
            {
                self.tell(0, Events::STREAM, "xgroup-createconsumer");
            }
            _ => {}
        }
    }

    fn tell_set(&mut self) {
        let keeps =
            (3..self.done.command.len()).any(|place| self.done.command.is_word(place, "KEEPTTL"));
        let mut named: BTreeSet<&[u8]> = BTreeSet::new();
        for key in 0..self.done.before.places.len() {
            if !self.is_touched(key) {
                continue;
            }
            let name = self.done.command.arg(self.done.before.places[key]);
            if named.insert(name) {
                self.tell_if_new(key);
            }
            self.tell(key, Events::STRING, "set");
            if self.done.expires.get(key) == Some(&true) && !keeps {
                self.tell(key, Events::GENERIC, "expire");
            }
        }
    }

    fn tell_deleted(&mut self) {
        let mut named: BTreeSet<&[u8]> = BTreeSet::new();
        for key in 0..self.done.before.places.len() {
            let name = self.done.command.arg(self.done.before.places[key]);
            if named.insert(name) && self.is_touched(key) {
                self.tell_if_gone(key);
            }
        }
    }

    fn tell_expiry(&mut self) {
        if !self.is_touched(0) {
            return;
        }
        let persists = self.done.name == "persist" || self.done.command.is_word(2, "PERSIST");
        match self.is_there(0) {
            true if persists => self.tell(0, Events::GENERIC, "persist"),
            true => self.tell(0, Events::GENERIC, "expire"),
            false => self.tell_if_gone(0),
        }
    }

    fn tell_renamed(&mut self) {
        let (from, to) = (self.done.command.arg(1), self.done.command.arg(2));
        if from != to && self.is_touched(1) {
            self.tell(1, Events::NEW, "new");
            self.tell(0, Events::GENERIC, "rename_from");
            self.tell(1, Events::GENERIC, "rename_to");
        }
    }

    /// COPY and MOVE, to other databases too.
    fn tell_elsewhere(&mut self) {
        if *self.done.reply != Reply::Integer(1) {
            return;
        }
        let command = self.done.command;
        let number = |place| {
            let number = number::integer(command.arg(place));
            number.and_then(|number| usize::try_from(number).ok())
        };
        if self.done.name == "move" {
            let db = number(2);
            self.tell_in(db, 0, Events::NEW, "new");
            self.tell(0, Events::GENERIC, "move_from");
            return self.tell_in(db, 0, Events::GENERIC, "move_to");
        }
        let word = (3..command.len()).find(|place| command.is_word(*place, "DB"));
        let db = word.and_then(|place| number(place + 1));
        self.tell_in(db, 1, Events::NEW, "new");
        self.tell_in(db, 1, Events::GENERIC, "copy_to");
    }

    /// An element went from one list to another.
    fn tell_moved(&mut self) {
        if !self.is_touched(0) {
            return;
        }
        let is_move = matches!(self.done.name, "lmove" | "blmove");
        let from_left = is_move && self.done.command.is_word(3, "LEFT");
        let to_left = !is_move || self.done.command.is_word(4, "LEFT");
        self.tell_if_new(1);
        self.tell(1, Events::LIST, if to_left { "lpush" } else { "rpush" });
        self.tell(0, Events::LIST, if from_left { "lpop" } else { "rpop" });
        self.tell_if_gone(0);
    }

    /// Fields of a hash that got another expiry, or none, or went because their time was over.
    fn tell_fields(&mut self) {
        if !self.is_touched(0) {
            return;
        }
        self.tell_if_new(0);
        for event in field_events(self.done) {
            self.tell(0, Events::HASH, event);
        }
        self.tell_if_gone(0);
    }

    fn tell_added(&mut self) {
        if !self.is_touched(0) {
            return;
        }
        self.tell_if_new(0);
        self.tell(0, Events::STREAM, "xadd");
        let (before, after) = (self.done.before.stream.0, self.done.stream_after.0);
        if after < before + 1 {
            self.tell(0, Events::STREAM, "xtrim");
        }
    }
}
