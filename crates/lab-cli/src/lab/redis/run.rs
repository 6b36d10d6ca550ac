//! Runs a trial: a server, the keys it has from the beginning, and redis-benchmark for each work.

use std::process::{Child, Command, Stdio};

use super::server::{Link, Server, encoded};
use super::trial::{Books, Durability, Load, Measure, Outcome, System, Trial, Work};

/// Bytes of a value, an element of the queue and a field's value.
const VALUE_BYTES: usize = 100;
/// Keys that are sent before replies are read.
const FILL_BATCH: u32 = 1_000;

/// Runs a trial in a directory of its own, which is gone afterwards.
///
/// # Errors
/// What failed.
pub fn run(trial: &Trial, progress: &mut dyn FnMut(f64)) -> Result<Outcome, String> {
    let directory = tempfile::tempdir();
    let directory = directory.map_err(|error| format!("no directory for a run: {error}"))?;
    let server = Server::start(trial, directory.path())?;
    let mut link = Link::open(server.port)?;
    fill(&mut link, trial.keys, VALUE_BYTES)?;
    let mut measures = Vec::new();
    for (done, work) in (1_u8..).zip(Work::ALL) {
        let load = trial.load(work);
        let (measured, errors) =
            measure(&server, &mut link, work, &load, &"x".repeat(VALUE_BYTES))?;
        none_of(errors, work)?;
        measures.push(measured);
        progress(f64::from(done) / 5.0);
    }
    Ok(Outcome {
        version: own_version(&mut link)?,
        measures,
        books: books(&mut link)?,
    })
}

/// What redis-server with `appendfsync always` makes of SETs.
#[derive(Debug, Clone, Copy)]
pub struct SyncedSets {
    /// Commands that were answered.
    pub commands: u64,
    /// How long they took.
    pub seconds: f64,
    /// CPU seconds of the server.
    pub cpu: f64,
    /// Half of them take no longer, in milliseconds.
    pub p50_ms: f64,
    /// Nor 99 of a hundred this.
    pub p99_ms: f64,
}

/// Measures SETs on redis-server with `appendfsync always`: one in `share` of a full run's.
///
/// # Errors
/// What failed, or is not on this machine.
pub fn synced_sets(
    directory: &std::path::Path,
    (clients, keys): (u32, u32),
    share: u32,
    seed: u64,
) -> Result<SyncedSets, String> {
    let trial = Trial {
        system: System::Redis7,
        durability: Durability::Sync,
        clients,
        pipeline: 1,
        keys,
        share,
        seed,
    };
    let server = Server::start(&trial, directory)?;
    let mut link = Link::open(server.port)?;
    let (load, value) = (trial.load(Work::Set), "x".repeat(VALUE_BYTES));
    let (measured, errors) = measure(&server, &mut link, Work::Set, &load, &value)?;
    none_of(errors, Work::Set)?;
    Ok(SyncedSets {
        commands: measured.commands,
        seconds: measured.seconds,
        cpu: measured.cpu,
        p50_ms: measured.p50_ms,
        p99_ms: measured.p99_ms,
    })
}

/// The server's own version.
///
/// # Errors
/// It does not answer.
pub fn own_version(link: &mut Link) -> Result<String, String> {
    let info = link.ask(&["INFO", "server"])?;
    Ok(version(&info).to_owned())
}

/// From INFO: ManxDB and Valkey tell one of Redis beside it.
fn version(info: &str) -> &str {
    let names = ["manxdb_version:", "valkey_version:", "redis_version:"];
    let told = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
    names.into_iter().find_map(told).unwrap_or_default().trim()
}

/// Gives each key that redis-benchmark draws a value.
///
/// # Errors
/// The connection's, or what an error reply says.
pub fn fill(link: &mut Link, keys: u32, value_bytes: usize) -> Result<(), String> {
    let value = "x".repeat(value_bytes);
    let mut number = 0;
    while number < keys {
        let batch = number..(number + FILL_BATCH).min(keys);
        let set = |number| encoded(&["SET", &format!("key:{number:012}"), &value]);
        link.send(&batch.clone().flat_map(set).collect::<Vec<u8>>())?;
        number = batch.end;
        for _ in batch {
            link.reply()?;
        }
    }
    Ok(())
}

fn none_of(errors: u64, work: Work) -> Result<(), String> {
    if errors > 0 {
        return Err(format!("{errors} errors were replied to {}", work.title()));
    }
    Ok(())
}

