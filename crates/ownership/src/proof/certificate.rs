//! Certificates. All that one says follows from the audit records in it, so that it can be checked from
//! them; the signature says whose records they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::audit::{AuditEvent, AuditKind, AuditRecord, ChainedRecord, CountedRows, KEYS_MAX};
use super::{ProofKey, sha256};

/// The format written here.
pub(crate) const FORMAT: u32 = 1;

/// Records between the first and the last of a request that a certificate may hold.
const RECORDS_MAX: usize = 100_000;

/// What has become of a request to forget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// 1.
    pub format: u32,
    /// The request.
    pub request: u64,
    /// The database.
    pub database: String,
    /// The table of people.
    pub kind: String,
    /// `asked`, `put off`, `done`, `undone` or `void`.
    pub state: String,
    /// Who asked.
    pub asked_by: String,
    /// Why.
    pub reason: Option<String>,
    /// Rows deleted or changed.
    pub rows: u64,
    /// By table and rule.
    pub outcome: Vec<CountedRows>,
    /// Keys that were destroyed.
    pub keys: KeyFacts,
    /// When what was so.
    pub times: Times,
    /// The records it follows from, each behind the one before.
    pub audit: Vec<ChainedRecord>,
    /// The hash before the first of them.
    pub before: String,
    /// Who says so.
    pub signed: Signed,
}

/// Keys that were destroyed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyFacts {
    /// How many were to be.
    pub ordered: u64,
    /// How many are known to be.
    pub erased: u64,
    /// Fingerprints of the first of them.
    pub fingerprints: Vec<String>,
}

/// Times, UTC; null: not yet, or not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// The request was made.
    pub asked: String,
    /// Its rows were gone from tables and indexes.
    pub done: Option<String>,
    /// The keys of its rows were overwritten in the vault: what is left of them here is unreadable. Null
    /// where rows were not sealed.
    pub unreadable_here: Option<String>,
    /// It was seen that no file of the data directory has anything of them any more: neither rows nor
    /// their keys, in sorted files or the commit log. Null before, and again in a restored store.
    pub gone_from_files: Option<String>,
    /// The master key of that time was retired: copies of the vault made before are unreadable, where every
    /// copy of that master key is destroyed too.
    pub unreadable_in_every_copy: Option<String>,
}

/// The signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signed {
    /// When.
    pub at: String,
    /// `Ed25519`.
    pub algorithm: String,
    /// Whose.
    pub public_key: String,
    /// SHA-256 of each part above, so that a change is named.
    pub digests: BTreeMap<String, String>,
    /// Over the digests, time and key.
    pub signature: String,
}

/// All records of an audit, each read once, for as many certificates as are made of them.
#[derive(Debug)]
pub struct AuditTrail<'r> {
    records: &'r [AuditRecord],
    /// What each of them says; `None` of one that cannot be read.
    events: Vec<Option<AuditEvent>>,
}

impl<'r> AuditTrail<'r> {
    /// Reads all records of an audit.
    #[must_use]
    pub fn read(records: &'r [AuditRecord]) -> Self {
        let events = records.iter().map(AuditRecord::event).collect();
        Self { records, events }
    }

    /// Requests that records are about.
    #[must_use]
    pub fn requests(&self) -> BTreeSet<u64> {
        let events = self.events.iter().flatten();
        events.filter_map(|event| event.request).collect()
    }

    /// A certificate of `request`; `None` when no record is about it, or there are too many.
    #[must_use]
    pub fn issue(&self, request: u64, at: String, key: &ProofKey) -> Option<Certificate> {
        let is_own = |event: &Option<AuditEvent>| {
            event
                .as_ref()
                .is_some_and(|event| event.request == Some(request))
        };
        let first = self.events.iter().position(is_own)?;
        let mut last = self.events.iter().rposition(is_own)?;
        // The first rotation behind the last erasure is a fact about it.
        let rotated = |event: &Option<AuditEvent>| {
            event
                .as_ref()
                .is_some_and(|event| event.kind == AuditKind::Rotated)
        };
        let rotation = self
            .events
            .iter()
            .skip(last)
            .position(rotated)
            .map(|behind| last + behind);
        last = rotation.unwrap_or(last);
        if last - first >= RECORDS_MAX {
            return None;
        }
        let records = self.records.iter().zip(&self.events);
        let chosen = records.take(last + 1).skip(first);
        let audit: Vec<ChainedRecord> = chosen
            .map(|(record, event)| {
                let is_shown = is_own(event) || rotated(event);
                ChainedRecord::of(record, event.as_ref().filter(|_| is_shown).cloned())
            })
            .collect();
        let before = match first.checked_sub(1) {
            None => super::GENESIS.to_string(),
            Some(before) => self.records.get(before)?.hash.clone(),
        };
        let mut certificate = derive(request, audit, before)?;
        certificate.signed.at = at;
        certificate.signed.public_key = key.public();
        certificate.signed.digests = certificate.digests();
        certificate.signed.signature = key.sign(&certificate.statement());
        Some(certificate)
    }
}

/// A certificate of `request` from all records of an audit, as [`AuditTrail::issue`].
#[must_use]
pub fn issue(
    records: &[AuditRecord],
    request: u64,
    at: String,
    key: &ProofKey,
) -> Option<Certificate> {
    AuditTrail::read(records).issue(request, at, key)
}

