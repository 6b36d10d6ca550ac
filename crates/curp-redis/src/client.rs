//! A client for Rust programs: each command is recorded at the witnesses by this process itself, so that it
//! takes one round trip without a proxy, and is executed once whatever fails in between.

use std::net::SocketAddr;

use manxdb_curp_client::{CallError, Client, ClientCounts, Cluster, ConnectError};
use manxdb_redis::Command;
use manxdb_redis::resp::Protocol;
use manxdb_redis::server::table;
use manxdb_redis::spec::Flags;

use crate::command::ReplicatedCommand;
use crate::machine::{RedisMachine, is_replicated, told};

/// Arrays within arrays that an answer may have.
const DEPTH_MAX: usize = 32;

/// Why a command has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedisError {
    /// The command was executed, and this error is its answer; or it is one that was not sent at all.
    #[error("{0}")]
    Refused(String),
    /// It may have been executed, once, or not at all.
    #[error(transparent)]
    Unknown(#[from] CallError),
    /// The command was executed, and answered with something else than its kind is.
    #[error("{command} is answered with {found:?}")]
    Kind {
        /// Its name.
        command: &'static str,
        /// What was answered.
        found: Value,
    },
    /// The master is of a version whose answers this client cannot read.
    #[error("an answer that is no RESP: is the cluster of another version?")]
    Format,
}

/// What a command is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Nothing.
    Nil,
    /// A number.
    Integer(i64),
    /// A short word, as OK.
    Word(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Answers in order.
    Array(Vec<Value>),
    /// An error among the answers of an array.
    Error(String),
}

/// A client of a cluster that replicates Redis's keys. Any number of threads may use it at the same time.
///
/// ```no_run
/// use manxdb_curp_redis::RedisClient;
///
/// // The coordinator: node 0 of the cluster.
/// let client = RedisClient::connect(&["127.0.0.1:7400".parse()?])?;
/// client.set("greeting", "hello")?;
/// assert_eq!(client.get("greeting")?, Some(b"hello".to_vec()));
/// // Executed once, also when the master dies while it is under way.
/// let visits = client.incr("visits")?;
/// client.command(&["HSET", "visitor:7", "number", &visits.to_string()])?;
/// println!("{} of these took one round trip", client.counts().fast);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RedisClient {
    client: Client<RedisMachine>,
}

impl RedisClient {
    /// A client of the cluster that has one of these coordinators.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(coordinators: &[SocketAddr]) -> Result<Self, ConnectError> {
        Self::of(Cluster::ask(coordinators)?)
    }

    /// A client of a cluster that is known.
    ///
    /// # Errors
    /// [`ConnectError::Start`].
    pub fn of(cluster: Cluster) -> Result<Self, ConnectError> {
        let nothing = ReplicatedCommand::nothing().encode();
        let client = Client::of(cluster, nothing)?;
        Ok(Self { client })
    }

    /// The answer to any command on data, in database 0.
    ///
    /// # Errors
    /// [`RedisError`]. Commands that may wait (BLPOP), and those of a connection (MULTI, SELECT), are
    /// refused.
    pub fn command<T: AsRef<[u8]>>(&self, words: &[T]) -> Result<Value, RedisError> {
        let command = Command::of(words);
        let refused = |why: String| Err(RedisError::Refused(why));
        let spec = match table::admit(&command) {
            Ok(spec) => spec,
            Err(error) => return refused(error.to_string()),
        };
        let name = spec.name.to_uppercase();
        if !is_replicated(&command) || spec.name == "watch" {
            return refused(format!(
                "{name} is of a connection, which this client has none of"
            ));
        }
        if spec.flags.has(Flags::BLOCKING) {
            return refused(format!(
                "{name} may wait: ask again and again without waiting"
            ));
        }
        let replicated = ReplicatedCommand {
            db: 0,
            protocol: Protocol::Resp2,
            is_transaction: false,
            commands: vec![command],
        };
        let answer = self.client.call(replicated.encode())?;
        match read(&told(answer, Protocol::Resp2)) {
            Some(Value::Error(why)) => refused(why),
            Some(value) => Ok(value),
            None => Err(RedisError::Format),
        }
    }

    /// SET: gives a key a value.
    ///
    /// # Errors
    /// [`RedisError`].
    pub fn set(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), RedisError> {
        self.command(&[b"SET", key.as_ref(), value.as_ref()])
            .map(|_| ())
    }

    /// GET: the value of a key, if it has one.
    ///
    /// # Errors
    /// [`RedisError`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, RedisError> {
        match self.command(&[b"GET", key.as_ref()])? {
            Value::Nil => Ok(None),
            Value::Bytes(bytes) => Ok(Some(bytes)),
            found => Err(RedisError::Kind {
                command: "GET",
                found,
            }),
        }
    }

    /// DEL: whether the key was there.
    ///
    /// # Errors
    /// [`RedisError`].
    pub fn del(&self, key: impl AsRef<[u8]>) -> Result<bool, RedisError> {
        self.integer("DEL", &[b"DEL", key.as_ref()])
            .map(|gone| gone == 1)
    }

    /// INCR: the number that a key has now.
    ///
    /// # Errors
    /// [`RedisError`].
    pub fn incr(&self, key: impl AsRef<[u8]>) -> Result<i64, RedisError> {
        self.integer("INCR", &[b"INCR", key.as_ref()])
    }

    fn integer(&self, command: &'static str, words: &[&[u8]]) -> Result<i64, RedisError> {
        match self.command(words)? {
            Value::Integer(number) => Ok(number),
            found => Err(RedisError::Kind { command, found }),
        }
    }

    /// How its commands were completed so far.
    #[must_use]
    pub fn counts(&self) -> ClientCounts {
        self.client.counts()
    }
}

