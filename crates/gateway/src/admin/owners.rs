//! Pages about people: who may ask, what is asked, and the answer.
//!
//! Every one of them needs an account with the privilege GDPR, by name and password (HTTP Basic), also from
//! the machine itself: who can reach the port there is nobody in particular. The id of a person comes in the
//! body of a POST, so that it is in no address that browsers and proxies keep, and answers are not to be
//! stored.

use serde_json::{Value, json};

use super::http::{Answer, Request};
use super::login::{self, Credentials, Origin};
use super::{certificates_page, person_page};

/// What a request without a login is told.
const LOG_IN: &str = "log in with an account that has the privilege GDPR: data of people is shown to nobody \
                      else, also not on the machine itself\n";

/// Why nothing is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnersRefusal {
    /// Name or password is wrong.
    NotLoggedIn,
    /// The account may not see it.
    Denied(String),
    /// There is no such person, kind or request.
    NotFound(String),
    /// It cannot be shown now.
    Failed(String),
}

/// What the pages about people ask. Each method checks who asks.
pub trait Owners: Send + Sync {
    /// Whose the rows of each table are: `tables`, `links`, `requests` to forget, the newest first, and
    /// whether rows are `sealed`. No value of a row is in it, and everybody may see it who reads pages.
    fn overview(&self) -> Value;

    /// Tables of people that the account may see, `database.table`.
    ///
    /// # Errors
    /// [`OwnersRefusal`].
    fn kinds(&self, by: &Credentials) -> Result<Vec<String>, OwnersRefusal>;

    /// The rows of a person as a tree: `kind`, `tables` with counts, and `person`, a row: its `key`, and
    /// `links` to rows that were found through it.
    ///
    /// # Errors
    /// [`OwnersRefusal`].
    fn person(&self, by: &Credentials, kind: &str, id: &str) -> Result<Value, OwnersRefusal>;

    /// Certificates that the account may see, the newest first, each with the `problems` that its
    /// verification has found.
    ///
    /// # Errors
    /// [`OwnersRefusal`].
    fn certificates(&self, by: &Credentials) -> Result<Value, OwnersRefusal>;

    /// The text of a certificate.
    ///
    /// # Errors
    /// [`OwnersRefusal`].
    fn certificate(&self, by: &Credentials, request: u64) -> Result<String, OwnersRefusal>;
}

impl OwnersRefusal {
    fn status(&self) -> u16 {
        match self {
            OwnersRefusal::NotLoggedIn => 401,
            OwnersRefusal::Denied(_) => 403,
            OwnersRefusal::NotFound(_) => 404,
            OwnersRefusal::Failed(_) => 500,
        }
    }

    fn message(&self) -> &str {
        match self {
            OwnersRefusal::NotLoggedIn => LOG_IN,
            OwnersRefusal::Denied(why)
            | OwnersRefusal::NotFound(why)
            | OwnersRefusal::Failed(why) => why,
        }
    }

    fn answer(&self) -> Answer {
        let line = self.message().trim_end();
        Answer::text(self.status(), format!("{line}\n"))
    }
}

/// Whether a path is one of these pages.
pub(super) fn is_about_people(path: &str) -> bool {
    matches!(
        path,
        "/ownership/person" | "/ownership/certificates" | "/ownership/certificate"
    )
}

/// The answer to a request for one of these pages.
pub(super) fn answer(
    owners: &dyn Owners,
    request: &Request,
    origin: Origin<'_>,
    wants_json: bool,
) -> Answer {
    let Some(by) = login::credentials_of(origin) else {
        return OwnersRefusal::NotLoggedIn.answer();
    };
    let answer = match (request.method.as_str(), request.path()) {
        ("GET" | "HEAD", "/ownership/person") => form(owners, &by),
        ("POST", "/ownership/person") => person(owners, request, &by, wants_json),
        ("GET" | "HEAD", "/ownership/certificates") => certificates(owners, &by, wants_json),
        ("GET" | "HEAD", "/ownership/certificate") => certificate(owners, request, &by),
        _ => Answer::text(405, "method not allowed\n"),
    };
    answer.with("Cache-Control", "no-store".to_owned())
}

fn form(owners: &dyn Owners, by: &Credentials) -> Answer {
    match owners.kinds(by) {
        Ok(kinds) => Answer::page(person_page::render(&kinds, None)),
        Err(refusal) => refusal.answer(),
    }
}

fn person(owners: &dyn Owners, request: &Request, by: &Credentials, wants_json: bool) -> Answer {
    let kinds = match owners.kinds(by) {
        Ok(kinds) => kinds,
        Err(refusal) => return refusal.answer(),
    };
    let fields = request.fields();
    let field = |name: &str| {
        let mut fields = fields.iter();
        let found = fields.find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    let (kind, id) = (field("kind"), field("id"));
    let found = if kind.is_empty() || id.is_empty() {
        let text = "choose what the person is, and enter the primary key";
        Err(OwnersRefusal::NotFound(text.to_owned()))
    } else {
        owners.person(by, kind, id)
    };
    let status = found.as_ref().map_or_else(OwnersRefusal::status, |_| 200);
    if wants_json {
        let body = found.unwrap_or_else(|refusal| json!({ "error": refusal.message() }));
        return Answer::json(status, &body);
    }
    let asked = person_page::Asked {
        kind,
        id,
        found: found.as_ref().map_err(OwnersRefusal::message),
    };
    let page = Answer::page(person_page::render(&kinds, Some(&asked)));
    Answer { status, ..page }
}

fn certificates(owners: &dyn Owners, by: &Credentials, wants_json: bool) -> Answer {
    match owners.certificates(by) {
        Ok(certificates) if wants_json => Answer::json(200, &certificates),
        Ok(certificates) => Answer::page(certificates_page::render(&certificates)),
        Err(refusal) => refusal.answer(),
    }
}

fn certificate(owners: &dyn Owners, request: &Request, by: &Credentials) -> Answer {
    let number = request.query().into_iter();
    let number = number
        .filter(|(name, _)| name == "request")
        .find_map(|(_, number)| number.parse::<u64>().ok());
    let Some(number) = number else {
        return Answer::text(400, "say which: /ownership/certificate?request=19\n");
    };
    match owners.certificate(by, number) {
        Ok(text) => Answer {
            content_type: "application/json",
            ..Answer::text(200, format!("{text}\n"))
        }
        .with(
            "Content-Disposition",
            format!("attachment; filename=\"certificate-{number}.json\""),
        ),
        Err(refusal) => refusal.answer(),
    }
}
