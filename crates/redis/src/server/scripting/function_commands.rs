//! FUNCTION, FCALL, FCALL_RO.

use super::commands::keys_of;
use super::host::NoHost;
use super::running::{self, Caller};
use crate::command::Command;
use crate::error::CommandError;
use crate::keyspace::rows;
use crate::resp::Reply;
use crate::scripts::functions::{Functions, Library, RegisteredFunction, Unloaded};
use crate::scripts::interpreter::ScriptEntry;
use crate::server::{Call, ClientId, Server};
use crate::{Stamp, dump, glob};

type Answer = Result<Reply, CommandError>;

pub fn fcall(call: &mut Call<'_>, command: &Command) -> Answer {
    run(call, command, false)
}

pub fn fcall_ro(call: &mut Call<'_>, command: &Command) -> Answer {
    run(call, command, true)
}

fn run(call: &mut Call<'_>, command: &Command, is_read_only: bool) -> Answer {
    let name = String::from_utf8_lossy(command.arg(1)).into_owned();
    let script = call.server.scripts.functions.find(&name);
    let script = script.ok_or(CommandError::text("ERR Function not found"))?;
    let keys = keys_of(command)?;
    if is_read_only && !script.flags.no_writes {
        return Err(CommandError::text(
            "ERR Can not execute a script with write flag using *_ro command.",
        ));
    }
    let words: Vec<&[u8]> = command.args_from(3).collect();
    let caller = Caller {
        id: call.id,
        stamp: call.stamp,
        is_read_only,
        host: &mut *call.host,
    };
    // As it was registered, whatever case it was called in.
    let entry = ScriptEntry::Function(&script.title);
    let (reply, effects) = running::run(call.server, caller, &script, entry, words.split_at(keys));
    call.effects.append(effects);
    Ok(reply)
}

pub fn function(call: &mut Call<'_>, command: &Command) -> Answer {
    let word = command.arg(1).to_ascii_uppercase();
    let arity = |name: &str| Err(CommandError::arity(&format!("function|{name}")));
    match (word.as_slice(), command.len()) {
        (b"LOAD", 3..) => load(call, command),
        (b"LOAD", _) => arity("load"),
        (b"DELETE", 3) => delete(call, command.arg(2)),
        (b"DELETE", _) => arity("delete"),
        (b"FLUSH", 2 | 3) => {
            if command.len() == 3 && !command.is_word(2, "SYNC") && !command.is_word(2, "ASYNC") {
                return Err(CommandError::text(
                    "ERR FUNCTION FLUSH only supports SYNC|ASYNC option",
                ));
            }
            remove_all(call);
            Ok(Reply::OK)
        }
        (b"FLUSH", _) => arity("flush"),
        (b"LIST", _) => list(call, command),
        (b"STATS", 2) => Ok(stats(call.server, call.stamp)),
        (b"STATS", _) => arity("stats"),
        (b"KILL", 2) => call.server.kill_script(),
        (b"KILL", _) => arity("kill"),
        (b"DUMP", 2) => Ok(Reply::Bulk(dumped(call.server))),
        (b"DUMP", _) => arity("dump"),
        (b"RESTORE", 3 | 4) => restore(call, command),
        (b"RESTORE", _) => arity("restore"),
        _ => Err(CommandError::new(format!(
            "ERR unknown subcommand '{}'. Try FUNCTION HELP.",
            String::from_utf8_lossy(command.arg(1))
        ))),
    }
}

fn load(call: &mut Call<'_>, command: &Command) -> Answer {
    let last = command.len() - 1;
    let mut replaces = false;
    for place in 2..last {
        if !command.is_word(place, "REPLACE") {
            return Err(CommandError::new(format!(
                "ERR Unknown option given: {}",
                String::from_utf8_lossy(command.arg(place))
            )));
        }
        replaces = true;
    }
    let name = add(call, command.arg(last), replaces)?;
    Ok(Reply::bulk(name))
}

