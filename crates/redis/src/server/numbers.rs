//! The numbers that INFO and `/metrics` tell, one table for both.

use super::state::Server;
use crate::keyspace::{DATABASES, Kind};

/// A number that a server tells.
#[derive(Debug)]
pub struct Number {
    /// The section of INFO that it stands in.
    pub section: &'static str,
    /// Its name there; in `/metrics`, `manxdb_redis_` stands before it.
    pub name: &'static str,
    of: fn(&Server) -> u64,
}

/// What the process around a server tells it, for INFO.
#[derive(Debug, Default, Clone, Copy)]
pub struct Outside {
    /// Batches of rows appended to the commit log.
    pub log_appends: u64,
    /// Microseconds that took.
    pub log_append_micros: u64,
    /// Connections whose replies wait for the disk.
    pub held_clients: u64,
    /// Connections whose commands wait for values or names of keys.
    pub loading_clients: u64,
}

const fn number(section: &'static str, name: &'static str, of: fn(&Server) -> u64) -> Number {
    Number { section, name, of }
}

fn keys(server: &Server) -> u64 {
    (0..DATABASES)
        .map(|db| server.keyspace.len(db) as u64)
        .sum()
}

/// All of them, section by section.
pub static NUMBERS: &[Number] = &[
    number("Clients", "connected_clients", |s| s.clients.len() as u64),
    number("Clients", "blocked_clients", |s| s.waiting.len() as u64),
    number("Clients", "tracking_clients", |s| {
        s.tracked.clients.len() as u64
    }),
    number("Clients", "held_clients", |s| s.outside.held_clients),
    number("Clients", "loading_clients", |s| s.outside.loading_clients),
    number("Memory", "used_memory", |s| s.keyspace.memory() as u64),
    number("Memory", "used_memory_dataset", |s| {
        s.keyspace.memory() as u64
    }),
    number("Memory", "maxmemory", |s| s.settings.memory_bytes as u64),
    number("Memory", "used_memory_vm_eval", |s| {
        s.scripts.sizes().2 as u64
    }),
    number("Memory", "used_memory_scripts", |s| {
        s.scripts.sizes().1 as u64
    }),
    number("Memory", "number_of_cached_scripts", |s| {
        s.scripts.sizes().0 as u64
    }),
    number("Persistence", "loading", |s| {
        u64::from(!s.keyspace.is_complete())
    }),
    number("Persistence", "log_appends", |s| s.outside.log_appends),
    number("Persistence", "log_append_micros", |s| {
        s.outside.log_append_micros
    }),
    number("Persistence", "writes_refused", |s| {
        u64::from(s.refuses_writes())
    }),
    number("Stats", "total_connections_received", |s| s.connections),
    number("Stats", "total_commands_processed", |s| s.commands),
    number("Stats", "total_error_replies", |s| s.errors),
    number("Stats", "total_blocking_waits", |s| s.waiting.total()),
    number("Stats", "total_slow_commands", |s| s.slow.total()),
    number("Memory", "number_of_libraries", |s| {
        s.scripts.functions.sizes().0 as u64
    }),
    number("Memory", "number_of_functions", |s| {
        s.scripts.functions.sizes().1 as u64
    }),
    number("Stats", "scripts_run", |s| s.scripts.runs),
    number("Stats", "scripts_killed", |s| s.scripts.kills),
    number("Stats", "expired_keys", |s| s.keyspace.statistics.expired),
    number("Stats", "expired_subkeys", |s| {
        s.keyspace.statistics.expired_fields
    }),
    number("Stats", "values_evicted", |s| s.keyspace.statistics.evicted),
    number("Stats", "values_loaded", |s| s.keyspace.statistics.loaded),
    number("Stats", "keyspace_hits", |s| s.keyspace.statistics.hits),
    number("Stats", "keyspace_misses", |s| s.keyspace.statistics.misses),
    number("Stats", "pubsub_channels", |s| s.channels.names() as u64),
    number("Stats", "pubsub_patterns", |s| s.channels.patterns() as u64),
    number("Stats", "tracking_total_keys", |s| s.tracked.keys() as u64),
    number("Stats", "tracking_total_items", |s| {
        s.tracked.items() as u64
    }),
    number("Stats", "tracking_total_prefixes", |s| {
        s.tracked.prefixes() as u64
    }),
    number("Types", "keys", keys),
    number("Types", "keys_string", |s| s.keyspace.keys_of(Kind::Str)),
    number("Types", "keys_list", |s| s.keyspace.keys_of(Kind::List)),
    number("Types", "keys_hash", |s| s.keyspace.keys_of(Kind::Hash)),
    number("Types", "keys_set", |s| s.keyspace.keys_of(Kind::Set)),
    number("Types", "keys_zset", |s| s.keyspace.keys_of(Kind::ZSet)),
    number("Types", "keys_stream", |s| s.keyspace.keys_of(Kind::Stream)),
    number("Types", "keys_not_in_memory", |s| s.keyspace.cold() as u64),
];

impl Server {
    /// Its numbers now, as [`NUMBERS`] names them.
    pub fn numbers(&self) -> impl Iterator<Item = (&'static Number, u64)> + '_ {
        NUMBERS.iter().map(|number| (number, (number.of)(self)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Settings;
    use crate::{Command, Keyspace, Stamp};

    #[test]
    fn info_tells_every_number_as_the_table_does() {
        let mut server = Server::new(Keyspace::new(), Settings::default(), 0);
        let client = server.connect("test".to_owned(), 0);
        for words in [
            "SET s 1",
            "RPUSH l 1",
            "HSET h f 1",
            "SADD t 1",
            "ZADD z 1 m",
            "XADD x * f v",
            "SET l over",
            "DEL h",
            "GET none",
            "NONSENSE",
            "EVALSHA 0 0",
            "EVAL return(1) 0",
            "BLPOP empty 0",
        ] {
            let words: Vec<&str> = words.split(' ').collect();
            server.handle(client, &Command::of(&words), Stamp::new(1, 1));
        }
        server.outside.log_appends = 17;
        let info = Command::of(&["INFO"]);
        let crate::Reply::Verbatim(info) = server.handle(client, &info, Stamp::new(1, 1)).reply
        else {
            panic!("INFO answers with text")
        };
        let mut names: Vec<&str> = NUMBERS.iter().map(|number| number.name).collect();
        for (number, value) in server.numbers() {
            let line = format!("\r\n{}:{value}\r\n", number.name);
            assert!(info.contains(&line), "{line} in {info}");
        }
        names.sort_unstable();
        assert!(names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
        let told = |name: &str| {
            let mut all = server.numbers();
            all.find(|(number, _)| number.name == name).unwrap().1
        };
        for (name, value) in [
            ("keys", 5),
            ("keys_string", 2),
            ("keys_list", 0),
            ("keys_hash", 0),
            ("keys_set", 1),
            ("keys_zset", 1),
            ("keys_stream", 1),
            ("total_error_replies", 2),
            ("scripts_run", 1),
            ("number_of_cached_scripts", 1),
            ("used_memory_scripts", 9),
            ("blocked_clients", 1),
            ("total_blocking_waits", 1),
        ] {
            assert_eq!(told(name), value, "{name}");
        }
    }
}
