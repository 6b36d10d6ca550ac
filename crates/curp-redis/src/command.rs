//! A command as it is recorded, logged and replayed.

use manxdb_curp::bytes::Bytes;
use manxdb_redis::Command;
use manxdb_redis::resp::Protocol;
use manxdb_redis::server::DataCall;
use serde::{Deserialize, Serialize};

/// The format; another one is refused.
const VERSION: u8 = 1;
/// A byte more than [`manxdb_redis::keyspace::DATABASES`] is no database.
const DATABASES: u8 = 16;

/// Commands that run together, and how their answer is written: equal for every machine that runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicatedCommand {
    /// The database.
    pub db: u8,
    /// What the answer is written in.
    pub protocol: Protocol,
    /// Whether the answer is an array, of all commands.
    pub is_transaction: bool,
    /// The commands.
    pub commands: Vec<Command>,
}

#[derive(Serialize, Deserialize)]
struct Encoded<W> {
    version: u8,
    db: u8,
    is_resp3: bool,
    is_transaction: bool,
    commands: Vec<Vec<W>>,
}

impl ReplicatedCommand {
    /// What a front passes on.
    #[must_use]
    pub fn of(call: &DataCall) -> Self {
        assert!(
            call.db < usize::from(DATABASES),
            "a connection has chosen one of the databases"
        );
        Self {
            db: u8::try_from(call.db).unwrap_or(u8::MAX),
            protocol: call.protocol,
            is_transaction: call.is_transaction,
            commands: call.commands.clone(),
        }
    }

    /// Asks nothing: shows that its client is there.
    #[must_use]
    pub fn nothing() -> Self {
        Self {
            db: 0,
            protocol: Protocol::Resp2,
            is_transaction: true,
            commands: Vec::new(),
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let words = |command| Command::args_from(command, 0).map(Bytes).collect();
        let encoded = Encoded {
            version: VERSION,
            db: self.db,
            is_resp3: self.protocol == Protocol::Resp3,
            is_transaction: self.is_transaction,
            commands: self.commands.iter().map(words).collect(),
        };
        let bytes = postcard::to_stdvec(&encoded);
        assert!(bytes.is_ok(), "bytes and flags can be written down");
        bytes.unwrap_or_default()
    }

    /// Reads what came over the network; nothing when it is none.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (encoded, rest) = postcard::take_from_bytes::<Encoded<&[u8]>>(bytes).ok()?;
        let is_one = encoded.is_transaction || encoded.commands.len() == 1;
        if !rest.is_empty() || encoded.version != VERSION || encoded.db >= DATABASES || !is_one {
            return None;
        }
        Some(Self {
            db: encoded.db,
            protocol: if encoded.is_resp3 {
                Protocol::Resp3
            } else {
                Protocol::Resp2
            },
            is_transaction: encoded.is_transaction,
            commands: encoded
                .commands
                .iter()
                .map(|words| Command::of(words))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_command_has_these_bytes() {
        let set = ReplicatedCommand {
            db: 2,
            protocol: Protocol::Resp3,
            is_transaction: false,
            commands: vec![Command::of(&["SET", "k", "vv"])],
        };
        let bytes = b"\x01\x02\x01\x00\x01\x03\x03SET\x01k\x02vv";
        assert_eq!(set.encode(), bytes, "other versions must read them");
        assert_eq!(ReplicatedCommand::decode(bytes), Some(set));
        let mut version = bytes.to_vec();
        version[0] = 2;
        assert_eq!(ReplicatedCommand::decode(&version), None);
        let mut database = bytes.to_vec();
        database[1] = 16;
        assert_eq!(ReplicatedCommand::decode(&database), None);
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_back(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(command) = ReplicatedCommand::decode(&bytes) {
                let again = ReplicatedCommand::decode(&command.encode());
                prop_assert_eq!(again, Some(command));
            }
        }
    }
}