/// Runs the code of a library, keeps it, and writes its row.
fn add(call: &mut Call<'_>, code: &[u8], replaces: bool) -> Result<String, CommandError> {
    let library = made(call, code)?;
    let name = library.name.clone();
    call.server.scripts.functions.add(library, replaces)?;
    call.effects.rows.push(rows::library(&name, Some(code)));
    Ok(name)
}

fn made(call: &mut Call<'_>, code: &[u8]) -> Result<Library, CommandError> {
    let unloaded = Unloaded::of(code)?;
    let caller = Caller {
        id: call.id,
        stamp: call.stamp,
        is_read_only: true,
        host: &mut *call.host,
    };
    let script = unloaded.script.clone();
    running::register(call.server, caller, &script, |outcome| {
        unloaded.loaded(outcome)
    })?
}

fn delete(call: &mut Call<'_>, name: &[u8]) -> Answer {
    let name = String::from_utf8_lossy(name);
    if !call.server.scripts.functions.remove(&name) {
        return Err(CommandError::text("ERR Library not found"));
    }
    call.effects.rows.push(rows::library(&name, None));
    Ok(Reply::OK)
}

fn remove_all(call: &mut Call<'_>) {
    let removed = std::mem::take(&mut call.server.scripts.functions);
    let gone = removed
        .libraries()
        .map(|library| rows::library(&library.name, None));
    call.effects.rows.extend(gone);
}

fn list(call: &mut Call<'_>, command: &Command) -> Answer {
    let (mut pattern, mut has_code, mut place) = (None, false, 2);
    while place < command.len() {
        if command.is_word(place, "WITHCODE") && !has_code {
            has_code = true;
        } else if command.is_word(place, "LIBRARYNAME") && pattern.is_none() {
            place += 1;
            if place >= command.len() {
                return Err(CommandError::text(
                    "ERR library name argument was not given",
                ));
            }
            pattern = Some(command.arg(place).to_ascii_lowercase());
        } else {
            return Err(CommandError::new(format!(
                "ERR Unknown argument {}",
                String::from_utf8_lossy(command.arg(place))
            )));
        }
        place += 1;
    }
    let libraries = call.server.scripts.functions.libraries();
    let is_wanted = |library: &&Library| {
        let name = library.name.to_ascii_lowercase();
        let pattern = pattern.as_ref();
        pattern.is_none_or(|pattern| glob::matches(pattern, name.as_bytes()))
    };
    let told = libraries
        .filter(is_wanted)
        .map(|library| told(library, has_code));
    Ok(Reply::Array(told.collect()))
}

fn told(library: &Library, has_code: bool) -> Reply {
    let functions = library.functions.iter().map(told_function);
    let mut told = vec![
        (Reply::bulk("library_name"), Reply::bulk(&library.name)),
        (Reply::bulk("engine"), Reply::bulk("LUA")),
        (Reply::bulk("functions"), Reply::Array(functions.collect())),
    ];
    if has_code {
        told.push((Reply::bulk("library_code"), Reply::bulk(&library.code)));
    }
    Reply::Map(told)
}

fn told_function(function: &RegisteredFunction) -> Reply {
    let description = Some(function.description.as_bytes()).filter(|text| !text.is_empty());
    let flags = function.flag_names.iter();
    let flags = flags.map(|flag| Reply::Status(flag.clone().into_bytes()));
    Reply::Map(vec![
        (Reply::bulk("name"), Reply::bulk(&function.name)),
        (Reply::bulk("description"), Reply::bulk_or_null(description)),
        (Reply::bulk("flags"), Reply::Set(flags.collect())),
    ])
}

