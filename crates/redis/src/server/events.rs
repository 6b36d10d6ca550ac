//! Keyspace events: what happened to keys, told to those who listen to channels that are named after a key
//! (`__keyspace@0__:key`) or an event (`__keyevent@0__:event`).
//!
//! Nothing is known of events while commands run. Where some are asked for (CONFIG SET notify-keyspace-events),
//! what a command did is told from its name, from which of its keys were there before ([`Before`]) and from the
//! rows that it wrote. Which event belongs to which command is in [`super::event_names`].

use std::collections::BTreeSet;

use super::channels::tell_listeners;
use super::event_names::{self, Told};
use super::state::Server;
use super::table;
use crate::RowWrite;
use crate::command::Command;
use crate::keyspace::{Effects, Expired, Keyspace, Value};
use crate::resp::Reply;
use crate::spec::{CommandSpec, Flags};

/// Which events are told, as letters of Redis's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Events(u16);

/// Letters in the order in which CONFIG GET tells them, those of A first.
const LETTERS: &[u8] = b"g$lshzxetdnKEm";
/// How many of them A stands for.
const OF_ALL: usize = 10;

impl Events {
    pub(super) const GENERIC: Self = Self::letter(b'g');
    pub(super) const STRING: Self = Self::letter(b'$');
    pub(super) const LIST: Self = Self::letter(b'l');
    pub(super) const SET: Self = Self::letter(b's');
    pub(super) const HASH: Self = Self::letter(b'h');
    pub(super) const ZSET: Self = Self::letter(b'z');
    pub(super) const EXPIRED: Self = Self::letter(b'x');
    pub(super) const STREAM: Self = Self::letter(b't');
    pub(super) const NEW: Self = Self::letter(b'n');
    pub(super) const MISS: Self = Self::letter(b'm');
    const BY_KEY: Self = Self::letter(b'K');
    const BY_EVENT: Self = Self::letter(b'E');

    const fn letter(letter: u8) -> Self {
        let mut place = 0;
        while LETTERS[place] != letter {
            place += 1;
        }
        Self(1 << place)
    }

    /// Those that letters name; nothing when one of them is unknown.
    pub(super) fn of(letters: &[u8]) -> Option<Self> {
        let mut events = 0;
        for letter in letters {
            events |= match LETTERS.iter().position(|known| known == letter) {
                Some(place) => 1 << place,
                None if *letter == b'A' => (1 << OF_ALL) - 1,
                None => return None,
            };
        }
        Some(Self(events))
    }

    /// Its letters.
    pub(super) fn letters(self) -> String {
        let all = (1 << OF_ALL) - 1;
        let has_all = self.0 & all == all;
        let first = if has_all { "A" } else { "" };
        let held = LETTERS
            .iter()
            .enumerate()
            .filter(|(place, _)| self.0 & (1 << place) != 0 && !(has_all && *place < OF_ALL));
        let held = held.map(|(_, letter)| char::from(*letter));
        first.chars().chain(held).collect()
    }

    fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether anything is told.
    pub(super) fn is_on(self) -> bool {
        let channels = Self::BY_KEY.0 | Self::BY_EVENT.0;
        self.0 & channels != 0 && self.0 & !channels != 0
    }
}

/// What of a command's keys was there before it ran.
#[derive(Debug)]
pub(super) struct Before {
    /// The arguments that are keys.
    pub places: Vec<usize>,
    /// Of each of these places.
    pub was_there: Vec<bool>,
    /// Of the first key when it is a stream: its entries, and the consumers of its groups.
    pub stream: (usize, usize),
}

fn stream_of(keyspace: &Keyspace, db: usize, key: &[u8]) -> (usize, usize) {
    match keyspace.peek(db, key).map(|entry| &entry.value) {
        Some(Value::Stream(stream)) => {
            let consumers = stream.groups().map(|(_, group)| group.consumers().len());
            (stream.len(), consumers.sum())
        }
        _ => (0, 0),
    }
}

