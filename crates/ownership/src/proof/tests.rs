use std::collections::BTreeSet;

use super::audit::{AuditEvent, AuditKind, AuditRecord, CountedRows, GENESIS};
use super::certificate::{AuditTrail, Certificate, issue};
use super::verify::verify;
use super::{ProofKey, SEED_BYTES, from_lower_hex};

fn key(seed: u8) -> ProofKey {
    ProofKey::new(&[seed; SEED_BYTES]).unwrap()
}

fn event(kind: AuditKind, second: u32, request: Option<u64>) -> AuditEvent {
    AuditEvent {
        request,
        ..AuditEvent::new(kind, format!("2024-02-03T04:05:{second:02}Z"))
    }
}

fn asked(request: u64) -> AuditEvent {
    AuditEvent {
        database: Some("d".into()),
        table: Some("users".into()),
        by: Some("root@%".into()),
        reason: Some(format!("ticket {request}")),
        ..event(AuditKind::Asked, 0, Some(request))
    }
}

fn rows(table: &str, action: &str, rows: u64) -> CountedRows {
    CountedRows {
        table: table.into(),
        action: action.into(),
        rows,
        why: "why".into(),
    }
}

/// A request in two transactions, with another between, erasure, and a rotation behind.
fn chain() -> Vec<AuditRecord> {
    let events = [
        asked(6),
        asked(7),
        AuditEvent {
            rows: vec![rows("votes", "delete", 3), rows("votes", "keep", 9)],
            key_count: Some(1),
            fingerprints: vec!["f1".into()],
            ..event(AuditKind::Batch, 1, Some(7))
        },
        event(AuditKind::Done, 2, Some(6)),
        AuditEvent {
            rows: vec![rows("votes", "delete", 2), rows("bans", "keep", 1)],
            key_count: Some(1),
            ..event(AuditKind::Done, 3, Some(7))
        },
        AuditEvent {
            key_count: Some(2),
            generation: Some(1),
            ..event(AuditKind::Erased, 4, Some(7))
        },
        asked(8),
        AuditEvent {
            generation: Some(2),
            ..event(AuditKind::Rotated, 5, None)
        },
    ];
    let mut records: Vec<AuditRecord> = Vec::new();
    for event in events {
        let hash = records.last().map_or(GENESIS, |last| last.hash.as_str());
        records.push(AuditRecord::behind(records.len() as u64, hash, &event));
    }
    records
}

fn certificate() -> Certificate {
    issue(&chain(), 7, "2024-02-04T00:00:00Z".into(), &key(1)).unwrap()
}

#[test]
fn a_certificate_follows_from_its_records_and_tells_nothing_of_others() {
    let certificate = certificate();
    assert_eq!((certificate.state.as_str(), certificate.rows), ("done", 5));
    assert_eq!(
        certificate.outcome,
        [rows("bans", "keep", 1), rows("votes", "delete", 5)]
    );
    assert_eq!((certificate.keys.ordered, certificate.keys.erased), (2, 2));
    assert_eq!(
        certificate.times.unreadable_here.as_deref(),
        Some("2024-02-03T04:05:04Z")
    );
    assert_eq!(
        certificate.times.unreadable_in_every_copy.as_deref(),
        Some("2024-02-03T04:05:05Z")
    );
    assert_eq!(certificate.before, chain()[0].hash);
    let text = certificate.text();
    assert!(text.contains("ticket 7") && !text.contains("ticket 6") && !text.contains("ticket 8"));
    assert_eq!(verify(&text, Some(&key(1).public())).problems, [""; 0]);
    assert_eq!(issue(&chain(), 9, String::new(), &key(1)), None);
}

#[test]
fn one_reading_of_the_records_serves_all_certificates() {
    let mut records = chain();
    let body = &mut records[2].body;
    body.truncate(body.len() / 2);
    let trail = AuditTrail::read(&records);
    assert_eq!(trail.requests(), BTreeSet::from([6, 7, 8]));
    for request in 6..10 {
        let at = "2024-02-04T00:00:00Z".to_string();
        let alone = issue(&records, request, at.clone(), &key(1));
        assert_eq!(alone.is_some(), request < 9, "{request}");
        assert_eq!(trail.issue(request, at, &key(1)), alone, "{request}");
    }
    // One that cannot be read is there by its hash.
    let seven = trail.issue(7, String::new(), &key(1)).unwrap();
    assert!(seven.audit[1].event.is_none() && seven.audit[1].digest.is_some());
}