/// FUNCTION STATS, which is answered while a script runs too.
pub(crate) fn stats(server: &Server, stamp: Stamp) -> Reply {
    let (libraries, functions) = server.scripts.functions.sizes();
    let running = server.running.as_ref().map_or(Reply::Null, |running| {
        let lasted = stamp.now_millis.saturating_sub(running.since_millis);
        let lasted = i64::try_from(lasted).unwrap_or(i64::MAX);
        Reply::Map(vec![
            (Reply::bulk("name"), Reply::bulk(&running.title)),
            (Reply::bulk("command"), Reply::Array(Vec::new())),
            (Reply::bulk("duration_ms"), Reply::Integer(lasted)),
        ])
    });
    let lua = Reply::Map(vec![
        (Reply::bulk("libraries_count"), Reply::count(libraries)),
        (Reply::bulk("functions_count"), Reply::count(functions)),
    ]);
    Reply::Map(vec![
        (Reply::bulk("running_script"), running),
        (
            Reply::bulk("engines"),
            Reply::Map(vec![(Reply::bulk("LUA"), lua)]),
        ),
    ])
}

fn dumped(server: &Server) -> Vec<u8> {
    let libraries = server.scripts.functions.libraries();
    dump::libraries(libraries.map(|library| &*library.code))
}

