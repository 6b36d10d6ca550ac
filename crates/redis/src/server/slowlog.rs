//! SLOWLOG: commands that took long, and where their time went.

use std::collections::VecDeque;

use super::call::Call;
use super::client::ClientId;
use super::latency::LatencyEvent;
use super::state::Server;
use super::table;
use crate::command::Command;
use crate::error::CommandError;
use crate::resp::Reply;
use crate::spec::Flags;
use crate::{Stamp, number};

/// Words of a command that are kept, as in Redis.
const WORDS_MAX: usize = 32;
/// Bytes of a word that are kept, as in Redis.
const WORD_BYTES_MAX: usize = 128;
/// Entries that SLOWLOG GET tells when it is not asked for more.
const TOLD: usize = 10;

/// Where the time of a command went, in microseconds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// Until values that were only in the store had come.
    pub load: u64,
    /// Running.
    pub run: u64,
    /// Appending to the commit log, with all others of its round.
    pub append: u64,
    /// Until the disk had that.
    pub sync: u64,
}

impl Split {
    /// What decides whether a command is slow: the log's time is that of a whole round.
    fn own(self) -> u64 {
        self.load.saturating_add(self.run)
    }

    /// All of it.
    #[must_use]
    pub fn total(self) -> u64 {
        let log = self.append.saturating_add(self.sync);
        self.own().saturating_add(log)
    }
}

/// A command that took long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowCommand {
    /// Counts up, never twice the same in a process.
    pub id: u64,
    /// When it was run, in milliseconds since 1970.
    pub at_millis: u64,
    /// The command, cut; passwords are not in it.
    pub words: Vec<Vec<u8>>,
    /// Where its connection is from.
    pub address: String,
    /// What CLIENT SETNAME called the connection.
    pub client: Vec<u8>,
    /// Where its time went.
    pub split: Split,
}

/// The latest of them.
#[derive(Debug, Default)]
pub struct SlowLog {
    entries: VecDeque<SlowCommand>,
    total: u64,
}

impl SlowLog {
    /// How many there were, forgotten ones included.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The newest first.
    pub fn entries(&self) -> impl Iterator<Item = &SlowCommand> {
        self.entries.iter().rev()
    }

    fn add(&mut self, entry: SlowCommand, most: usize) {
        self.total += 1;
        self.entries.push_back(entry);
        while self.entries.len() > most {
            self.entries.pop_front();
        }
    }

    fn of(&mut self, id: u64) -> Option<&mut SlowCommand> {
        // Numbers ascend: the newest are asked for.
        self.entries.iter_mut().rev().find(|entry| entry.id == id)
    }
}

impl Server {
    /// Says how long a command took that has just been run. The number of its entry when it was slow: what
    /// its log took comes later.
    pub fn took(
        &mut self,
        id: ClientId,
        command: &Command,
        split: Split,
        stamp: Stamp,
    ) -> Option<u64> {
        self.count_last(split.run);
        if self.keeps(split.run) {
            let spec = table::find(command.name());
            let event = match spec {
                Some(spec) if spec.flags.has(Flags::FAST) => LatencyEvent::FastCommand,
                _ => LatencyEvent::Command,
            };
            self.lasted(event, split.run, stamp);
        }
        let limit = u64::try_from(self.settings.slower_than_micros).ok()?;
        if split.own() < limit || self.settings.slow_commands_max == 0 {
            return None;
        }
        let client = self.clients.get(&id);
        let entry = SlowCommand {
            id: self.slow.total,
            at_millis: stamp.now_millis,
            words: shown(command),
            address: client.map_or_else(String::new, |client| client.address.clone()),
            client: client.map_or_else(Vec::new, |client| client.name.clone()),
            split,
        };
        let number = entry.id;
        self.slow.add(entry, self.settings.slow_commands_max);
        Some(number)
    }

    /// Says what the log of a slow command took; it may be forgotten by now.
    pub fn log_took(&mut self, number: u64, append: u64, sync: u64) {
        if let Some(entry) = self.slow.of(number) {
            (entry.split.append, entry.split.sync) = (append, sync);
        }
    }

    /// Commands that took long.
    #[must_use]
    pub fn slow(&self) -> &SlowLog {
        &self.slow
    }
}