#[test]
fn keys_that_are_not_erased_yet_leave_the_time_open() {
    let mut records = chain();
    records.truncate(5);
    let certificate = issue(&records, 7, String::new(), &key(1)).unwrap();
    assert_eq!((certificate.keys.ordered, certificate.keys.erased), (2, 0));
    assert_eq!(certificate.times.unreadable_here, None);
    records.truncate(3);
    let certificate = issue(&records, 7, String::new(), &key(1)).unwrap();
    assert_eq!(
        (certificate.state.as_str(), certificate.times.done),
        ("asked", None)
    );
}

/// `records` with events behind.
fn with(mut records: Vec<AuditRecord>, events: &[AuditEvent]) -> Vec<AuditRecord> {
    for event in events {
        let hash = records.last().map_or(GENESIS, |last| last.hash.as_str());
        records.push(AuditRecord::behind(records.len() as u64, hash, event));
    }
    records
}

#[test]
fn what_was_seen_to_be_gone_from_files_is_not_once_something_came_later() {
    let gone = |events: &[AuditEvent]| {
        let records = with(chain(), events);
        let certificate = issue(&records, 7, String::new(), &key(1)).unwrap();
        let verified = verify(&certificate.text(), None);
        assert_eq!(verified.problems, [""; 0]);
        assert!(certificate.times.unreadable_in_every_copy.is_some());
        certificate.times.gone_from_files
    };
    let at = |second| Some(format!("2024-02-03T04:05:{second:02}Z"));
    let purged = |second, request| event(AuditKind::Purged, second, Some(request));
    assert_eq!(gone(&[]), None);
    assert_eq!(gone(&[purged(6, 6)]), None, "of another request");
    assert_eq!(gone(&[purged(6, 7), purged(7, 6)]), at(6));
    let replayed = event(AuditKind::Replayed, 8, Some(7));
    assert_eq!(gone(&[purged(6, 7), replayed.clone()]), None);
    assert_eq!(gone(&[purged(6, 7), replayed, purged(9, 7)]), at(9));
    // Who is not forgotten yet is in files by right.
    let mut early = chain();
    early.truncate(3);
    let records = with(early, &[purged(6, 7)]);
    let certificate = issue(&records, 7, String::new(), &key(1)).unwrap();
    assert_eq!(certificate.times.gone_from_files, None);
}

#[test]
fn each_bit_of_each_byte_matters() {
    let text = certificate().text();
    for at in 0..text.len() {
        for bit in [0, 5, 6] {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            let changed = String::from_utf8(bytes).unwrap();
            assert!(
                !verify(&changed, None).problems.is_empty(),
                "bit {bit} of byte {at}"
            );
        }
    }
}

#[test]
fn who_signs_something_else_is_found_out_by_the_records() {
    let mut forged = certificate();
    forged.rows = 500;
    forged.outcome[1].rows = 500;
    forged.signed.digests = forged.digests();
    forged.signed.signature = key(1).sign(&forged.statement());
    let problems = verify(&forged.text(), None).problems;
    assert_eq!(
        problems,
        [
            "'outcome' does not follow from the audit records",
            "'rows' does not follow from the audit records"
        ]
    );
    let mut forged = certificate();
    forged.audit.remove(1);
    forged.signed.digests = forged.digests();
    forged.signed.signature = key(1).sign(&forged.statement());
    let problems = verify(&forged.text(), None).problems.join("\n");
    assert!(
        problems.contains("audit record 4 is out of its place"),
        "{problems}"
    );
}

#[test]
fn a_person_is_another_hash_under_another_key() {
    let subject = key(1).subject(7, &[3; 16]);
    assert_eq!(subject.len(), 32);
    assert_eq!(subject, key(1).subject(7, &[3; 16]));
    assert_ne!(subject, key(2).subject(7, &[3; 16]));
    assert_ne!(subject, key(1).subject(8, &[3; 16]));
}

#[test]
fn digits_are_lower_case_and_pairs() {
    assert_eq!(from_lower_hex("00ff10"), Some(vec![0, 255, 16]));
    for wrong in ["0", "AB", "zz", "0 "] {
        assert_eq!(from_lower_hex(wrong), None, "{wrong}");
    }
}
