//! What the console shows of ownership: definitions and requests to who reads its pages, people and
//! certificates to accounts with the privilege GDPR.

use std::sync::Arc;

use manxdb_gateway::admin::{Credentials, Owners, OwnersRefusal};
use manxdb_gateway::mysql::check_password;
use manxdb_sql::error::SqlError;
use manxdb_sql::session::{CertificateOverview, Instance, PersonTree, TreeLink, TreeRow};
use serde_json::{Value, json};

/// Asks this server.
pub struct OwnersHere {
    pub instance: Arc<Instance>,
}

impl OwnersHere {
    /// The identity of the account whose name and password these are.
    fn identity(&self, by: &Credentials) -> Result<String, OwnersRefusal> {
        let account = check_password(&self.instance, &by.name, &by.host, &by.password);
        let account = account.ok_or(OwnersRefusal::NotLoggedIn)?;
        Ok(account.identity)
    }
}

fn refused(error: &SqlError) -> OwnersRefusal {
    let why = error.message.clone();
    match error.code {
        1044 | 1142 | 1227 => OwnersRefusal::Denied(why),
        51004 => OwnersRefusal::NotFound(why),
        code => OwnersRefusal::Failed(format!("error {code}: {why}")),
    }
}

impl Owners for OwnersHere {
    fn overview(&self) -> Value {
        overview(&self.instance)
    }

    fn kinds(&self, by: &Credentials) -> Result<Vec<String>, OwnersRefusal> {
        let identity = self.identity(by)?;
        let kinds = self.instance.kinds_of_people(&identity);
        kinds.map_err(|error| refused(&error))
    }

    fn person(&self, by: &Credentials, kind: &str, id: &str) -> Result<Value, OwnersRefusal> {
        let identity = self.identity(by)?;
        let tree = self.instance.person_tree(&identity, kind, id);
        tree.map(|tree| tree_of(&tree))
            .map_err(|error| refused(&error))
    }

    fn certificates(&self, by: &Credentials) -> Result<Value, OwnersRefusal> {
        let identity = self.identity(by)?;
        let listed = self.instance.certificates(&identity);
        let listed = listed.map_err(|error| refused(&error))?;
        let listed = listed.iter().map(certificate_of);
        Ok(json!({ "certificates": listed.collect::<Value>() }))
    }

    fn certificate(&self, by: &Credentials, request: u64) -> Result<String, OwnersRefusal> {
        let identity = self.identity(by)?;
        let text = self.instance.certificate(&identity, request);
        text.map_err(|error| refused(&error))
    }
}

/// Whose the rows of each table are, and requests to forget.
fn overview(instance: &Instance) -> Value {
    let overview = match instance.ownership_overview() {
        Ok(overview) => overview,
        Err(error) => return json!({ "error": error.to_string() }),
    };
    let tables = overview
        .tables
        .iter()
        .map(|table| json!({ "name": table.name, "kind": table.kind, "findings": table.findings }));
    let links = overview.links.iter().map(|link| {
        json!({
            "from": link.from,
            "to": link.to,
            "columns": link.columns,
            "word": link.word,
            "leads_down": link.leads_down,
            "is_inferred": link.is_inferred,
        })
    });
    let requests = overview.requests.iter().map(|request| {
        let shown = |micros: i64| {
            let at = jiff::Timestamp::from_microsecond(micros);
            at.map(|at| at.to_string()).unwrap_or_default()
        };
        json!({
            "number": request.number,
            "kind": request.kind,
            "state": request.state,
            "rows": request.rows,
            "asked_by": request.asked_by,
            "asked_at": shown(request.asked_at_micros),
            "due_at": request.due_at_micros.map(shown),
        })
    });
    json!({
        "sealed": overview.is_sealed,
        "tables": tables.collect::<Value>(),
        "links": links.collect::<Value>(),
        "requests": requests.collect::<Value>(),
    })
}

fn tree_of(tree: &PersonTree) -> Value {
    let tables = tree.tables.iter().map(|table| {
        json!({
            "name": table.name,
            "owned": table.owned,
            "accessed": table.accessed,
            "is_readable": table.is_readable,
        })
    });
    json!({
        "kind": tree.kind,
        "tables": tables.collect::<Value>(),
        "person": row_of(&tree.person),
    })
}

fn row_of(row: &TreeRow) -> Value {
    json!({ "key": row.key, "links": row.links.iter().map(link_of).collect::<Value>() })
}

fn link_of(link: &TreeLink) -> Value {
    json!({
        "table": link.table,
        "link": link.link,
        "is_owned": link.is_owned,
        "rows": link.rows,
        "shown": link.shown.iter().map(row_of).collect::<Value>(),
    })
}

fn certificate_of(certificate: &CertificateOverview) -> Value {
    json!({
        "request": certificate.request,
        "kind": certificate.kind,
        "state": certificate.state,
        "asked_by": certificate.asked_by,
        "done": certificate.done,
        "unreadable_here": certificate.unreadable_here,
        "gone_from_files": certificate.gone_from_files,
        "unreadable_in_every_copy": certificate.unreadable_in_every_copy,
        "problems": certificate.problems,
    })
}
