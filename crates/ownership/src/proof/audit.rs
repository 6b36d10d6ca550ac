//! Audit records. Each holds the hash of all before it, so that none can be changed, taken out or put in
//! without all that follow.
//!
//! ```text
//! hash n = SHA-256("manxdb audit" ‖ hash n-1 ‖ n, u64 BE ‖ SHA-256(body n)), hash 0 = 32 zero bytes
//! ```

use serde::{Deserialize, Serialize};

use super::sha256;

/// The hash before the first record.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// Somebody asked to forget a person.
    Asked,
    /// A request was taken back within its grace.
    Undone,
    /// Rows were deleted or changed; the request goes on.
    Batch,
    /// What may go has gone; the rest is held, or to be kept.
    PutOff,
    /// The person is forgotten.
    Done,
    /// The person was gone before the request came to its end, or their table was.
    Void,
    /// Keys are overwritten in all places of the vault.
    Erased,
    /// What was left of the request's rows in files, keys of rows and entries and the log, is gone.
    Purged,
    /// All keys are wrapped by another master key.
    Rotated,
    /// Rows of a person are held.
    Held,
    /// They no longer are.
    Released,
    /// The request was carried out again in a store that was older, a restored backup.
    Replayed,
}

/// Rows of one table of which the same became for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountedRows {
    /// The table.
    pub table: String,
    /// `delete`, `anonymise`, `keep` or `hold`.
    pub action: String,
    /// How many.
    pub rows: u64,
    /// The link or the rule.
    pub why: String,
}

/// What is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditEvent {
    /// When, UTC, RFC 3339.
    pub at: String,
    /// What.
    pub kind: AuditKind,
    /// By which request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<u64>,
    /// Of which hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<u64>,
    /// The database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The table of people, or the table that a hold is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Its number in the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_id: Option<u32>,
    /// What stands for the person: a hash under a secret key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Who asked: `user@host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why, in the words of who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// What became of rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<CountedRows>,
    /// Ids of keys that are to be erased, or are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Fingerprints of keys that are to be erased: of the first [`KEYS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fingerprints: Vec<String>,
    /// How many keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_count: Option<u64>,
    /// Generation of the master key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
}

/// Keys that a record names one by one.
pub const KEYS_MAX: usize = 256;

impl AuditEvent {
    /// An event with nothing but its time and kind.
    #[must_use]
    pub fn new(kind: AuditKind, at: String) -> Self {
        Self {
            at,
            kind,
            request: None,
            hold: None,
            database: None,
            table: None,
            table_id: None,
            subject: None,
            by: None,
            reason: None,
            due: None,
            rows: Vec::new(),
            keys: Vec::new(),
            fingerprints: Vec::new(),
            key_count: None,
            generation: None,
        }
    }

    /// The text whose hash is in the chain.
    #[must_use]
    pub fn body(&self) -> String {
        // A struct of texts and numbers is always written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// Its number, from 1.
    pub seq: u64,
    /// [`AuditEvent::body`].
    pub body: String,
    /// The hash of it and all before.
    pub hash: String,
}

impl AuditRecord {
    /// The record behind one with this number and hash.
    #[must_use]
    pub fn behind(seq: u64, hash: &str, event: &AuditEvent) -> Self {
        let (seq, body) = (seq + 1, event.body());
        assert!(!body.is_empty(), "an event is written");
        let hash = chained(hash, seq, &sha256(&[body.as_bytes()]));
        Self { seq, body, hash }
    }

    /// Whether it follows one with this hash.
    #[must_use]
    pub fn follows(&self, hash: &str) -> bool {
        self.hash == chained(hash, self.seq, &sha256(&[self.body.as_bytes()]))
    }

    /// What it says; `None` when it cannot be read.
    #[must_use]
    pub fn event(&self) -> Option<AuditEvent> {
        serde_json::from_str(&self.body).ok()
    }
}

/// The hash of a record from that of the one before and that of its body.
pub(crate) fn chained(before: &str, seq: u64, body: &str) -> String {
    let parts: [&[u8]; 4] = [
        b"manxdb audit",
        before.as_bytes(),
        &seq.to_be_bytes(),
        body.as_bytes(),
    ];
    sha256(&parts)
}

/// A record in a certificate. Of what is not about its request only the hash of the body is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainedRecord {
    /// Its number.
    pub seq: u64,
    /// What it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<AuditEvent>,
    /// The hash of what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The hash of it and all before.
    pub hash: String,
}

impl ChainedRecord {
    /// `record`, with `event`, which is what it says, or without.
    #[must_use]
    pub fn of(record: &AuditRecord, event: Option<AuditEvent>) -> Self {
        let digest = event.is_none().then(|| sha256(&[record.body.as_bytes()]));
        Self {
            seq: record.seq,
            event,
            digest,
            hash: record.hash.clone(),
        }
    }

    /// The hash it should have behind one with this hash.
    pub(crate) fn expected(&self, before: &str) -> Option<String> {
        let digest = match (&self.event, &self.digest) {
            (Some(event), None) => sha256(&[event.body().as_bytes()]),
            (None, Some(digest)) => digest.clone(),
            _ => return None,
        };
        Some(chained(before, self.seq, &digest))
    }
}
