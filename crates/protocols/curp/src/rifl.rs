//! Which operations are done, and what they answered: each runs once (RIFL, SOSP 2015).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{ClientId, Position, RpcId};
use crate::log::Change;

/// What is known of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// It has not run.
    New,
    /// It ran.
    Done {
        /// Its place in the log.
        at: Position,
        /// What it answered.
        answer: Vec<u8>,
    },
    /// It ran, its client knows the answer and asks for it no more.
    Acknowledged,
    /// Its client is forgotten, or was never known.
    Expired,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct OfClient {
    /// Everything before this has an answer that its client knows.
    ack: u64,
    done: BTreeMap<u64, (Position, Vec<u8>)>,
}

/// The completion records of all clients that are known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rifl {
    clients: BTreeMap<ClientId, OfClient>,
}

impl Rifl {
    /// What is known of an operation.
    #[must_use]
    pub fn look_up(&self, rpc: RpcId) -> Known {
        let Some(client) = self.clients.get(&rpc.client) else {
            return Known::Expired;
        };
        if rpc.seq < client.ack {
            assert!(
                !client.done.contains_key(&rpc.seq),
                "an acknowledged answer is not kept"
            );
            return Known::Acknowledged;
        }
        match client.done.get(&rpc.seq) {
            Some((at, answer)) => Known::Done {
                at: *at,
                answer: answer.clone(),
            },
            None => Known::New,
        }
    }

    /// Takes in an entry of the log.
    pub fn take(&mut self, at: Position, change: &Change) {
        match change {
            Change::Opened(client) => {
                self.clients.entry(*client).or_default();
            }
            Change::Expired(client) => {
                self.clients.remove(client);
            }
            Change::Executed {
                rpc, ack, answer, ..
            } => {
                let client = self.clients.entry(rpc.client).or_default();
                if *ack > client.ack {
                    client.ack = *ack;
                    client.done = client.done.split_off(ack);
                    let first = client.done.keys().next();
                    assert!(
                        first.is_none_or(|seq| seq >= ack),
                        "nothing is kept below the acknowledgement"
                    );
                }
                if rpc.seq >= client.ack {
                    let earlier = client.done.get(&rpc.seq);
                    assert!(
                        earlier.is_none_or(|(place, _)| *place < at),
                        "entries are taken in their order (I6)"
                    );
                    client.done.insert(rpc.seq, (at, answer.clone()));
                }
            }
        }
    }

    /// All clients that are known.
    pub fn clients(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.clients.keys().copied()
    }

    /// Operations whose answers are kept.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.clients.values().map(|client| client.done.len()).sum()
    }

    /// Checks that nothing is kept that was acknowledged.
    ///
    /// # Errors
    /// What is, in words.
    pub fn check(&self, last: Position) -> Result<(), String> {
        for (id, client) in &self.clients {
            let first = client.done.keys().next();
            if first.is_some_and(|seq| *seq < client.ack) {
                return Err(format!("{id:?}: an answer is kept below {}", client.ack));
            }
            if client.done.values().any(|(at, _)| *at > last) {
                return Err(format!("{id:?}: an answer from beyond the log"));
            }
        }
        Ok(())
    }
}
