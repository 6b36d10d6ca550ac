//! What is recorded of requests, and who signs for it.

use std::sync::Arc;

use manxdb_ownership::proof::audit::KEYS_MAX;
use manxdb_ownership::proof::{AuditEvent, AuditKind, AuditRecord, ProofKey, SEED_BYTES, issue};
use manxdb_txn::{ReadMode, Transaction};
use manxdb_vault::{Disk, KeyId, VaultError};
use parking_lot::Mutex;

use super::ledger::Ledger;
use super::unknown;
use crate::error::{SqlError, SqlResult};
use crate::session::ResultSink;
use crate::session::accounts::{Privileges, access};
use crate::session::instance::Instance;
use crate::session::session::Session;
use crate::statement::owners::audit;
use crate::types::{Row, Value};

/// What the seed of the signing key is sealed with.
const SEED_AAD: &[u8] = b"manxdb audit seed";
/// Records that one answer of SHOW GDPR AUDIT has.
const SHOWN_MAX: usize = 10_000;

/// The audit of an instance.
#[derive(Default)]
pub(in crate::session) struct Audit {
    key: Mutex<Option<Arc<ProofKey>>>,
    ledger: Mutex<LedgerState>,
}

/// The audit beside the vault.
#[derive(Default)]
pub(super) enum LedgerState {
    /// There is none.
    #[default]
    None,
    /// It cannot be read or written, or does not fit this store.
    Broken(String),
    Open(Ledger),
}

fn broken(why: &str) -> SqlError {
    let text = format!("The audit beside the vault cannot be used: {why}");
    SqlError::new(51005, "HY000", text)
}

impl Audit {
    /// With the audit on `disk`; what is there.
    pub(in crate::session) fn open(disk: Option<Arc<dyn Disk>>) -> (Self, Vec<AuditRecord>) {
        let audit = Self::default();
        let Some(disk) = disk else {
            return (audit, Vec::new());
        };
        let (state, records) = match Ledger::open(disk) {
            Ok((ledger, records)) => (LedgerState::Open(ledger), records),
            Err(error) => (LedgerState::Broken(error.to_string()), Vec::new()),
        };
        *audit.ledger.lock() = state;
        (audit, records)
    }
}

impl Instance {
    /// Now, as records have it.
    pub(in crate::session) fn audit_time(&self) -> String {
        at(self.host.wall_micros())
    }

    /// What signs and what stands for people.
    ///
    /// # Errors
    /// 51005 when it is sealed and the vault does not open it; storage.
    pub(super) fn proof_key(&self) -> SqlResult<Arc<ProofKey>> {
        let mut known = self.audit.key.lock();
        if let Some(key) = known.as_ref() {
            return Ok(Arc::clone(key));
        }
        let seed = self.seed()?;
        let key = ProofKey::new(&seed).ok_or_else(|| broken("its signing key is none"))?;
        let key = Arc::new(key);
        *known = Some(Arc::clone(&key));
        Ok(key)
    }

    /// The seed of the signing key, made when there is none: beside the vault where there is an audit, else in
    /// the store.
    fn seed(&self) -> SqlResult<[u8; SEED_BYTES]> {
        let mut state = self.audit.ledger.lock();
        match &mut *state {
            LedgerState::Broken(why) => Err(broken(why)),
            LedgerState::Open(ledger) => match &ledger.head {
                Some(head) => self.open_seed(head),
                None => {
                    let (seed, head) = self.new_seed()?;
                    let begun = ledger.begin(head);
                    begun.map_err(|error| broken(&error.to_string()))?;
                    Ok(seed)
                }
            },
            LedgerState::None => {
                let made = self.new_seed()?;
                let (seed, head) = &made;
                let stored = self.in_transaction(|txn| match audit::seed(txn)? {
                    Some(stored) => Ok(stored),
                    None => {
                        audit::put_seed(txn, head.clone().into_bytes())?;
                        Ok(head.clone().into_bytes())
                    }
                })?;
                if stored == head.as_bytes() {
                    return Ok(*seed);
                }
                let head = String::from_utf8(stored).map_err(|_| broken("its head is no text"))?;
                self.open_seed(&head)
            }
        }
    }