/// A command as it is kept: cut, and without passwords.
fn shown(command: &Command) -> Vec<Vec<u8>> {
    let is = |name: &str| command.is_word(0, name);
    // From where on words may be secrets.
    let secret = match () {
        () if is("AUTH") => 1,
        () if is("HELLO") => 2,
        () if is("ACL") => 3,
        () => usize::MAX,
    };
    let mut words = Vec::new();
    for (place, word) in command.args_from(0).enumerate() {
        if place + 1 == WORDS_MAX && command.len() > WORDS_MAX {
            let left = command.len() - place;
            words.push(format!("... ({left} more arguments)").into_bytes());
            break;
        }
        words.push(match word.len().checked_sub(WORD_BYTES_MAX) {
            _ if place >= secret => b"(redacted)".to_vec(),
            Some(left) if left > 0 => {
                let mut cut = word[..WORD_BYTES_MAX].to_vec();
                cut.extend_from_slice(format!("... ({left} more bytes)").as_bytes());
                cut
            }
            _ => word.to_vec(),
        });
    }
    words
}

/// SLOWLOG GET, LEN, RESET and HELP; SPLIT, ours, tells where the time went.
pub fn slowlog(call: &mut Call<'_>, command: &Command) -> Result<Reply, CommandError> {
    let is = |word: &str, words: usize| command.is_word(1, word) && command.len() <= words;
    if is("LEN", 2) {
        return Ok(Reply::count(call.server.slow.entries.len()));
    }
    if is("RESET", 2) {
        call.server.slow.entries.clear();
        return Ok(Reply::OK);
    }
    if is("HELP", 2) {
        let lines = [
            "SLOWLOG GET [count] | SPLIT [count] | LEN | RESET",
            "GET: number, time, microseconds, words, address and name of slow commands.",
            "SPLIT: number, microseconds for values of the store, to run, to append, for the disk.",
        ];
        return Ok(Reply::Array(lines.into_iter().map(Reply::bulk).collect()));
    }
    let entry: fn(&SlowCommand) -> Reply = match () {
        () if is("GET", 3) => told,
        () if is("SPLIT", 3) => told_split,
        () => return Err(super::info::unknown(command)),
    };
    let most = match command.len() {
        3 => match number::parse(command.arg(2))? {
            -1 => usize::MAX,
            count => usize::try_from(count).map_err(|_| {
                CommandError::text("ERR count should be greater than or equal to -1")
            })?,
        },
        _ => TOLD,
    };
    let entries = call.server.slow.entries().take(most);
    Ok(Reply::Array(entries.map(entry).collect()))
}

fn told(entry: &SlowCommand) -> Reply {
    let words = entry.words.iter().map(|word| Reply::bulk(word.as_slice()));
    Reply::Array(vec![
        Reply::wide(entry.id),
        Reply::wide(entry.at_millis / 1000),
        Reply::wide(entry.split.own()),
        Reply::Array(words.collect()),
        Reply::bulk(entry.address.as_str()),
        Reply::bulk(entry.client.as_slice()),
    ])
}