/// What records say of a request, unsigned; `None` when they do not say who asked.
pub(crate) fn derive(
    request: u64,
    audit: Vec<ChainedRecord>,
    before: String,
) -> Option<Certificate> {
    let events: Vec<&AuditEvent> = audit
        .iter()
        .filter_map(|record| record.event.as_ref())
        .collect();
    let own = || events.iter().filter(|event| event.request == Some(request));
    let asked = own().find(|event| event.kind == AuditKind::Asked)?;
    let ends = [
        (AuditKind::Done, "done"),
        (AuditKind::PutOff, "put off"),
        (AuditKind::Undone, "undone"),
        (AuditKind::Void, "void"),
        (AuditKind::Asked, "asked"),
    ];
    let state = |event: &AuditEvent| ends.iter().find(|(kind, _)| *kind == event.kind);
    let (last, state) = own()
        .filter_map(|event| Some((event, state(event)?.1)))
        .next_back()?;
    let outcome = outcome(own().copied(), last);
    let changed = outcome
        .iter()
        .filter(|row| is_change(row))
        .map(|row| row.rows);
    let keys = keys(own().copied());
    let all_erased = keys.ordered > 0 && keys.erased == keys.ordered;
    let erasures = || own().filter(|event| event.kind == AuditKind::Erased);
    let erased_at = erasures()
        .next_back()
        .filter(|_| all_erased && state == "done");
    let rotation = erased_at.and_then(|erased| {
        let mut behind = events
            .iter()
            .skip_while(|event| !std::ptr::eq(**event, *erased));
        behind
            .find(|event| event.kind == AuditKind::Rotated && event.generation > erased.generation)
    });
    let is_done = last.kind == AuditKind::Done;
    // What the request did later, also once more in a restored store, left something in files.
    let purged = own()
        .next_back()
        .filter(|event| is_done && event.kind == AuditKind::Purged);
    let times = Times {
        asked: asked.at.clone(),
        done: is_done.then(|| last.at.clone()),
        unreadable_here: erased_at.map(|event| event.at.clone()),
        gone_from_files: purged.map(|event| event.at.clone()),
        unreadable_in_every_copy: rotation.map(|event| event.at.clone()),
    };
    Some(Certificate {
        format: FORMAT,
        request,
        database: asked.database.clone()?,
        kind: asked.table.clone()?,
        state: state.to_string(),
        asked_by: asked.by.clone()?,
        reason: asked.reason.clone(),
        rows: changed.sum(),
        outcome,
        keys,
        times,
        before,
        signed: Signed {
            at: String::new(),
            algorithm: "Ed25519".to_string(),
            public_key: String::new(),
            digests: BTreeMap::new(),
            signature: String::new(),
        },
        audit,
    })
}

fn is_change(row: &CountedRows) -> bool {
    row.action == "delete" || row.action == "anonymise"
}

/// What changed adds up over all transactions; what stays is what the last one left.
fn outcome<'e>(own: impl Iterator<Item = &'e AuditEvent>, last: &AuditEvent) -> Vec<CountedRows> {
    let mut sums: BTreeMap<(String, String, String), u64> = BTreeMap::new();
    let own = own.filter(|event| event.kind != AuditKind::Replayed);
    let changed = own
        .flat_map(|event| &event.rows)
        .filter(|row| is_change(row));
    let stays = last.rows.iter().filter(|row| !is_change(row));
    for row in changed.chain(stays) {
        let key = (row.table.clone(), row.action.clone(), row.why.clone());
        *sums.entry(key).or_default() += row.rows;
    }
    let counted = sums
        .into_iter()
        .map(|((table, action, why), rows)| CountedRows {
            table,
            action,
            rows,
            why,
        });
    counted.collect()
}

fn keys<'e>(own: impl Iterator<Item = &'e AuditEvent>) -> KeyFacts {
    let mut facts = KeyFacts {
        ordered: 0,
        erased: 0,
        fingerprints: Vec::new(),
    };
    for event in own {
        let count = event.key_count.unwrap_or(0);
        match event.kind {
            AuditKind::Erased => facts.erased += count,
            AuditKind::Replayed => {}
            _ => {
                facts.ordered += count;
                facts
                    .fingerprints
                    .extend(event.fingerprints.iter().cloned());
            }
        }
    }
    facts.fingerprints.truncate(KEYS_MAX);
    facts
}

impl Certificate {
    /// Its text: what is verified byte by byte.
    #[must_use]
    pub fn text(&self) -> String {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        assert!(!text.is_empty(), "a struct of texts and numbers is written");
        text
    }

    /// SHA-256 of each part but the signature.
    pub(crate) fn digests(&self) -> BTreeMap<String, String> {
        let parts = serde_json::to_value(self).unwrap_or_default();
        let parts = parts.as_object().into_iter().flatten();
        let parts = parts.filter(|(name, _)| *name != "signed");
        parts
            .map(|(name, value)| (name.clone(), sha256(&[value.to_string().as_bytes()])))
            .collect()
    }

    /// What is signed.
    pub(crate) fn statement(&self) -> String {
        let Signed {
            at,
            algorithm,
            public_key,
            digests,
            signature: _,
        } = &self.signed;
        let mut text = format!("manxdb certificate\nat {at}\n{algorithm} {public_key}\n");
        for (name, digest) in digests {
            let _ = writeln!(text, "{name} {digest}");
        }
        text
    }
}