    /// A seed, and how it is kept: sealed where there is a vault.
    fn new_seed(&self) -> SqlResult<([u8; SEED_BYTES], String)> {
        let mut seed = [0; SEED_BYTES];
        let filled = self.host.secret_bytes(&mut seed);
        filled.map_err(|error| broken(&error.to_string()))?;
        let head = match self.sealing.vault() {
            None => format!("plain {}", hex::encode(seed)),
            Some(vault) => {
                let refused = |error: VaultError| broken(&error.to_string());
                let key = vault.take_key().map_err(refused)?;
                let mut sealed = Vec::new();
                vault
                    .seal(key, SEED_AAD, &seed, &mut sealed)
                    .map_err(refused)?;
                format!("{:016x} {}", key.get(), hex::encode(&sealed))
            }
        };
        Ok((seed, head))
    }

    fn open_seed(&self, head: &str) -> SqlResult<[u8; SEED_BYTES]> {
        let damaged = || broken("its first line is damaged");
        let (key, sealed) = head.split_once(' ').ok_or_else(damaged)?;
        let sealed = hex::decode(sealed).map_err(|_| damaged())?;
        let seed = match (key, self.sealing.vault()) {
            ("plain", _) => sealed,
            (_, None) => return Err(broken("its signing key is sealed, and there is no vault")),
            (key, Some(vault)) => {
                let key = u64::from_str_radix(key, 16).map_err(|_| damaged())?;
                let opened = vault.open_sealed(KeyId::from_stored(key), SEED_AAD, &sealed);
                opened.map_err(|error| broken(&error.to_string()))?
            }
        };
        seed.try_into().map_err(|_| damaged())
    }

    /// Writes what the store has recorded and the audit beside the vault has not.
    ///
    /// # Errors
    /// 51005 when it cannot be written; storage.
    pub(in crate::session) fn mirror_audit(&self) -> SqlResult<()> {
        let txn = self.store.begin();
        txn.declare_read_only();
        let (last, _) = audit::last(&txn, ReadMode::Plain)?;
        drop(txn);
        match &*self.audit.ledger.lock() {
            LedgerState::None => return Ok(()),
            LedgerState::Open(ledger) if ledger.seq == last => return Ok(()),
            _ => {}
        }
        // A ledger begins with the seed.
        self.proof_key()?;
        let mut state = self.audit.ledger.lock();
        let ledger = match &mut *state {
            LedgerState::None => return Ok(()),
            LedgerState::Broken(why) => return Err(broken(why)),
            LedgerState::Open(ledger) => ledger,
        };
        let txn = self.store.begin();
        txn.declare_read_only();
        let records = audit::behind(&txn, ledger.seq)?;
        if let Some(first) = records.first()
            && !(first.seq == ledger.seq + 1 && first.follows(&ledger.hash))
        {
            let why = format!("record {} of the store does not follow its last", first.seq);
            return Err(broken(&why));
        }
        let written = ledger.append(&records);
        written.map_err(|error| {
            let why = error.to_string();
            *state = LedgerState::Broken(why.clone());
            broken(&why)
        })
    }

    /// Number and hash of the last record beside the vault; `None` without one.
    pub(super) fn ledger_end(&self) -> Option<(u64, String)> {
        match &*self.audit.ledger.lock() {
            LedgerState::Open(ledger) => Some((ledger.seq, ledger.hash.clone())),
            _ => None,
        }
    }

    /// Records an event with a transaction that erases `keys`.
    ///
    /// # Errors
    /// Storage.
    pub(in crate::session) fn audit_in(
        &self,
        txn: &Transaction,
        mut event: AuditEvent,
        keys: &[KeyId],
    ) -> SqlResult<()> {
        if let Some(vault) = self.sealing.vault().filter(|_| !keys.is_empty()) {
            event.key_count = Some(keys.len() as u64);
            let named = keys.iter().take(KEYS_MAX);
            event.keys = named
                .clone()
                .map(|id| format!("{:016x}", id.get()))
                .collect();
            // One that is gone already has none any more.
            let fingerprints = named.filter_map(|id| vault.fingerprint(*id).ok());
            event.fingerprints = fingerprints.collect();
        }
        audit::append(txn, &event)
    }