/// As [`Done::has_fields`].
fn has_fields(keyspace: &Keyspace, db: usize, spec: &CommandSpec, command: &Command) -> bool {
    let words = match spec.name {
        "hgetex" => 1,
        "hsetex" => 2,
        _ => return false,
    };
    let Some(Value::Hash(hash)) = keyspace.peek(db, command.arg(1)).map(|entry| &entry.value)
    else {
        return false;
    };
    let place = (2..command.len()).find(|place| command.is_word(*place, "FIELDS"));
    let fields = place.map_or(command.len(), |place| place + 2)..command.len();
    let mut fields = fields.step_by(words);
    fields.any(|place| hash.get(command.arg(place)).is_some())
}

/// A command on data that has run.
pub(super) struct Ended<'a> {
    pub db: usize,
    pub spec: &'static CommandSpec,
    pub command: &'a Command,
    pub before: &'a Before,
    pub reply: &'a Reply,
    /// What it wrote.
    pub rows: &'a [RowWrite],
}

/// What a command did to keys of one database.
pub(super) struct Done<'a> {
    pub command: &'a Command,
    pub name: &'static str,
    pub before: &'a Before,
    /// Of each place: whether the key is there, and whether it was changed.
    pub is_there: Vec<bool>,
    pub is_touched: Vec<bool>,
    /// Of each place: whether the key has an expiry.
    pub expires: Vec<bool>,
    pub stream_after: (usize, usize),
    /// Whether the first key is a hash that has one of the fields named behind FIELDS.
    pub has_fields: bool,
    pub reply: &'a Reply,
}

impl Server {
    /// Looks at the keys of a command that is about to run.
    pub(super) fn look_before(&self, db: usize, spec: &CommandSpec, command: &Command) -> Before {
        let places = spec.keys.places(command);
        let is_there = |place: &usize| self.is_key(db, command.arg(*place));
        let first = places.first().map(|place| command.arg(*place));
        Before {
            was_there: places.iter().map(is_there).collect(),
            stream: first.map_or((0, 0), |key| stream_of(&self.keyspace, db, key)),
            places,
        }
    }

    fn is_key(&self, db: usize, key: &[u8]) -> bool {
        let now = self.keyspace.now();
        let entry = self.keyspace.peek(db, key);
        entry.is_some_and(|entry| !entry.is_over(now) && !entry.value.is_empty_collection())
    }

    /// Tells what a command did.
    pub(super) fn tell(&mut self, ended: &Ended<'_>) {
        let Ended {
            db,
            spec,
            command,
            before,
            reply,
            rows,
        } = *ended;
        let places = &before.places;
        if spec.flags.has(Flags::READONLY) && self.settings.events.has(Events::MISS) {
            for (place, was_there) in places.iter().zip(&before.was_there) {
                if !was_there && !matches!(spec.name, "object" | "touch") {
                    self.tell_one(db, command.arg(*place), Events::MISS, "keymiss");
                }
            }
        }
        // What was there before the command was removed by it, however soon it was to expire.
        let expired = self.keyspace.take_expired();
        let there = places.iter().zip(&before.was_there);
        let there = there.filter(|(_, was_there)| **was_there && !expired.is_empty());
        let own: BTreeSet<&[u8]> = there.map(|(place, _)| command.arg(*place)).collect();
        let is_own = |of: usize, key: &[u8]| of == db && own.contains(key);
        for one in expired {
            if !is_own(one.db, &one.key) {
                self.tell_one_expired(&one);
            }
        }
        if rows.is_empty() {
            return;
        }
        let of_db = rows.iter().filter_map(RowWrite::touched);
        let touched: BTreeSet<&[u8]> = of_db
            .filter(|(of, _)| *of == db)
            .map(|(_, key)| key)
            .collect();
        let keys = || places.iter().map(|place| command.arg(*place));
        let expires = |key: &[u8]| {
            let entry = self.keyspace.peek(db, key);
            entry.is_some_and(|entry| entry.expires > 0)
        };
        let first = keys().next().unwrap_or_default();
        let done = Done {
            command,
            name: table::full_name(spec, command),
            before,
            is_there: keys().map(|key| self.is_key(db, key)).collect(),
            is_touched: keys().map(|key| touched.contains(key)).collect(),
            expires: keys().map(expires).collect(),
            stream_after: stream_of(&self.keyspace, db, first),
            has_fields: has_fields(&self.keyspace, db, spec, command),
            reply,
        };
        for Told {
            place,
            class,
            event,
            other_db,
        } in event_names::of(&done)
        {
            self.tell_one(other_db.unwrap_or(db), command.arg(place), class, event);
        }
    }

