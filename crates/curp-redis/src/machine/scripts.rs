//! Scripts: executed where the keys are, and found by their names in rows of their own.
//!
//! Scripts are a part of the replicated state, so that EVALSHA does the same at every master. Whoever adds or
//! removes one is said to touch everything: it is synced before it is answered, and so is every command behind
//! it until then. So a command that was answered before its sync finds the same scripts when its record
//! is replayed. That is also why EVAL of a text that is new takes two round trips, and the next one takes one.

use std::collections::BTreeMap;

use manxdb_redis::keyspace::rows;
use manxdb_redis::resp::Reply;
use manxdb_redis::scripts::EVALUATED_MAX;
use manxdb_redis::server::scripting::{NO_SCRIPT, ScriptCommand, ScriptRun, ScriptRunner};
use manxdb_redis::{Command, CommandError, Effects, Keyspace, RowWrite, Stamp};

/// The number of a script of SCRIPT LOAD; those of EVAL count from 1, and the first go first.
const LOADED: u64 = 0;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a script command does.
#[derive(Debug)]
pub(super) struct Ran {
    pub reply: Reply,
    pub effects: Effects,
    /// Keys with their databases in front.
    pub touched: Vec<Vec<u8>>,
    pub touches_all: bool,
    /// Whether nothing of it is to be kept.
    pub is_void: bool,
}

impl Ran {
    /// A command on scripts alone.
    fn answered(reply: Reply, written: Vec<RowWrite>) -> Self {
        let mut effects = Effects::default();
        let touches_all = !written.is_empty();
        effects.rows = written;
        Self {
            reply,
            effects,
            touched: Vec::new(),
            touches_all,
            is_void: false,
        }
    }

    fn failed(error: CommandError) -> Self {
        Self::answered(Reply::Error(error), Vec::new())
    }
}

/// The scripts of a machine during one command, which has written some of them perhaps.
pub(super) struct Scripts<'a> {
    pub rows: &'a Rows,
    pub runner: &'a mut Option<Box<ScriptRunner>>,
    /// What this command wrote so far.
    pub written: Rows,
    /// Whether it has removed all that were there before.
    pub is_flushed: bool,
}

fn row_of(name: &[u8]) -> Vec<u8> {
    [&rows::script_prefix()[..], &name.to_ascii_lowercase()].concat()
}

fn number_of(value: &[u8]) -> u64 {
    let number = value.first_chunk();
    number.map_or(LOADED, |number| u64::from_be_bytes(*number))
}

impl Scripts<'_> {
    fn runner(&mut self) -> &mut ScriptRunner {
        self.runner.get_or_insert_default()
    }

    /// All scripts, by their rows.
    fn all(&self) -> BTreeMap<&[u8], &[u8]> {
        let prefix = rows::script_prefix();
        let known = self.rows.range(prefix.to_vec()..);
        let known = known.take_while(|(row, _)| row.starts_with(&prefix));
        let known = known.filter(|_| !self.is_flushed);
        let all = known.chain(&self.written);
        let shown = all.map(|(row, value)| (row.as_slice(), value.as_slice()));
        shown.filter(|(_, value)| !value.is_empty()).collect()
    }

    fn find(&self, row: &[u8]) -> Option<&[u8]> {
        let before = || self.rows.get(row).filter(|_| !self.is_flushed);
        let found = self.written.get(row).or_else(before)?;
        (!found.is_empty()).then_some(found)
    }

    /// Writes what makes a script known; nothing when it is.
    fn keep(&mut self, name: &str, text: &[u8], is_loaded: bool) -> Vec<RowWrite> {
        let row = row_of(name.as_bytes());
        let mut written = Vec::new();
        let number = match self.find(&row) {
            Some(known) if !is_loaded || number_of(known) == LOADED => return written,
            _ if is_loaded => LOADED,
            Some(_) | None => {
                let all = self.all();
                let numbers = all.iter().map(|(row, value)| (number_of(value), *row));
                let mut evaluated: Vec<_> = numbers.filter(|(at, _)| *at != LOADED).collect();
                evaluated.sort_unstable();
                let next = evaluated.last().map_or(1, |(last, _)| last + 1);
                if evaluated.len() >= EVALUATED_MAX {
                    let oldest = evaluated[0].1.to_vec();
                    written.push(RowWrite {
                        key: oldest,
                        value: None,
                    });
                }
                next
            }
        };
        written.push(RowWrite {
            key: row,
            value: Some([&number.to_be_bytes()[..], text].concat()),
        });
        self.note(&written);
        written
    }

    /// What is written is seen by the rest of the same transaction; an empty value is none.
    fn note(&mut self, written: &[RowWrite]) {
        for row in written {
            let value = row.value.clone().unwrap_or_default();
            self.written.insert(row.key.clone(), value);
        }
    }

    fn flush(&mut self) -> Vec<RowWrite> {
        let gone: Vec<RowWrite> = self
            .all()
            .into_keys()
            .map(|row| RowWrite {
                key: row.to_vec(),
                value: None,
            })
            .collect();
        self.is_flushed = true;
        self.written.clear();
        gone
    }

    /// Executes a command.
    pub fn execute(
        &mut self,
        keyspace: &mut Keyspace,
        db: u8,
        (asked, command): (ScriptCommand<'_>, &Command),
        stamp: Stamp,
    ) -> Ran {
        match asked {
            ScriptCommand::ByText(text) => match self.runner().compile(text) {
                Ok(name) => {
                    let written = self.keep(&name, text, false);
                    self.run(keyspace, db, (command, text), stamp, written)
                }
                Err(error) => Ran::failed(error),
            },
            ScriptCommand::ByName(name) => match self.find(&row_of(name)) {
                Some(known) => {
                    let text = known.get(size_of::<u64>()..).unwrap_or(&[]).to_vec();
                    self.run(keyspace, db, (command, &text), stamp, Vec::new())
                }
                None => Ran::failed(NO_SCRIPT),
            },
            ScriptCommand::Load(text) => match self.runner().compile(text) {
                Ok(name) => {
                    let written = self.keep(&name, text, true);
                    Ran::answered(Reply::bulk(name.as_bytes()), written)
                }
                Err(error) => Ran::failed(error),
            },
            ScriptCommand::Exists => {
                let names = command.args_from(2);
                let known = names.map(|name| Reply::flag(self.find(&row_of(name)).is_some()));
                Ran::answered(Reply::Array(known.collect()), Vec::new())
            }
            ScriptCommand::Flush => {
                let written = self.flush();
                Ran::answered(Reply::OK, written)
            }
        }
    }

    fn run(
        &mut self,
        keyspace: &mut Keyspace,
        db: u8,
        script: (&Command, &[u8]),
        stamp: Stamp,
        mut written: Vec<RowWrite>,
    ) -> Ran {
        let ScriptRun {
            reply,
            mut effects,
            touched,
            touches_all,
            is_endless,
        } = self.runner().run(keyspace, usize::from(db), script, stamp);
        let is_new = !written.is_empty();
        effects.rows.append(&mut written);
        let keys = touched.iter().filter_map(|(db, key)| {
            let db = u8::try_from(*db).ok()?;
            Some(super::full_key(db, key))
        });
        Ran {
            reply,
            effects,
            touched: keys.collect(),
            touches_all: touches_all || is_new,
            is_void: is_endless,
        }
    }
}