    /// Keys are erased, by order of a request or of a plain DELETE.
    pub(in crate::session) fn erased_event(&self, request: Option<u64>, keys: usize) -> AuditEvent {
        let generation = self.sealing.vault().and_then(|vault| vault.status().ok());
        AuditEvent {
            request,
            key_count: Some(keys as u64),
            generation: generation.map(|status| status.generation),
            ..AuditEvent::new(AuditKind::Erased, self.audit_time())
        }
    }

    /// The master key was rotated.
    ///
    /// # Errors
    /// Storage; as [`Instance::mirror_audit`].
    pub(in crate::session) fn audit_rotation(&self, generation: u32, by: &str) -> SqlResult<()> {
        let event = AuditEvent {
            generation: Some(generation),
            by: Some(by.to_string()),
            ..AuditEvent::new(AuditKind::Rotated, self.audit_time())
        };
        self.in_transaction(|txn| audit::append_unlocked(txn, &event))?;
        self.mirror_audit()
    }
}

/// A time as records have it.
pub(super) fn at(micros: i64) -> String {
    let at = jiff::Timestamp::from_microsecond(micros);
    at.map_or_else(|_| micros.to_string(), |at| at.to_string())
}

impl Session {
    /// `GDPR CERTIFICATE n`: a signed certificate of request `n`, made from the audit as it is now. Needs the
    /// privilege GDPR on the server or the request's database.
    pub(in crate::session) fn gdpr_certificate(
        &mut self,
        request: u64,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let key = self.instance().proof_key()?;
        let txn = self.instance().store.begin();
        txn.declare_read_only();
        let records = audit::behind(&txn, 0)?;
        let certificate = issue(&records, request, self.instance().audit_time(), &key);
        let Some(certificate) = certificate else {
            access::require_global(&self.state.account(), Privileges::GDPR, "GDPR")?;
            return Err(unknown(format!(
                "there is no record of request {request}: SHOW GDPR REQUESTS lists them"
            )));
        };
        let need = access::Need::database(Privileges::GDPR, "GDPR", &certificate.database);
        access::check(&self.state.account(), &need, &self.state.client.host)?;
        let row = vec![Value::Text(certificate.text())];
        self.send_rows(&["Certificate"], &[row], sink, more)
    }

    /// SHOW GDPR AUDIT: the newest records, and whether the chain is whole.
    pub(in crate::session) fn show_audit(
        &mut self,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        access::require_global(&self.state.account(), Privileges::GDPR, "GDPR")?;
        let txn = self.instance().store.begin();
        txn.declare_read_only();
        let (last, end) = audit::last(&txn, ReadMode::Plain)?;
        let records = audit::behind(&txn, 0)?;
        let mut hash = manxdb_ownership::proof::GENESIS.to_string();
        let mut rows: Vec<Row> = Vec::new();
        for (record, seq) in records.iter().zip(1..) {
            let is_whole = record.seq == seq && record.follows(&hash);
            hash.clone_from(&record.hash);
            rows.push(audit_row(record, if is_whole { "whole" } else { "broken" }));
        }
        if (records.len() as u64, &hash) != (last, &end) {
            let text = |text: &str| Value::Text(text.to_string());
            let lost = vec![
                Value::UInt(last),
                Value::Null,
                text("the last records are missing"),
                Value::Null,
                Value::Null,
                text("broken"),
            ];
            rows.push(lost);
        }
        rows.reverse();
        rows.truncate(SHOWN_MAX);
        let names = ["Record", "At", "Event", "Request", "By", "Chain"];
        self.send_rows(&names, &rows, sink, more)
    }
}

fn audit_row(record: &AuditRecord, chain: &str) -> Row {
    let text = |text: &str| Value::Text(text.to_string());
    let event = record.event();
    let kind = event
        .as_ref()
        .and_then(|event| serde_json::to_value(event.kind).ok());
    let kind = kind.as_ref().and_then(|kind| kind.as_str());
    let request = event.as_ref().and_then(|event| event.request);
    vec![
        Value::UInt(record.seq),
        event.as_ref().map_or(Value::Null, |event| text(&event.at)),
        kind.map_or(Value::Null, text),
        request.map_or(Value::Null, Value::UInt),
        event
            .and_then(|event| event.by)
            .map_or(Value::Null, Value::Text),
        text(chain),
    ]
}