/// Reads an answer in RESP 2, all of it.
fn read(bytes: &[u8]) -> Option<Value> {
    let mut rest = bytes;
    let value = next(&mut rest, DEPTH_MAX)?;
    rest.is_empty().then_some(value)
}

fn next(rest: &mut &[u8], depth: usize) -> Option<Value> {
    let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
    let (line, behind) = rest.split_at(end);
    *rest = &behind[2..];
    let (kind, text) = line.split_first()?;
    let text = std::str::from_utf8(text).ok();
    let number = || text?.parse::<i64>().ok();
    Some(match kind {
        b'+' => Value::Word(text?.to_owned()),
        b'-' => Value::Error(String::from_utf8_lossy(&line[1..]).into_owned()),
        b':' => Value::Integer(number()?),
        b'$' => match usize::try_from(number()?) {
            Err(_) => Value::Nil,
            Ok(length) => {
                let (bytes, behind) = rest.split_at_checked(length)?;
                *rest = behind.strip_prefix(b"\r\n")?;
                Value::Bytes(bytes.to_vec())
            }
        },
        b'*' => match usize::try_from(number()?) {
            Err(_) => Value::Nil,
            Ok(_) if depth == 0 => return None,
            Ok(count) => {
                let values = (0..count).map(|_| next(rest, depth - 1));
                Value::Array(values.collect::<Option<_>>()?)
            }
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_whole() {
        assert_eq!(read(b"+OK\r\n"), Some(Value::Word("OK".to_owned())));
        assert_eq!(read(b":-7\r\n"), Some(Value::Integer(-7)));
        assert_eq!(read(b"$-1\r\n"), Some(Value::Nil));
        assert_eq!(
            read(b"$4\r\na\r\nb\r\n"),
            Some(Value::Bytes(b"a\r\nb".to_vec()))
        );
        let inner = Value::Array(vec![Value::Nil, Value::Error("ERR no".to_owned())]);
        let array = Value::Array(vec![Value::Integer(1), inner]);
        assert_eq!(read(b"*2\r\n:1\r\n*2\r\n*-1\r\n-ERR no\r\n"), Some(array));
        for wrong in [
            &b""[..],
            b"+OK",
            b"+OK\r\n+",
            b"$5\r\nab\r\n",
            b"*2\r\n:1\r\n",
            b"!1\r\n",
            b":x\r\n",
        ] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
        let deep = b"*1\r\n".repeat(100_000);
        assert_eq!(read(&deep), None);
        assert_eq!(
            read(b"*9999999999999\r\n"),
            None,
            "no memory is taken for what is not there"
        );
    }
}
