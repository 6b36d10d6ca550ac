//! Answers as bytes.

use std::fmt::Write as _;

use jiff::fmt::rfc2822::DateTimePrinter;
use serde_json::Value;

/// How to log in, for browsers.
const CHALLENGE: &str = "Basic realm=\"ManxDB\", charset=\"UTF-8\"";
/// A page runs its own script and shows its own style; text of clients on it stays text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// Status, content type and body.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub content_type: &'static str,
    pub body: String,
    /// More headers.
    pub extra: Vec<(&'static str, String)>,
}

impl Answer {
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
            extra: Vec::new(),
        }
    }

    pub fn page(body: String) -> Self {
        Self {
            status: 200,
            content_type: "text/html; charset=utf-8",
            body,
            extra: Vec::new(),
        }
    }

    pub fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            content_type: "application/json",
            body: format!("{body:#}\n"),
            extra: Vec::new(),
        }
    }

    /// With one header more.
    pub fn with(mut self, name: &'static str, value: String) -> Self {
        assert!(!value.contains(['\r', '\n']), "a header is one line");
        self.extra.push((name, value));
        self
    }

    /// The answer to one request: without its body when only the head was asked for; the last one says that
    /// the connection ends.
    pub fn bytes(&self, is_head: bool, is_last: bool) -> Vec<u8> {
        let mut text = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        let mut header = |name: &str, value: &str| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{name}: {value}\r\n");
        };
        if let Ok(date) =
            DateTimePrinter::new().timestamp_to_rfc9110_string(&jiff::Timestamp::now())
        {
            header("Date", &date);
        }
        header("Content-Type", self.content_type);
        header("Content-Length", &self.body.len().to_string());
        header("Content-Security-Policy", POLICY);
        header("X-Content-Type-Options", "nosniff");
        for (name, value) in &self.extra {
            header(name, value);
        }
        if self.status == 401 {
            header("WWW-Authenticate", CHALLENGE);
        }
        if is_last {
            header("Connection", "close");
        }
        text.push_str("\r\n");
        if !is_head {
            text.push_str(&self.body);
        }
        text.into_bytes()
    }
}

/// What a status is called (RFC 9110 §15).
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_how_long_it_is_and_whether_it_is_the_last() {
        let answer = Answer::text(401, "who?\n");
        let text = String::from_utf8(answer.bytes(false, true)).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 401 Unauthorized\r\nDate: "),
            "{head}"
        );
        assert!(head.contains(" GMT\r\n"), "{head}");
        for line in [
            "Content-Length: 5",
            "WWW-Authenticate: Basic realm=\"ManxDB\", charset=\"UTF-8\"",
            "Connection: close",
        ] {
            assert!(head.lines().any(|found| found == line), "{line}: {head}");
        }
        assert_eq!(body, "who?\n");
        let head_alone = String::from_utf8(answer.bytes(true, false)).unwrap();
        assert!(head_alone.ends_with("\r\n\r\n") && head_alone.contains("Content-Length: 5\r\n"));
        assert!(!head_alone.contains("Connection"));
    }
}
