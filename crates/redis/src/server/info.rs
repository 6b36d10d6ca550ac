//! Questions about the server.

use super::call::Call;
use super::events::Events;
use super::state::Server;
use super::statistics::Statistics;
use crate::REDIS_VERSION;
use crate::command::Command;
use crate::error::CommandError;
use crate::glob;
use crate::keyspace::DATABASES;
use crate::number;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

pub(super) fn unknown(command: &Command) -> CommandError {
    CommandError::new(format!(
        "ERR unknown subcommand or wrong number of arguments for '{}'. Try {} HELP.",
        String::from_utf8_lossy(command.arg(1)),
        String::from_utf8_lossy(command.name()).to_uppercase()
    ))
}

type Section = (&'static str, Vec<(String, String)>);

/// Sections of INFO: what is no number stands before the numbers of the table.
fn sections(server: &Server, now: u64) -> Vec<Section> {
    let mut sections = vec![
        ("Server", about(server, now)),
        ("Clients", Vec::new()),
        (
            "Memory",
            vec![
                line("maxmemory_policy", &"noeviction"),
                line("mem_allocator", &"mimalloc"),
            ],
        ),
        (
            "Persistence",
            vec![
                line("rdb_bgsave_in_progress", &0),
                line("rdb_last_bgsave_status", &"ok"),
                line("aof_enabled", &1),
                line("aof_rewrite_in_progress", &0),
                line("aof_last_write_status", &written(server)),
            ],
        ),
        ("Stats", vec![line("evicted_keys", &0)]),
        (
            "Replication",
            vec![line("role", &"master"), line("connected_slaves", &0)],
        ),
        ("Cluster", vec![line("cluster_enabled", &0)]),
        ("Types", Vec::new()),
    ];
    for (number, value) in server.numbers() {
        let of_it = sections
            .iter_mut()
            .filter(|(name, _)| *name == number.section);
        of_it.for_each(|(_, lines)| lines.push(line(number.name, &value)));
    }
    sections.extend(server.statistics.sections());
    sections.push(("Keyspace", databases(server)));
    let more = server.more_info.iter();
    sections.extend(more.map(|(name, lines)| (*name, lines.clone())));
    sections
}

fn line(name: &str, value: &dyn ToString) -> (String, String) {
    (name.to_owned(), value.to_string())
}

fn written(server: &Server) -> &'static str {
    if server.refuses_writes() { "err" } else { "ok" }
}

fn about(server: &Server, now: u64) -> Vec<(String, String)> {
    let settings = &server.settings;
    let uptime = now.saturating_sub(server.started_millis) / 1000;
    vec![
        line("redis_version", &REDIS_VERSION),
        line("manxdb_version", &settings.version),
        line("redis_mode", &"standalone"),
        line("os", &std::env::consts::OS),
        line("arch_bits", &usize::BITS),
        line("run_id", &settings.run_id),
        line("tcp_port", &settings.port),
        line("uptime_in_seconds", &uptime),
        line("uptime_in_days", &(uptime / 86_400)),
    ]
}

fn databases(server: &Server) -> Vec<(String, String)> {
    let keyspace = &server.keyspace;
    let used = (0..DATABASES).filter(|db| !keyspace.is_empty(*db));
    used.map(|db| {
        let (keys, expires) = (keyspace.len(db), keyspace.expiring_len(db));
        (
            format!("db{db}"),
            format!("keys={keys},expires={expires},avg_ttl=0"),
        )
    })
    .collect()
}

pub fn info(call: &mut Call<'_>, command: &Command) -> Answer {
    let is_asked = |wanted: &str| {
        let mut words = command.args_from(1);
        words.any(|word| word.eq_ignore_ascii_case(wanted.as_bytes()))
    };
    let wants_all = is_asked("all") || is_asked("everything");
    let wants_most = command.len() == 1 || is_asked("default");
    let wants = |name: &str| {
        let is_long = matches!(name, "Commandstats" | "Latencystats");
        wants_all || wants_most && !is_long || is_asked(name)
    };
    let mut text = String::new();
    for (name, lines) in sections(call.server, call.stamp.now_millis) {
        if wants(name) {
            let separator = if text.is_empty() { "" } else { "\r\n" };
            text.push_str(&format!("{separator}# {name}\r\n"));
            for (name, value) in lines {
                text.push_str(&format!("{name}:{value}\r\n"));
            }
        }
    }
    Ok(Reply::Verbatim(text))
}

