//! A small machine of keys, and how a checker sees it.

use std::collections::BTreeMap;

use manxdb_checker::linear::{LinearOperation, LinearOutcome, Model};
use manxdb_curp::execute::CollectedBytes;
use manxdb_curp::ids::Stamp;
use manxdb_curp::image::BytesImage;
use manxdb_curp::{
    Declared, Execute, Executed, ReadImage, ReceiveImage, Recorded, Settled, StateError,
};
use serde::{Deserialize, Serialize};

use super::stored::{Home, Kept, Stored};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Value {
    Number(i64),
    List(Vec<u64>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    Get(u8),
    Set(u8, i64),
    Incr(u8),
    Push(u8, u64),
    Del(u8),
    /// Adds one to all of these.
    IncrAll(Vec<u8>),
    /// Adds one to the first; when that makes it even, to the second as well, undeclared.
    Script(u8, u8),
    /// Sets a key to a number that depends on the stamp.
    Draw(u8),
}

/// What a command answers: the new value of each key that it touched.
pub type Answer = Vec<(u8, Option<Value>)>;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyValue {
    pub values: BTreeMap<u8, Value>,
    /// Where it keeps what is settled, if it has such a store.
    #[serde(skip)]
    pub stored: Option<Stored>,
}

impl KeyValue {
    /// Nothing, with a store.
    pub fn stored(home: &Home) -> Self {
        Self {
            values: BTreeMap::new(),
            stored: Some(Stored::new(home)),
        }
    }

    fn of_kept(stored: Stored, kept: Kept) -> Self {
        Self {
            values: kept.values,
            stored: Some(stored),
        }
    }
}

pub fn bytes<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).unwrap()
}

fn increment(value: Option<&Value>) -> Value {
    match value {
        Some(Value::Number(number)) => Value::Number(number + 1),
        Some(other) => other.clone(),
        None => Value::Number(1),
    }
}

/// What a command of one key makes of its value.
pub fn step(value: Option<&Value>, command: &Command, drawn: i64) -> Option<Value> {
    match command {
        Command::Get(_) => value.cloned(),
        Command::Set(_, number) => Some(Value::Number(*number)),
        Command::Incr(_) | Command::IncrAll(_) | Command::Script(..) => Some(increment(value)),
        Command::Push(_, element) => {
            let mut list = match value {
                Some(Value::List(list)) => list.clone(),
                _ => Vec::new(),
            };
            list.push(*element);
            Some(Value::List(list))
        }
        Command::Del(_) => None,
        Command::Draw(_) => Some(Value::Number(drawn)),
    }
}

impl Execute for KeyValue {
    fn declare(command: &[u8]) -> Option<Declared> {
        let command: Command = postcard::from_bytes(command).ok()?;
        let keys = match &command {
            Command::IncrAll(keys) => keys.iter().map(|key| vec![*key]).collect(),
            Command::Get(key)
            | Command::Set(key, _)
            | Command::Incr(key)
            | Command::Push(key, _)
            | Command::Del(key)
            | Command::Script(key, _)
            | Command::Draw(key) => vec![vec![*key]],
        };
        let reads_only = matches!(command, Command::Get(_));
        Some(Declared { keys, reads_only })
    }

    fn execute(&mut self, command: &[u8], stamp: Stamp) -> Executed {
        let Ok(command) = postcard::from_bytes::<Command>(command) else {
            return Executed::default();
        };
        let drawn = i64::try_from((stamp.seed ^ stamp.micros) % 1_000_000).unwrap();
        let mut keys = match &command {
            Command::IncrAll(keys) => keys.clone(),
            Command::Get(key)
            | Command::Set(key, _)
            | Command::Incr(key)
            | Command::Push(key, _)
            | Command::Del(key)
            | Command::Script(key, _)
            | Command::Draw(key) => vec![*key],
        };
        if let Command::Script(key, other) = &command
            && let Some(Value::Number(number)) = step(self.values.get(key), &command, drawn)
            && number % 2 == 0
        {
            keys.push(*other);
        }
        let answer: Answer = keys
            .iter()
            .map(|key| (*key, step(self.values.get(key), &command, drawn)))
            .collect();
        let is_read = matches!(command, Command::Get(_));
        Executed {
            effects: if is_read { Vec::new() } else { bytes(&answer) },
            answer: bytes(&answer),
            touched: keys.iter().map(|key| vec![*key]).collect(),
            touches_all: false,
        }
    }