fn told_split(entry: &SlowCommand) -> Reply {
    let Split {
        load,
        run,
        append,
        sync,
    } = entry.split;
    let parts = [
        ("load", load),
        ("run", run),
        ("append", append),
        ("sync", sync),
    ];
    let mut told = vec![(Reply::bulk("id"), Reply::wide(entry.id))];
    told.extend(parts.map(|(name, micros)| (Reply::bulk(name), Reply::wide(micros))));
    Reply::Map(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Settings;
    use crate::{Keyspace, resp::Protocol};

    struct One {
        server: Server,
        client: ClientId,
    }

    impl One {
        fn new() -> Self {
            let mut server = Server::new(Keyspace::new(), Settings::default(), 0);
            let client = server.connect("10.0.0.1:7".to_owned(), 0);
            Self { server, client }
        }

        fn ask(&mut self, words: &str) -> String {
            let words: Vec<&str> = words.split(' ').collect();
            let stamp = Stamp::new(9_000, 1);
            let reply = self.server.handle(self.client, &Command::of(&words), stamp);
            let mut out = Vec::new();
            reply.reply.encode(Protocol::Resp2, &mut out);
            String::from_utf8_lossy(&out).replace("\r\n", " ")
        }

        fn took(&mut self, words: &[&str], load: u64, run: u64) -> Option<u64> {
            let split = Split {
                load,
                run,
                ..Split::default()
            };
            let (command, stamp) = (Command::of(words), Stamp::new(9_000, 1));
            self.server.took(self.client, &command, split, stamp)
        }
    }

    #[test]
    fn slow_commands_are_told_with_the_split_of_their_time() {
        let mut one = One::new();
        one.ask("CLIENT SETNAME me");
        assert_eq!(one.took(&["GET", "k"], 4_000, 5_999), None);
        assert_eq!(one.took(&["GET", "k"], 4_000, 6_000), Some(0));
        assert_eq!(one.took(&["SET", "k", "v"], 0, 20_000), Some(1));
        one.server.log_took(1, 30, 700);
        assert_eq!(one.ask("SLOWLOG LEN"), ":2 ");
        let newest = "*6 :1 :9 :20000 *3 $3 SET $1 k $1 v $10 10.0.0.1:7 $2 me ";
        assert_eq!(one.ask("SLOWLOG GET 1"), format!("*1 {newest}"));
        assert!(one.ask("SLOWLOG GET").starts_with(&format!("*2 {newest}")));
        let split = "*10 $2 id :1 $4 load :0 $3 run :20000 $6 append :30 $4 sync :700 ";
        assert_eq!(one.ask("SLOWLOG SPLIT 1"), format!("*1 {split}"));
        assert_eq!(
            one.ask("SLOWLOG GET -2"),
            "-ERR count should be greater than or equal to -1 "
        );
        assert_eq!(one.ask("SLOWLOG RESET"), "+OK ");
        assert_eq!(one.ask("SLOWLOG LEN"), ":0 ");
        // What the disk tells of a forgotten command changes nothing.
        one.server.log_took(1, 1, 1);
    }

    #[test]
    fn what_is_slow_and_kept_is_set_by_config() {
        let mut one = One::new();
        assert_eq!(
            one.ask("CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 3"),
            "+OK "
        );
        for number in 0..5 {
            assert_eq!(one.took(&["PING"], 0, 0), Some(number));
        }
        assert_eq!(one.ask("SLOWLOG LEN"), ":3 ");
        assert_eq!(one.ask("CONFIG SET slowlog-log-slower-than -1"), "+OK ");
        assert_eq!(one.took(&["PING"], 0, u64::MAX), None);
    }

    #[test]
    fn passwords_are_not_kept_and_long_commands_are_cut() {
        let secret = shown(&Command::of(&["AUTH", "user", "secret"]));
        assert_eq!(secret, [&b"AUTH"[..], b"(redacted)", b"(redacted)"]);
        let hello = shown(&Command::of(&["HELLO", "3", "AUTH", "u", "secret"]));
        assert!(!hello.concat().windows(6).any(|part| part == b"secret"));
        let words: Vec<String> = (0..40).map(|number| number.to_string()).collect();
        let cut = shown(&Command::of(&words));
        assert_eq!(cut.len(), WORDS_MAX);
        assert_eq!(cut[31], b"... (9 more arguments)");
        let long = shown(&Command::of(&["GET".to_owned(), "x".repeat(130)]));
        assert!(long[1].ends_with(b"x... (2 more bytes)"));
    }

    #[test]
    fn latency_keeps_the_longest_of_each_second_above_the_threshold() {
        use crate::server::LatencyEvent::{Append, Sync};
        let mut one = One::new();
        one.server.lasted(Sync, 900_000, Stamp::new(1_000, 1));
        assert_eq!(one.ask("LATENCY LATEST"), "*0 ");
        one.ask("CONFIG SET latency-monitor-threshold 5");
        for (event, micros, at) in [
            (Sync, 4_999, 1_000),
            (Sync, 7_000, 1_500),
            (Sync, 6_000, 1_900),
            (Sync, 5_000, 3_000),
            (Append, 8_000, 3_000),
        ] {
            one.server.lasted(event, micros, Stamp::new(at, 1));
        }
        let sync = "*4 $16 aof-fsync-always :3 :5 :7 ";
        assert_eq!(
            one.ask("LATENCY LATEST"),
            format!("*2 *4 $9 aof-write :3 :8 :8 {sync}")
        );
        assert_eq!(
            one.ask("LATENCY HISTORY aof-fsync-always"),
            "*2 *2 :1 :7 *2 :3 :5 "
        );
        assert_eq!(one.ask("LATENCY HISTORY fork"), "*0 ");
        assert_eq!(one.ask("LATENCY RESET aof-write fork"), ":1 ");
        assert_eq!(one.ask("LATENCY LATEST"), format!("*1 {sync}"));
        assert_eq!(one.ask("LATENCY RESET"), ":1 ");
        one.took(&["GET", "k"], 0, 5_000);
        one.took(&["KEYS", "*"], 0, 6_000);
        let (keys, get) = ("*4 $7 command :9 :6 :6 ", "*4 $12 fast-command :9 :5 :5 ");
        assert_eq!(one.ask("LATENCY LATEST"), format!("*2 {keys}{get}"));
    }
}