pub fn config(call: &mut Call<'_>, command: &Command) -> Answer {
    if command.is_word(1, "GET") && command.len() > 2 {
        let shown = call.server.settings.shown().into_iter();
        let is_wanted = |name: &str| {
            let mut patterns = command.args_from(2).map(<[u8]>::to_ascii_lowercase);
            patterns.any(|pattern| glob::matches(&pattern, name.as_bytes()))
        };
        let found = shown.filter(|(name, _)| is_wanted(name));
        return Ok(Reply::Map(
            found
                .map(|(name, value)| (Reply::bulk(name), Reply::bulk(value)))
                .collect(),
        ));
    }
    if command.is_word(1, "SET") && command.len() >= 4 && command.len().is_multiple_of(2) {
        return set_config(call, command);
    }
    if command.is_word(1, "RESETSTAT") && command.len() == 2 {
        call.server.keyspace.statistics = crate::keyspace::Statistics::default();
        (call.server.commands, call.server.connections) = (0, 0);
        call.server.errors = 0;
        call.server.statistics = Statistics::default();
        return Ok(Reply::OK);
    }
    if command.is_word(1, "REWRITE") && command.len() == 2 {
        return Err(CommandError::text(
            "ERR The server is running without a config file",
        ));
    }
    Err(unknown(command))
}

fn set_config(call: &mut Call<'_>, command: &Command) -> Answer {
    let mut settings = call.server.settings.clone();
    for place in (2..command.len()).step_by(2) {
        let name = String::from_utf8_lossy(command.arg(place)).to_ascii_lowercase();
        let value = command.arg(place + 1);
        let refused = |why: &str| {
            CommandError::new(format!(
                "ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"
            ))
        };
        let count = || {
            let count = number::integer(value).and_then(|count| usize::try_from(count).ok());
            count.ok_or_else(|| refused("argument couldn't be parsed into an integer"))
        };
        if let Some(is_taken) = settings.set_layout(&name, value) {
            if !is_taken {
                return Err(refused("argument couldn't be parsed"));
            }
            continue;
        }
        match name.as_str() {
            "maxmemory" => {
                let bytes = number::integer(value).and_then(|bytes| usize::try_from(bytes).ok());
                settings.memory_bytes =
                    bytes.ok_or_else(|| refused("argument must be a memory value"))?;
            }
            "lua-time-limit" | "busy-reply-threshold" => {
                let millis = number::integer(value).and_then(|millis| u64::try_from(millis).ok());
                settings.script_limit_millis =
                    millis.ok_or_else(|| refused("argument couldn't be parsed into an integer"))?;
            }
            "slowlog-log-slower-than" => {
                settings.slower_than_micros = number::integer(value)
                    .ok_or_else(|| refused("argument couldn't be parsed into an integer"))?;
            }
            "notify-keyspace-events" => {
                let wrong = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
                settings.events = Events::of(value).ok_or_else(|| refused(wrong))?;
            }
            "tracking-table-max-keys" => {
                settings.tracked_keys_max = count()?;
            }
            "slowlog-max-len" => {
                settings.slow_commands_max = count()?;
            }
            "latency-monitor-threshold" => {
                let millis = number::integer(value).and_then(|millis| u64::try_from(millis).ok());
                settings.latency_threshold_millis =
                    millis.ok_or_else(|| refused("argument couldn't be parsed into an integer"))?;
            }
            _ => {
                let shown = settings.shown();
                let Some((_, held)) = shown.iter().find(|(shown, _)| *shown == name) else {
                    return Err(CommandError::new(format!(
                        "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
                    )));
                };
                if held.as_bytes() != value {
                    return Err(refused("it cannot be changed in this server"));
                }
            }
        }
    }
    let has_events = settings.events.is_on();
    call.server.settings = settings;
    call.server.keyspace.record_expired(has_events);
    Ok(Reply::OK)
}