    fn apply(&mut self, effects: &[u8]) {
        let effects: Answer = postcard::from_bytes(effects).unwrap_or_default();
        for (key, value) in effects {
            match value {
                Some(value) => self.values.insert(key, value),
                None => self.values.remove(&key),
            };
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        bytes(self)
    }

    fn restore(snapshot: &[u8]) -> Option<Self> {
        postcard::from_bytes(snapshot).ok()
    }

    fn empty() -> Self {
        Self::default()
    }

    fn image(&self) -> Box<dyn ReadImage> {
        match &self.stored {
            Some(stored) => stored.image(),
            None => Box::new(BytesImage::new(self.snapshot())),
        }
    }

    fn receive(&self) -> Box<dyn ReceiveImage<Self>> {
        match &self.stored {
            Some(stored) => stored.receive(Self::of_kept),
            None => Box::new(CollectedBytes::<Self>::default()),
        }
    }

    fn has_store(&self) -> bool {
        self.stored.is_some()
    }

    fn settle(&mut self, settled: &Settled<'_>) -> Result<(), StateError> {
        if let Some(stored) = &self.stored {
            stored.settle(settled);
        }
        Ok(())
    }

    fn fresh(&self) -> Self {
        Self {
            values: BTreeMap::new(),
            stored: self.stored.as_ref().map(Stored::fresh),
        }
    }

    fn to_record(&mut self) -> Result<Vec<u8>, StateError> {
        Ok(match &self.stored {
            Some(stored) => stored.to_record(),
            None => self.snapshot(),
        })
    }

    fn open_record(&self, record: &[u8]) -> Result<Recorded<Self>, String> {
        let unreadable = || "it is none".to_owned();
        if let Some(stored) = &self.stored {
            let (stored, kept) = stored.open_record(record).ok_or_else(unreadable)?;
            let settled = Some((kept.end, kept.completed.clone()));
            let state = Self::of_kept(stored, kept);
            return Ok(Recorded { state, settled });
        }
        let state = Self::restore(record).ok_or_else(unreadable)?;
        let settled = None;
        Ok(Recorded { state, settled })
    }

    fn forget_earlier(&mut self) {
        if let Some(stored) = &self.stored {
            stored.forget_earlier();
        }
    }
}

/// One key of the machine.
pub struct OneKey;

impl Model for OneKey {
    type State = Option<Value>;
    type Input = Command;
    type Output = Option<Value>;

    fn initial(&self) -> Option<Value> {
        None
    }

    fn apply(&self, state: &Self::State, input: &Command) -> (Self::State, Self::Output) {
        let value = step(state.as_ref(), input, 0);
        (value.clone(), value)
    }
}

/// A command as a client saw it.
#[derive(Debug, Clone)]
pub struct Call {
    pub client: u32,
    pub command: Command,
    pub invoked: u64,
    /// When it was answered, and what.
    pub answered: Option<(u64, Answer)>,
}

pub type KeyOperation = LinearOperation<u8, Command, Option<Value>>;

/// What a call did to each key.
pub fn operations(name: u64, call: &Call) -> Vec<KeyOperation> {
    let operation = |key: u8, outcome: LinearOutcome<Option<Value>>| {
        let input = match (&call.command, &outcome) {
            // Whatever was drawn, it was drawn once.
            (
                Command::Draw(_),
                LinearOutcome::Answered {
                    output: Some(Value::Number(drawn)),
                    ..
                },
            ) => Command::Set(key, *drawn),
            _ => call.command.clone(),
        };
        LinearOperation {
            name,
            key,
            invoked: call.invoked,
            input,
            outcome,
        }
    };
    match &call.answered {
        Some((at, answer)) => answer
            .iter()
            .map(|(key, output)| {
                let (at, output) = (*at, output.clone());
                operation(*key, LinearOutcome::Answered { at, output })
            })
            .collect(),
        None => {
            let keys = match &call.command {
                Command::IncrAll(keys) => keys.clone(),
                Command::Script(key, other) => vec![*key, *other],
                Command::Get(key)
                | Command::Set(key, _)
                | Command::Incr(key)
                | Command::Push(key, _)
                | Command::Del(key)
                | Command::Draw(key) => vec![*key],
            };
            let open = |key| operation(key, LinearOutcome::Unknown);
            keys.into_iter().map(open).collect()
        }
    }
}