/// What came of a load, and how many errors were replied. What `value` has of `__rand_int__` is a
/// number drawn anew each time.
///
/// # Errors
/// redis-benchmark's, or the server's that does not tell its numbers.
pub fn measure(
    server: &Server,
    link: &mut Link,
    work: Work,
    load: &Load,
    value: &str,
) -> Result<(Measure, u64), String> {
    let errors = number(link, "stats", "total_error_replies")?;
    let used = server.cpu()?;
    let programs = commands(work, value);
    let programs = programs.iter().map(|words| start(server.port, load, words));
    let programs = programs.collect::<Result<Vec<_>, _>>()?;
    let told = programs
        .into_iter()
        .map(finish)
        .collect::<Result<Vec<_>, _>>()?;
    let cpu = server.cpu()? - used;
    let errors = number(link, "stats", "total_error_replies")? - errors;
    let worst = |number: fn(&Told) -> f64| told.iter().map(number).fold(0.0, f64::max);
    let slowest = told
        .iter()
        .map(|one| one.per_second)
        .fold(f64::MAX, f64::min);
    let measured = Measure {
        work,
        commands: load.all_commands(work),
        seconds: f64::from(load.commands) / slowest,
        cpu,
        mean_ms: worst(|one| one.mean_ms),
        p50_ms: worst(|one| one.p50_ms),
        p99_ms: worst(|one| one.p99_ms),
    };
    Ok((measured, errors))
}

/// What redis-benchmark sends: of a queue, two programs at the same time.
fn commands(work: Work, value: &str) -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let drawn = "__rand_int__";
    let (key, member) = (format!("key:{drawn}"), format!("member:{drawn}"));
    match work {
        Work::Get => vec![words(&["GET", &key])],
        Work::Set => vec![words(&["SET", &key, value])],
        Work::Hset => vec![words(&["HSET", "hash", &member, value])],
        // Whoever takes waits for whoever gives.
        Work::Queue => vec![
            words(&["BRPOP", "queue", "0"]),
            words(&["LPUSH", "queue", value]),
        ],
        Work::Zadd => vec![words(&["ZADD", "zset", drawn, &member])],
    }
}

fn start(port: u16, load: &Load, words: &[String]) -> Result<Child, String> {
    let mut command = Command::new("redis-benchmark");
    command.arg("--csv");
    for (flag, number) in [
        ("-p", u32::from(port)),
        ("-n", load.commands),
        ("-c", load.clients),
        ("-P", load.pipeline),
        ("-r", load.keys),
    ] {
        command.arg(flag).arg(number.to_string());
    }
    let started = command
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    started.map_err(|error| {
        format!("cannot start redis-benchmark (apt-get install redis-tools): {error}")
    })
}

/// What redis-benchmark tells.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Told {
    per_second: f64,
    mean_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
}

fn finish(program: Child) -> Result<Told, String> {
    let cannot = |error: std::io::Error| format!("redis-benchmark: {error}");
    let output = program.wait_with_output().map_err(cannot)?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("redis-benchmark: {}: {said}{text}", output.status));
    }
    told(&text).ok_or_else(|| format!("redis-benchmark says '{text}'"))
}

/// From the last line: `"SET …","rate","average","least","p50","p95","p99","most"`.
fn told(text: &str) -> Option<Told> {
    let line = text.lines().rfind(|line| !line.is_empty())?;
    // A command may have what separates numbers.
    let mut numbers = line
        .rsplitn(8, ',')
        .map(|number| number.trim_matches('"').parse::<f64>().ok());
    let (_most, p99_ms, _p95) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let (p50_ms, _least, mean_ms) = (numbers.next()??, numbers.next()??, numbers.next()??);
    Some(Told {
        per_second: numbers.next()??,
        mean_ms,
        p50_ms,
        p99_ms,
    })
}

/// A count that INFO tells in a section.
///
/// # Errors
/// The connection's, or INFO does not tell it.
pub fn number(link: &mut Link, section: &str, name: &str) -> Result<u64, String> {
    let info = link.ask(&["INFO", section])?;
    let mut lines = info.lines().filter_map(|line| line.split_once(':'));
    let count = lines.find_map(|(known, count)| (known == name).then_some(count));
    let count = count.and_then(|count| count.trim().parse().ok());
    count.ok_or_else(|| format!("INFO tells no {name}"))
}

fn books(link: &mut Link) -> Result<Books, String> {
    Ok(Books {
        keys: link.count(&["DBSIZE"])?,
        queued: link.count(&["LLEN", "queue"])?,
        fields: link.count(&["HLEN", "hash"])?,
        members: link.count(&["ZCARD", "zset"])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_redis_benchmark_tells_is_read() {
        let names = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                     \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n";
        let line = "\"SET a,b\",\"71428.57\",\"0.218\",\"0.016\",\"0.127\",\"0.223\",\"3.879\",\"5.343\"\n";
        let found = told(&format!("{names}{line}")).unwrap();
        let expected = Told {
            per_second: 71_428.57,
            mean_ms: 0.218,
            p50_ms: 0.127,
            p99_ms: 3.879,
        };
        assert_eq!(found, expected);
        assert_eq!(told(names), None);
        assert_eq!(told(""), None);
    }

    #[test]
    fn the_servers_own_version_is_told() {
        let ours = "redis_version:7.2.0\r\nmanxdb_version:0.1.0\r\n";
        assert_eq!(version(ours), "0.1.0");
        assert_eq!(version("redis_version:7.0.15\r\n"), "7.0.15");
        let valkey = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n";
        assert_eq!(version(valkey), "9.1.2");
    }
}
