//! What a script that runs asks of the server: commands, randomness, and whether it is to end.

use std::cell::RefCell;

use mlua::{Lua, MultiValue, Value};

use super::host::{ScriptFate, ScriptHost};
use crate::Stamp;
use crate::command::Command;
use crate::error::CommandError;
use crate::keyspace::Effects;
use crate::number::{self, Random};
use crate::resp::Reply;
use crate::scripts::cache::{Script, ScriptFlags};
use crate::scripts::interpreter::{ScriptEntry, ScriptRequest, ScriptResult};
use crate::scripts::library::to_f64;
use crate::scripts::{thrown, values};
use crate::server::table;
use crate::server::{ClientId, Needs, Server, timeout_reply};
use crate::spec::{CommandSpec, Flags, Group};

/// What other connections may know of the script that runs, and do to it.
#[derive(Debug, Default)]
pub struct RunningScript {
    /// It has called a command that writes: it is not ended by others.
    pub has_written: bool,
    /// It is to end.
    pub is_killed: bool,
    /// What it is called, and since when it runs, in milliseconds since 1970.
    pub title: String,
    pub since_millis: u64,
}

/// Who runs a script, and as what.
pub struct Caller<'a> {
    /// The connection.
    pub id: ClientId,
    /// Time and randomness of all its commands.
    pub stamp: Stamp,
    /// It was asked for with EVAL_RO or EVALSHA_RO.
    pub is_read_only: bool,
    /// The process around the server.
    pub host: &'a mut dyn ScriptHost,
}

/// A script in its run.
struct Run<'a, 'h> {
    server: &'a mut Server,
    caller: Caller<'h>,
    flags: ScriptFlags,
    effects: Effects,
    random: Random,
    /// redis.setresp(3) was called.
    is_new: bool,
}

/// Runs a script, or a function of it: its reply, and what its commands wrote.
pub fn run(
    server: &mut Server,
    caller: Caller<'_>,
    script: &Script,
    entry: ScriptEntry<'_>,
    arguments: (&[&[u8]], &[&[u8]]),
) -> (Reply, Effects) {
    within(
        server,
        caller,
        script,
        entry,
        arguments,
        |outcome, is_new| match outcome {
            ScriptResult::Returned(value) => values::from_lua(&value, is_new),
            ScriptResult::Failed(error) => Reply::Error(error),
        },
    )
    .unwrap_or_else(|error| (Reply::Error(error), Effects::default()))
}

/// Runs the code of a library, which asks nothing of the server; what it registers, made by `take`.
///
/// # Errors
/// There is no interpreter.
pub fn register<T>(
    server: &mut Server,
    caller: Caller<'_>,
    script: &Script,
    take: impl FnOnce(ScriptResult) -> T,
) -> Result<T, CommandError> {
    let entry = ScriptEntry::Registration;
    let (taken, effects) = within(server, caller, script, entry, (&[], &[]), |outcome, _| {
        take(outcome)
    })?;
    assert!(effects.is_empty(), "a library wrote while it was loaded");
    Ok(taken)
}

/// Runs a script; `take` makes something of its outcome before the interpreter goes back.
fn within<T>(
    server: &mut Server,
    caller: Caller<'_>,
    script: &Script,
    entry: ScriptEntry<'_>,
    arguments: (&[&[u8]], &[&[u8]]),
    take: impl FnOnce(ScriptResult, bool) -> T,
) -> Result<(T, Effects), CommandError> {
    assert!(
        server.running.is_none(),
        "a script runs within another script"
    );
    let mut interpreter = server.scripts.take_interpreter()?;
    server.scripts.runs += 1;
    let database = server.database(caller.id);
    server.running = Some(RunningScript {
        title: script.title.to_string(),
        since_millis: caller.stamp.now_millis,
        ..RunningScript::default()
    });
    let random = Random(caller.stamp.seed);
    let run = RefCell::new(Run {
        server,
        flags: script.flags,
        caller,
        effects: Effects::default(),
        random,
        is_new: false,
    });
    let outcome = interpreter.run(script, entry, arguments, &|lua, request, asked| {
        let mut run = run
            .try_borrow_mut()
            .map_err(|_| mlua::Error::runtime("the server is asked while it answers"))?;
        run.answer(lua, request, asked)
    });
    let Run {
        server,
        effects,
        is_new,
        ..
    } = run.into_inner();
    let taken = take(outcome, is_new);
    server.running = None;
    if let Some((id, db)) = database {
        server.select(id, db);
    }
    if interpreter.is_usable() {
        server.scripts.give_back(interpreter);
    }
    Ok((taken, effects))
}