fn restore(call: &mut Call<'_>, command: &Command) -> Answer {
    let policy = if command.len() == 4 {
        command.arg(3).to_ascii_uppercase()
    } else {
        b"APPEND".to_vec()
    };
    let (replaces, flushes) = match policy.as_slice() {
        b"APPEND" => (false, false),
        b"REPLACE" => (true, false),
        b"FLUSH" => (false, true),
        _ => {
            return Err(CommandError::text(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
    };
    let codes = dump::libraries_of(command.arg(2)).ok_or(CommandError::text(
        "ERR DUMP payload version or checksum are wrong",
    ))?;
    // All or none.
    let functions = &call.server.scripts.functions;
    let before: Vec<String> = functions
        .libraries()
        .map(|library| library.name.clone())
        .collect();
    let mut restored = if flushes {
        Functions::default()
    } else {
        functions.clone()
    };
    let mut written = Vec::new();
    for code in &codes {
        let library = made(call, code)?;
        written.push(rows::library(&library.name, Some(code)));
        restored.add(library, replaces)?;
    }
    call.server.scripts.functions = restored;
    if flushes {
        let gone = before.iter().map(|name| rows::library(name, None));
        call.effects.rows.extend(gone);
    }
    call.effects.rows.extend(written);
    Ok(Reply::OK)
}

impl Server {
    /// Takes in a library as the store has it, at a start.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    pub fn take_library(&mut self, code: &[u8], stamp: Stamp) -> Result<(), CommandError> {
        let mut call = Call {
            server: self,
            id: ClientId(0),
            stamp,
            effects: crate::keyspace::Effects::default(),
            host: &mut NoHost,
        };
        let library = made(&mut call, code)?;
        self.scripts.functions.add(library, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::RowWrite;
    use crate::resp::Protocol;
    use crate::server::Settings;
    use crate::{Command, Keyspace};

    const LIBRARY: &str = "#!lua name=one\nlocal count = 0\n\
        redis.register_function('count', function(keys, args) count = count + args[1] return count end)\n\
        redis.register_function{function_name='get', flags={'no-writes'}, \
        callback=function(keys) return redis.call('get', keys[1]) end}\n\
        redis.register_function('set', function(keys, args) return redis.call('set', keys[1], args[1]) end)";

    struct One {
        server: Server,
        client: ClientId,
    }

    impl One {
        fn new() -> Self {
            let mut server = Server::new(Keyspace::new(), Settings::default(), 0);
            let client = server.connect("test".to_owned(), 0);
            Self { server, client }
        }

        fn call(&mut self, words: &[&str]) -> (String, Vec<RowWrite>) {
            let command = Command::of(words);
            let handled = self.server.handle(self.client, &command, Stamp::new(1, 1));
            let mut out = Vec::new();
            handled.reply.encode(Protocol::Resp2, &mut out);
            let text = String::from_utf8_lossy(&out).replace("\r\n", " ");
            (text, handled.effects.rows)
        }

        fn ask(&mut self, words: &[&str]) -> String {
            self.call(words).0
        }
    }

    #[test]
    fn functions_run_and_their_variables_do_not_outlive_a_call() {
        let mut one = One::new();
        assert_eq!(one.ask(&["FUNCTION", "LOAD", LIBRARY]), "$3 one ");
        for _ in 0..2 {
            assert_eq!(one.ask(&["FCALL", "count", "0", "7"]), ":7 ");
        }
        let (reply, rows) = one.call(&["FCALL", "set", "1", "k", "v"]);
        assert_eq!((reply.as_str(), rows.len()), ("+OK ", 1));
        assert_eq!(one.ask(&["FCALL_RO", "get", "1", "k"]), "$1 v ");
        let refused = one.ask(&["FCALL_RO", "set", "1", "k", "v"]);
        assert!(refused.starts_with("-ERR Can not execute a script with write flag"));
        assert_eq!(
            one.ask(&["EVAL", "return redis.register_function", "0"]),
            "$-1 "
        );
    }

    #[test]
    fn libraries_are_in_the_store_and_come_back() {
        let mut one = One::new();
        let (_, rows) = one.call(&["FUNCTION", "LOAD", LIBRARY]);
        let [row] = rows.as_slice() else {
            panic!("{rows:?}")
        };
        assert_eq!(row.key, b"Rfone");
        let mut again = One::new();
        let code = row.value.as_deref().unwrap();
        again.server.take_library(code, Stamp::new(1, 1)).unwrap();
        assert_eq!(again.ask(&["FCALL", "count", "0", "3"]), ":3 ");
        let (reply, rows) = again.call(&["FUNCTION", "DELETE", "one"]);
        assert_eq!(reply, "+OK ");
        assert_eq!(
            (rows[0].key.as_slice(), &rows[0].value),
            (&b"Rfone"[..], &None)
        );
        assert_eq!(
            again.ask(&["FCALL", "count", "0", "3"]),
            "-ERR Function not found "
        );
        let damaged = again
            .server
            .take_library(b"#!lua name=one\nreturn", Stamp::new(1, 1));
        assert_eq!(
            damaged.unwrap_err().to_string(),
            "ERR No functions registered"
        );
    }

    #[test]
    fn what_cannot_be_loaded_leaves_all_as_it_was() {
        let mut one = One::new();
        one.ask(&["FUNCTION", "LOAD", LIBRARY]);
        let taken = "#!lua name=two\nredis.register_function('get', function() end)";
        let calls = "#!lua name=two\nredis.call('set', 'k', 'v')";
        for (words, why) in [
            (
                &["FUNCTION", "LOAD", LIBRARY][..],
                "Library 'one' already exists",
            ),
            (&["FUNCTION", "LOAD", taken], "Function get already exists"),
            (
                &["FUNCTION", "LOAD", calls],
                "Error registering functions: ERR user_function:2:",
            ),
            (
                &["FUNCTION", "RESTORE", "abc"],
                "DUMP payload version or checksum",
            ),
            (
                &["FUNCTION", "RESTORE", "abc", "NO"],
                "Wrong restore policy given",
            ),
        ] {
            let (reply, rows) = one.call(words);
            assert!(reply.starts_with(&format!("-ERR {why}")), "{reply}");
            assert!(rows.is_empty(), "{rows:?}");
        }
        let stats = one.ask(&["FUNCTION", "STATS"]);
        assert!(
            stats.ends_with("libraries_count :1 $15 functions_count :3 "),
            "{stats}"
        );
        assert_eq!(one.ask(&["GET", "k"]), "$-1 ");
        let (_, rows) = one.call(&["FUNCTION", "FLUSH"]);
        assert_eq!(rows.len(), 1);
    }
}