pub fn save(_call: &mut Call<'_>, _command: &Command) -> Answer {
    Ok(Reply::OK)
}

pub fn bgsave(_call: &mut Call<'_>, _command: &Command) -> Answer {
    Ok(Reply::Simple("Background saving started"))
}

pub fn bgrewriteaof(_call: &mut Call<'_>, _command: &Command) -> Answer {
    Ok(Reply::Simple(
        "Background append only file rewriting started",
    ))
}

pub fn lastsave(call: &mut Call<'_>, _command: &Command) -> Answer {
    Ok(Reply::Integer(
        i64::try_from(call.stamp.now_millis / 1000).unwrap_or(i64::MAX),
    ))
}

pub fn role(_call: &mut Call<'_>, _command: &Command) -> Answer {
    Ok(Reply::Array(vec![
        Reply::bulk("master"),
        Reply::Integer(0),
        Reply::Array(Vec::new()),
    ]))
}

pub fn wait(_call: &mut Call<'_>, command: &Command) -> Answer {
    number::parse(command.arg(1))?;
    if number::parse(command.arg(2))? < 0 {
        return Err(CommandError::text("ERR timeout is negative"));
    }
    Ok(Reply::Integer(0))
}

pub fn memory(call: &mut Call<'_>, command: &Command) -> Answer {
    if command.is_word(1, "USAGE") && command.len() >= 3 {
        let db = call.client().db;
        let key = command.arg(2);
        let entry = call.server.keyspace.peek(db, key);
        return Ok(entry.map_or(Reply::Null, |entry| Reply::count(key.len() + entry.bytes())));
    }
    if command.is_word(1, "STATS") {
        return Ok(memory_stats(call.server));
    }
    if command.is_word(1, "PURGE") {
        return Ok(Reply::OK);
    }
    if command.is_word(1, "DOCTOR") || command.is_word(1, "MALLOC-STATS") {
        return Ok(Reply::bulk("See INFO memory and the admin page."));
    }
    Err(unknown(command))
}

/// MEMORY STATS: what is counted here, under Redis's names; nothing is told of the allocator.
fn memory_stats(server: &Server) -> Reply {
    let keyspace = &server.keyspace;
    let (_, scripts, _) = server.scripts.sizes();
    let bytes = keyspace.memory();
    let keys: usize = (0..DATABASES).map(|db| keyspace.len(db)).sum();
    let counts = [
        ("total.allocated", bytes + scripts),
        ("lua.caches", scripts),
        ("keys.count", keys),
        ("keys.bytes-per-key", bytes.checked_div(keys).unwrap_or(0)),
        ("keys.not-in-memory", keyspace.cold()),
        ("dataset.bytes", bytes),
    ];
    let counts = counts.map(|(name, count)| (Reply::bulk(name), Reply::count(count)));
    Reply::Map(counts.into())
}

pub fn debug(_call: &mut Call<'_>, command: &Command) -> Answer {
    match () {
        () if command.is_word(1, "JMAP") || command.is_word(1, "SET-ACTIVE-EXPIRE") => {
            Ok(Reply::OK)
        }
        () => Err(CommandError::text(
            "ERR DEBUG is not supported: it reaches into Redis's own memory",
        )),
    }
}

pub fn lolwut(call: &mut Call<'_>, _command: &Command) -> Answer {
    let version = call.server.settings.version;
    Ok(Reply::Verbatim(format!(
        "ManxDB {version}, which clients may take for Redis ver. {REDIS_VERSION}\n"
    )))
}

pub fn shutdown(_call: &mut Call<'_>, _command: &Command) -> Answer {
    Err(CommandError::text(
        "ERR SHUTDOWN is not supported: end the process with SIGTERM",
    ))
}