impl Run<'_, '_> {
    fn answer(
        &mut self,
        lua: &Lua,
        request: ScriptRequest,
        asked: MultiValue,
    ) -> mlua::Result<Value> {
        let asked = asked.into_vec();
        if request != ScriptRequest::Named {
            return match Reply::from(self.call(&asked)) {
                Reply::Error(error) if request == ScriptRequest::Call => {
                    Err(thrown::table(error.to_string()))
                }
                reply => values::to_lua(lua, reply, self.is_new),
            };
        }
        let Some((Value::String(what), args)) = asked.split_first() else {
            return Err(thrown::text(lua, "the sandbox asks for nothing"));
        };
        match &*what.as_bytes() {
            b"interrupt" => Ok(Value::Boolean(self.interrupt())),
            b"random" => self.random(lua, args),
            b"seed" => {
                let seed = args.first().and_then(to_f64).unwrap_or(0.0);
                self.random = Random(seed.to_bits());
                Ok(Value::Nil)
            }
            b"setresp" => self.set_protocol(args),
            b"log" => self.log(args),
            b"acl_check_cmd" => self.may_run(args),
            _ => Err(thrown::text(lua, "the sandbox asks for what is not there")),
        }
    }

    fn set_protocol(&mut self, args: &[Value]) -> mlua::Result<Value> {
        let refused = |why: &str| Err(thrown::table(why.to_owned()));
        let [version] = args else {
            return refused("ERR redis.setresp() requires one argument.");
        };
        let Some(version) = version.as_i64().filter(|version| matches!(version, 2 | 3)) else {
            return refused("ERR RESP version must be 2 or 3.");
        };
        self.is_new = version == 3;
        Ok(Value::Nil)
    }

    /// Whether the script is to end.
    fn interrupt(&mut self) -> bool {
        let fate = self.caller.host.interrupt(self.server);
        let is_killed = self
            .server
            .running
            .as_ref()
            .is_some_and(|running| running.is_killed);
        is_killed || fate == ScriptFate::IsAbandoned
    }

