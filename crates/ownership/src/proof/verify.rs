//! Whether a certificate is whole: its bytes, its parts, its chain of records, what follows from them, and
//! its signature. Needs nothing but the text, and the public key if whose it is matters.

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};

use super::certificate::{Certificate, FORMAT, derive};
use super::from_lower_hex;

/// Problems of one certificate that are named.
const PROBLEMS_MAX: usize = 16;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// What it says, if that can be read.
    pub certificate: Option<Certificate>,
    /// What is wrong; nothing when it is whole.
    pub problems: Vec<String>,
}

/// Checks the text of a certificate. `public_key`: whose it must be, as digits; without, it may be
/// anybody's, which [`Certificate::signed`] tells.
#[must_use]
pub fn verify(text: &str, public_key: Option<&str>) -> Verified {
    // A file of one line more is what clients write.
    let text = text.strip_suffix('\n').unwrap_or(text);
    let certificate: Certificate = match serde_json::from_str(text) {
        Ok(certificate) => certificate,
        Err(error) => {
            return Verified {
                certificate: None,
                problems: vec![format!("this is no certificate: {error}")],
            };
        }
    };
    let mut problems = Vec::new();
    if certificate.format != FORMAT {
        problems.push(format!("format {} is not {FORMAT}", certificate.format));
    }
    changed_parts(&certificate, &mut problems);
    broken_chain(&certificate, &mut problems);
    what_does_not_follow(&certificate, &mut problems);
    signature(&certificate, public_key, &mut problems);
    other_bytes(text, &certificate, &mut problems);
    problems.truncate(PROBLEMS_MAX);
    Verified {
        certificate: Some(certificate),
        problems,
    }
}

/// Parts that are not what was signed.
fn changed_parts(certificate: &Certificate, problems: &mut Vec<String>) {
    let (now, then) = (certificate.digests(), &certificate.signed.digests);
    for (name, digest) in &now {
        if then.get(name) != Some(digest) {
            problems.push(format!("'{name}' was changed, or its digest was"));
        }
    }
    for name in then.keys().filter(|name| !now.contains_key(*name)) {
        problems.push(format!(
            "there is a digest of '{name}', which is no part of a certificate"
        ));
    }
}

/// Records that do not follow those before them.
fn broken_chain(certificate: &Certificate, problems: &mut Vec<String>) {
    let mut before = certificate.before.clone();
    let mut seq = None;
    for record in &certificate.audit {
        let is_next = seq.is_none_or(|seq: u64| seq.checked_add(1) == Some(record.seq));
        if !is_next {
            problems.push(format!("audit record {} is out of its place", record.seq));
        }
        if record.expected(&before).as_ref() != Some(&record.hash) {
            problems.push(format!(
                "audit record {} was changed, or does not follow the one before",
                record.seq
            ));
        }
        before.clone_from(&record.hash);
        seq = Some(record.seq);
    }
}

/// What the records do not say.
fn what_does_not_follow(certificate: &Certificate, problems: &mut Vec<String>) {
    let derived = derive(
        certificate.request,
        certificate.audit.clone(),
        certificate.before.clone(),
    );
    let Some(mut derived) = derived else {
        problems.push(format!(
            "no audit record says who made request {}",
            certificate.request
        ));
        return;
    };
    derived.signed = certificate.signed.clone();
    let (should, is) = (derived.digests(), certificate.digests());
    for (name, digest) in &is {
        if should.get(name) != Some(digest) {
            problems.push(format!("'{name}' does not follow from the audit records"));
        }
    }
}

fn signature(certificate: &Certificate, public_key: Option<&str>, problems: &mut Vec<String>) {
    let signed = &certificate.signed;
    if signed.algorithm != "Ed25519" {
        problems.push(format!("algorithm '{}' is not Ed25519", signed.algorithm));
    }
    if public_key.is_some_and(|key| !key.eq_ignore_ascii_case(&signed.public_key)) {
        problems.push(format!(
            "it is signed by {}, which is another key",
            signed.public_key
        ));
    }
    let bytes = (
        from_lower_hex(&signed.public_key),
        from_lower_hex(&signed.signature),
    );
    let (Some(key), Some(signature)) = bytes else {
        problems.push("the public key or the signature is no text of digits 0-9a-f".to_string());
        return;
    };
    let key = UnparsedPublicKey::new(&ED25519, key);
    if key
        .verify(certificate.statement().as_bytes(), &signature)
        .is_err()
    {
        problems.push(
            "the signature does not fit: it, the key, the time or a digest was changed".to_string(),
        );
    }
}

/// Bytes that mean the same, and are not as a certificate is written.
fn other_bytes(text: &str, certificate: &Certificate, problems: &mut Vec<String>) {
    let written = certificate.text();
    if text == written {
        return;
    }
    let same = text
        .bytes()
        .zip(written.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let line = 1 + text
        .bytes()
        .take(same)
        .filter(|byte| *byte == b'\n')
        .count();
    problems.push(format!(
        "byte {same} (line {line}) is not as a certificate is written"
    ));
}
