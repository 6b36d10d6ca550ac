//! Commands of the machine, as they stand in records of witnesses and in logs.

use manxdb_storage::Version;
use serde::{Deserialize, Serialize};

/// A reign of one primary: grows with each new one. The machine takes effects of the newest alone.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Owner(pub u64);

/// A key and what it gets; `None` deletes.
pub type Write = (Vec<u8>, Option<Vec<u8>>);

/// What one transaction writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effects {
    /// Who validated it.
    pub owner: Owner,
    /// Its place in the order of commits.
    pub version: u64,
    /// The primary had shown everything up to here when it ordered this: nothing older will come.
    pub shown: u64,
    /// In key order, each key once.
    pub writes: Vec<Write>,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SqlCommand {
    /// A transaction takes effect.
    Commit(Effects),
    /// Nobody before this owner may write any more.
    Claim(Owner),
    /// Nothing: shows the master that its client is there.
    Show,
}

/// What a command answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It took effect.
    Done,
    /// It did not, and never will: another owner has claimed the rows.
    NotOwner,
}

/// How the bytes of a [`SqlCommand::Claim`] begin.
const CLAIM: u8 = 1;

impl Outcome {
    pub(crate) fn bytes(self) -> Vec<u8> {
        vec![match self {
            Self::Done => 0,
            Self::NotOwner => 1,
        }]
    }

    /// What an answer says; nothing when it is none of this machine's.
    #[must_use]
    pub fn of(answer: &[u8]) -> Option<Self> {
        match answer {
            [0] => Some(Self::Done),
            [1] => Some(Self::NotOwner),
            _ => None,
        }
    }
}

impl SqlCommand {
    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        if let Self::Commit(effects) = self {
            assert!(effects.is_sound(), "what is replicated can be read again");
        }
        // Nothing in it can fail to be written.
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// Whether bytes are a claim, if they are a command: without a look at what a transaction writes.
    #[must_use]
    pub fn is_claim(bytes: &[u8]) -> bool {
        bytes.first() == Some(&CLAIM)
    }

    /// The command that bytes are; nothing when they are none.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let command: Self = postcard::from_bytes(bytes).ok()?;
        match &command {
            Self::Commit(effects) if !effects.is_sound() => None,
            _ => Some(command),
        }
    }
}

impl Effects {
    /// The version, as the storage engine counts it.
    #[must_use]
    pub fn version(&self) -> Version {
        Version(self.version)
    }

    /// Whether bytes from elsewhere can be the effects of a transaction.
    fn is_sound(&self) -> bool {
        let keys = self.writes.iter().map(|(key, _)| key);
        self.version > self.shown && !self.writes.is_empty() && keys.is_sorted_by(|a, b| a < b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effects(version: u64, shown: u64, keys: &[&str]) -> SqlCommand {
        let writes = keys.iter().map(|key| (key.as_bytes().to_vec(), None));
        SqlCommand::Commit(Effects {
            owner: Owner(7),
            version,
            shown,
            writes: writes.collect(),
        })
    }

    #[test]
    fn what_is_written_is_read_and_nonsense_is_refused() {
        for command in [
            effects(3, 2, &["a", "b"]),
            SqlCommand::Claim(Owner(9)),
            SqlCommand::Show,
        ] {
            let bytes = command.encode();
            let is_claim = matches!(command, SqlCommand::Claim(_));
            assert_eq!(SqlCommand::is_claim(&bytes), is_claim);
            assert_eq!(SqlCommand::decode(&bytes), Some(command));
        }
        for nonsense in [
            effects(2, 2, &["a"]),
            effects(3, 2, &[]),
            effects(3, 2, &["b", "a"]),
            effects(3, 2, &["a", "a"]),
        ] {
            let bytes = postcard::to_stdvec(&nonsense).unwrap_or_default();
            assert_eq!(SqlCommand::decode(&bytes), None);
        }
        assert_eq!(SqlCommand::decode(&[9, 9]), None);
        assert_eq!(SqlCommand::decode(&[]), None);
        for outcome in [Outcome::Done, Outcome::NotOwner] {
            assert_eq!(Outcome::of(&outcome.bytes()), Some(outcome));
        }
        assert_eq!(Outcome::of(&[2]), None);
        assert_eq!(Outcome::of(&[]), None);
    }

    #[test]
    fn a_row_of_everyday_size_fits_into_one_packet() {
        let write = |key: &str| (vec![b'k'; 20 + key.len()], Some(vec![b'v'; 150]));
        let command = SqlCommand::Commit(Effects {
            owner: Owner(1 << 20),
            version: u64::from(u32::MAX),
            shown: u64::from(u32::MAX) - 4,
            writes: ["a", "bb", "ccc"].map(write).to_vec(),
        });
        assert!(command.encode().len() < 600, "{}", command.encode().len());
    }
}