    /// Tells which keys expired since it was asked last.
    pub(super) fn tell_expired(&mut self) {
        for one in self.keyspace.take_expired() {
            self.tell_one_expired(&one);
        }
    }

    fn tell_one_expired(&mut self, expired: &Expired) {
        let Expired { db, ref key, .. } = *expired;
        if !expired.are_fields {
            return self.tell_one(db, key, Events::EXPIRED, "expired");
        }
        self.tell_one(db, key, Events::HASH, "hexpired");
        if expired.is_gone {
            self.tell_one(db, key, Events::GENERIC, "del");
        }
    }

    /// Keys and fields of a command whose time is over go before it runs, so that what it does itself is
    /// told apart.
    pub(super) fn expire_before(
        &mut self,
        db: usize,
        spec: &CommandSpec,
        command: &Command,
        effects: &mut Effects,
    ) {
        for place in spec.keys.places(command) {
            self.keyspace.find_place(db, command.arg(place));
        }
        self.keyspace.finish_into(effects);
        self.tell_expired();
    }

    fn tell_one(&mut self, db: usize, key: &[u8], class: Events, event: &str) {
        let events = self.settings.events;
        if !events.has(class) {
            return;
        }
        if events.has(Events::BY_KEY) {
            let channel = [format!("__keyspace@{db}__:").as_bytes(), key].concat();
            tell_listeners(self, &channel, event.as_bytes());
        }
        if events.has(Events::BY_EVENT) {
            let channel = format!("__keyevent@{db}__:{event}");
            tell_listeners(self, channel.as_bytes(), key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_told_as_redis_tells_them() {
        for (given, told) in [
            ("KEA", "AKE"),
            ("KExnm", "xnKEm"),
            ("g$lshzxetdKEmn", "AnKEm"),
            ("", ""),
            ("AKE$", "AKE"),
        ] {
            let events = Events::of(given.as_bytes()).unwrap();
            assert_eq!(events.letters(), told, "{given}");
            assert_eq!(Events::of(told.as_bytes()), Some(events));
        }
        assert_eq!(Events::of(b"KQ"), None);
        let is_on = |letters: &str| Events::of(letters.as_bytes()).unwrap().is_on();
        assert!(is_on("Kg") && is_on("EA") && !is_on("A") && !is_on("KE") && !is_on(""));
    }

    #[test]
    fn events_are_told_to_channels_of_keys_and_of_events() {
        let mut server = Server::new(Keyspace::new(), crate::server::Settings::default(), 0);
        let id = server.connect("a".into(), 0);
        let mut ask = |words: &str, now: u64| {
            let command = Command::of(&words.split(' ').collect::<Vec<_>>());
            server.handle(id, &command, crate::Stamp::new(now, 1));
            let told = server.take_outbox().into_iter();
            told.map(|(_, message)| {
                let mut out = Vec::new();
                message.encode(crate::resp::Protocol::Resp2, &mut out);
                let lines = String::from_utf8_lossy(&out).into_owned();
                lines
                    .split("\r\n")
                    .filter(|line| !line.starts_with(['$', '*']))
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect::<Vec<_>>()
        };
        ask("HELLO 3", 1);
        ask("PSUBSCRIBE __key*", 1);
        assert!(ask("SET k v", 1).is_empty(), "none are asked for");
        ask("CONFIG SET notify-keyspace-events KEA", 1);
        let told = |channel: &str, message: &str| format!("pmessage __key* {channel} {message} ");
        let pair = |key: &str, event: &str| {
            [
                told(&format!("__keyspace@0__:{key}"), event),
                told(&format!("__keyevent@0__:{event}"), key),
            ]
        };
        let several = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().flat_map(|(key, event)| pair(key, event));
            pairs.collect::<Vec<_>>()
        };
        assert_eq!(
            ask("SET k v PX 50", 1),
            several(&[("k", "set"), ("k", "expire")])
        );
        assert_eq!(ask("GET k", 90), several(&[("k", "expired")]));
        assert_eq!(ask("RPUSH l a", 90), several(&[("l", "rpush")]));
        let moved = [("m", "lpush"), ("l", "rpop"), ("l", "del")];
        assert_eq!(ask("RPOPLPUSH l m", 90), several(&moved));
        assert!(ask("SADD m a", 90).is_empty(), "it is of another type");
    }
}
