//! Certificates of requests, each made and verified when it is asked for.

use std::sync::Arc;

use manxdb_ownership::proof::{AuditRecord, AuditTrail, Certificate, verify};

use super::may_see;
use crate::error::SqlResult;
use crate::session::gdpr::unknown;
use crate::session::instance::Instance;
use crate::session::session::Session;
use crate::statement::owners::audit;

/// Requests that are listed, the newest.
const LISTED_MAX: usize = 100;

/// What a certificate says, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateOverview {
    /// The request.
    pub request: u64,
    /// `database.table` of the person.
    pub kind: String,
    /// `done`, or what it waits for.
    pub state: String,
    /// Who asked.
    pub asked_by: String,
    /// When rows were gone from tables.
    pub done: Option<String>,
    /// When no key was left here.
    pub unreadable_here: Option<String>,
    /// When files had nothing left.
    pub gone_from_files: Option<String>,
    /// When old copies of the vault became unreadable.
    pub unreadable_in_every_copy: Option<String>,
    /// What is wrong with it; nothing: it verifies.
    pub problems: Vec<String>,
}

impl Instance {
    /// The newest requests' certificates, of databases whose people the account may see.
    ///
    /// # Errors
    /// 1044 without the privilege GDPR; 51005 when they cannot be signed; storage.
    pub fn certificates(self: &Arc<Self>, identity: &str) -> SqlResult<Vec<CertificateOverview>> {
        let session = self.asked_by(identity)?;
        let records = self.audit_records()?;
        let trail = AuditTrail::read(&records);
        let mut listed = Vec::new();
        for request in trail.requests().into_iter().rev() {
            let certificate = self.certificate_from(&session, &trail, request)?;
            if let Some(certificate) = certificate {
                listed.push(overview_of(&certificate));
            }
            if listed.len() == LISTED_MAX {
                break;
            }
        }
        Ok(listed)
    }

    /// The text of a request's certificate, as `GDPR CERTIFICATE` answers it.
    ///
    /// # Errors
    /// 51004 when there is no such request that the account may see; else as [`Instance::certificates`].
    pub fn certificate(self: &Arc<Self>, identity: &str, request: u64) -> SqlResult<String> {
        let session = self.asked_by(identity)?;
        let records = self.audit_records()?;
        let trail = AuditTrail::read(&records);
        let certificate = self.certificate_from(&session, &trail, request)?;
        let certificate = certificate.ok_or_else(|| {
            unknown(format!(
                "there is no request {request} whose certificate you may see"
            ))
        })?;
        Ok(certificate.text())
    }

    fn audit_records(&self) -> SqlResult<Vec<AuditRecord>> {
        let txn = self.store.begin();
        txn.declare_read_only();
        audit::behind(&txn, 0)
    }

    fn certificate_from(
        &self,
        session: &Session,
        trail: &AuditTrail<'_>,
        request: u64,
    ) -> SqlResult<Option<Certificate>> {
        let key = self.proof_key()?;
        let certificate = trail.issue(request, self.audit_time(), &key);
        Ok(certificate.filter(|certificate| may_see(session, &certificate.database)))
    }
}

fn overview_of(certificate: &Certificate) -> CertificateOverview {
    // As anybody verifies it who has the text.
    let verified = verify(&certificate.text(), Some(&certificate.signed.public_key));
    CertificateOverview {
        request: certificate.request,
        kind: format!("{}.{}", certificate.database, certificate.kind),
        state: certificate.state.clone(),
        asked_by: certificate.asked_by.clone(),
        done: certificate.times.done.clone(),
        unreadable_here: certificate.times.unreadable_here.clone(),
        gone_from_files: certificate.times.gone_from_files.clone(),
        unreadable_in_every_copy: certificate.times.unreadable_in_every_copy.clone(),
        problems: verified.problems,
    }
}