    /// As math.random, from the stamp's seed.
    fn random(&mut self, lua: &Lua, args: &[Value]) -> mlua::Result<Value> {
        // 53 random bits below 1.
        #[allow(clippy::cast_precision_loss)]
        let part = (self.random.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let bound = |place: usize| args.get(place).and_then(to_f64).map(f64::floor);
        let (low, high) = match (args.len(), bound(0), bound(1)) {
            (0, ..) => return Ok(Value::Number(part)),
            (1, Some(high), _) => (1.0, high),
            (2, Some(low), Some(high)) => (low, high),
            (1 | 2, ..) => {
                return Err(thrown::text(
                    lua,
                    "bad argument to 'random' (number expected)",
                ));
            }
            _ => return Err(thrown::text(lua, "wrong number of arguments")),
        };
        if low > high {
            return Err(thrown::text(
                lua,
                "bad argument to 'random' (interval is empty)",
            ));
        }
        Ok(Value::Number((part * (high - low + 1.0)).floor() + low))
    }

    fn log(&mut self, args: &[Value]) -> mlua::Result<Value> {
        let refused = |why: &str| Err(thrown::table(why.to_owned()));
        let Some((level, texts)) = args.split_first().filter(|(_, texts)| !texts.is_empty()) else {
            return refused("ERR redis.log() requires two arguments or more.");
        };
        let Some(level) = level.as_i64().filter(|level| (0..=3).contains(level)) else {
            return refused("ERR Invalid log level.");
        };
        let texts = texts.iter().filter_map(|text| text.to_string().ok());
        let text = texts.collect::<Vec<String>>().join(" ");
        self.server.scripts.log(level, text);
        Ok(Value::Nil)
    }

    fn may_run(&mut self, args: &[Value]) -> mlua::Result<Value> {
        let refused = |why: &str| Err(thrown::table(why.to_owned()));
        let Some(command) = command_of(args).filter(|command| !command.is_empty()) else {
            return refused(
                "ERR Please specify at least one argument for this redis.acl_check_cmd() call",
            );
        };
        let Some(spec) = table::find(command.name()) else {
            return refused("ERR Invalid command passed to redis.acl_check_cmd()");
        };
        let may = self.server.may_run(self.caller.id, spec, &command);
        Ok(Value::Boolean(may))
    }

    /// A command of the script.
    fn call(&mut self, args: &[Value]) -> Result<Reply, CommandError> {
        if args.is_empty() {
            return Err(CommandError::text(
                "ERR Please specify at least one argument for this redis lib call",
            ));
        }
        let command = command_of(args).ok_or(CommandError::text(
            "ERR Lua redis lib command arguments must be strings or integers",
        ))?;
        let spec = admit(&command)?;
        if let Err(refused) = self.check(spec, &command) {
            let Caller { id, stamp, .. } = self.caller;
            self.server.log_denied(id, spec, &command, stamp);
            return Err(refused);
        }
        let db = self.server.database(self.caller.id).map_or(0, |(_, db)| db);
        if let Some(traced) = &mut self.server.traced {
            traced.call(db, spec, &command)?;
            if traced.is_endless() {
                return Err(CommandError::text("ERR too many commands"));
            }
        }
        self.make_ready(spec, &command)?;
        if spec.flags.has(Flags::WRITE)
            && let Some(running) = &mut self.server.running
        {
            running.has_written = true;
        }
        let Caller { id, stamp, .. } = self.caller;
        // Each command draws its own randomness.
        let stamp = Stamp {
            seed: self.random.next(),
            ..stamp
        };
        let (reply, written) =
            self.server
                .run_inside(id, spec, &command, stamp, &mut *self.caller.host);
        self.effects.append(written);
        Ok(match reply {
            Reply::Later if spec.flags.has(Flags::BLOCKING) => timeout_reply(spec.name),
            reply => reply,
        })
    }

    fn check(&self, spec: &'static CommandSpec, command: &Command) -> Result<(), CommandError> {
        let writes = spec.flags.has(Flags::WRITE);
        if writes && (self.caller.is_read_only || self.flags.no_writes) {
            return Err(CommandError::text(
                "ERR Write commands are not allowed from read-only scripts.",
            ));
        }
        let running = self.server.running.as_ref();
        match self.server.check(self.caller.id, spec, command) {
            // What a script has begun it may end.
            Err(error)
                if error == CommandError::OUT_OF_MEMORY
                    && (self.flags.allow_oom
                        || running.is_some_and(|running| running.has_written)) =>
            {
                Ok(())
            }
            Err(error) => match error.0.strip_prefix("NOPERM ") {
                Some(why) => Err(CommandError::new(format!(
                    "NOPERM ACL failure in script: {why}"
                ))),
                None => Err(error),
            },
            Ok(()) => Ok(()),
        }
    }

    /// Keys that nobody named may be in the store only.
    fn make_ready(&mut self, spec: &CommandSpec, command: &Command) -> Result<(), CommandError> {
        let db = self.server.database(self.caller.id).map_or(0, |(_, db)| db);
        let unreadable = || CommandError::text("ERR the store cannot read a key of this script");
        match self.server.needs_of(db, spec, command) {
            Needs::Nothing | Needs::Paused => Ok(()),
            Needs::AllNames => {
                let keyspace = &mut self.server.keyspace;
                if self.caller.host.load_names(keyspace) && keyspace.is_complete() {
                    return Ok(());
                }
                Err(unreadable())
            }
            Needs::Values(loads) => {
                for load in loads {
                    let loaded = self.caller.host.load(load).ok_or_else(unreadable)?;
                    let installed = self.server.keyspace.install(loaded);
                    installed.map_err(|_| unreadable())?;
                }
                Ok(())
            }
        }
    }
}

fn admit(command: &Command) -> Result<&'static CommandSpec, CommandError> {
    let Some(spec) = table::find(command.name()) else {
        return Err(CommandError::text(
            "ERR Unknown Redis command called from script",
        ));
    };
    if table::admit(command).is_err() {
        return Err(CommandError::text(
            "ERR Wrong number of args calling Redis command from script",
        ));
    }
    // Streams are read without waiting.
    let waits = spec.flags.has(Flags::BLOCKING) && spec.group != Group::Stream;
    if waits || spec.flags.has(Flags::NOSCRIPT) {
        return Err(CommandError::text(
            "ERR This Redis command is not allowed from script",
        ));
    }
    Ok(spec)
}

/// The words of a command, when all are strings or numbers.
fn command_of(args: &[Value]) -> Option<Command> {
    let mut command = Command::default();
    for arg in args {
        match arg {
            Value::String(text) => command.push(&text.as_bytes()),
            Value::Integer(value) => command.push(value.to_string().as_bytes()),
            Value::Number(value) => command.push(number::write_float(*value).as_bytes()),
            _ => return None,
        }
    }
    Some(command)
}
