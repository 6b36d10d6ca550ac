//! Bytes as requests.

use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;

use super::Answer;

/// Longest request line and headers together, bytes.
const HEAD_MAX: usize = 16 * 1024;
/// Most headers.
const HEADERS_MAX: usize = 64;
/// Longest body, bytes.
const BODY_MAX: usize = 64 * 1024;
/// What one read may bring, bytes.
const CHUNK: usize = 4096;

/// A request as it came, whole.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// What is asked for, with what follows `?`.
    pub target: String,
    /// Names and values in their order.
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Who asks.
    pub peer: IpAddr,
    /// Whether the connection ends with its answer.
    pub is_last: bool,
}

impl Request {
    /// What is asked for, without what follows `?`.
    pub fn path(&self) -> &str {
        self.target.split(['?', '#']).next().unwrap_or_default()
    }

    /// Names and values of what follows `?`, decoded.
    pub fn query(&self) -> Vec<(String, String)> {
        let query = self.target.split('#').next().unwrap_or_default();
        form(query.split_once('?').map_or("", |(_, query)| query))
    }

    /// Names and values of the fields of a form in the body, decoded.
    pub fn fields(&self) -> Vec<(String, String)> {
        form(&String::from_utf8_lossy(&self.body))
    }

    /// The value of the first header of that name, which is in no case.
    pub fn header(&self, name: &str) -> Option<&str> {
        values(&self.headers, name).next()
    }
}

/// Names and values of `application/x-www-form-urlencoded`.
fn form(text: &str) -> Vec<(String, String)> {
    let fields = text.split('&').filter(|field| !field.is_empty());
    fields
        .map(|field| {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            (decoded(name), decoded(value))
        })
        .collect()
}

/// Text in which `+` is a space and `%41` an A; what is no such code stays as it is.
fn decoded(text: &str) -> String {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = match (first, behind) {
            (b'%', [high, low, ..]) => digit(*high).zip(digit(*low)),
            _ => None,
        };
        rest = behind;
        match (code, first) {
            (Some((high, low)), _) => {
                bytes.push(high << 4 | low);
                rest = behind.get(2..).unwrap_or_default();
            }
            (None, b'+') => bytes.push(b' '),
            (None, other) => bytes.push(*other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Why no request came.
#[derive(Debug)]
pub enum Unreadable {
    /// The connection is of no use any more.
    Gone(io::Error),
    /// What came is no request, or one that is not served: to be told, and then the connection ends.
    Refused(Answer),
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

/// The next request of `peer`; `None` when the connection ends, or is silent for too long, before one
/// begins. `buffer` has what came beyond the request before.
///
/// # Errors
/// [`Unreadable`].
pub fn read(
    stream: &mut (impl Read + Write),
    buffer: &mut Vec<u8>,
    peer: IpAddr,
) -> Result<Option<Request>, Unreadable> {
    let head = loop {
        if let Some(head) = Head::parse(buffer)? {
            break head;
        }
        if buffer.len() >= HEAD_MAX {
            return Err(too_long());
        }
        match fill(stream, buffer) {
            Ok(true) => {}
            Ok(false) if buffer.is_empty() => return Ok(None),
            Ok(false) => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
            Err(error) if buffer.is_empty() && is_silence(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    };
    let whole = head.bytes + head.body_bytes;
    if head.expects_continue && buffer.len() < whole {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        stream.flush()?;
    }
    while buffer.len() < whole {
        if !fill(stream, buffer)? {
            return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
        }
    }
    assert!(
        head.bytes <= HEAD_MAX && head.body_bytes <= BODY_MAX,
        "a request is too long"
    );
    let rest = buffer.split_off(whole);
    let mut request = std::mem::replace(buffer, rest);
    let body = request.split_off(head.bytes);
    Ok(Some(Request {
        method: head.method,
        target: head.target,
        headers: head.headers,
        body,
        peer,
        is_last: head.is_last,
    }))
}

/// Adds what comes next; whether something came.
fn fill(stream: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let mut chunk = [0; CHUNK];
    let bytes = stream.read(&mut chunk)?;
    buffer.extend_from_slice(&chunk[..bytes]);
    Ok(bytes > 0)
}

/// Whether a client that was to send nothing more has left, or has nothing more to send.
fn is_silence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock
            | ErrorKind::TimedOut
            | ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
    )
}

fn refused(status: u16, why: &str) -> Unreadable {
    Unreadable::Refused(Answer::text(status, format!("{why}\n")))
}

fn too_long() -> Unreadable {
    let why =
        format!("a request has at most {HEAD_MAX} bytes and {HEADERS_MAX} headers before its body");
    refused(431, &why)
}

/// What stands before the body.
#[derive(Debug)]
struct Head {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    is_last: bool,
    expects_continue: bool,
    /// Length with the empty line at its end.
    bytes: usize,
    body_bytes: usize,
}

impl Head {
    /// The head that `buffer` begins with; `None` when it is not whole.
    fn parse(buffer: &[u8]) -> Result<Option<Self>, Unreadable> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut headers);
        let bytes = match parsed.parse(buffer) {
            Ok(httparse::Status::Complete(bytes)) if bytes <= HEAD_MAX => bytes,
            Ok(httparse::Status::Complete(_)) | Err(httparse::Error::TooManyHeaders) => {
                return Err(too_long());
            }
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(error) => return Err(refused(400, &format!("no HTTP request: {error}"))),
        };
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let headers: Vec<_> = parsed
            .headers
            .iter()
            .map(|header| (header.name.to_owned(), text(header.value)))
            .collect();
        let has = |name, word: &str| {
            let words = values(&headers, name).flat_map(|value| value.split(','));
            words
                .map(str::trim)
                .any(|found| found.eq_ignore_ascii_case(word))
        };
        Ok(Some(Self {
            method: parsed.method.unwrap_or_default().to_owned(),
            target: parsed.path.unwrap_or_default().to_owned(),
            is_last: parsed.version != Some(1) || has("Connection", "close"),
            expects_continue: has("Expect", "100-continue"),
            bytes,
            body_bytes: body_bytes(&headers)?,
            headers,
        }))
    }
}

fn values<'a>(headers: &'a [(String, String)], name: &str) -> impl Iterator<Item = &'a str> {
    let named = move |(found, _): &&(String, String)| found.eq_ignore_ascii_case(name);
    headers
        .iter()
        .filter(named)
        .map(|(_, value)| value.as_str())
}

/// How long the body is. Where two headers could tell two lengths, none is believed.
fn body_bytes(headers: &[(String, String)]) -> Result<usize, Unreadable> {
    if values(headers, "Transfer-Encoding").next().is_some() {
        return Err(refused(
            501,
            "a body comes with Content-Length, not with Transfer-Encoding",
        ));
    }
    let mut lengths = values(headers, "Content-Length");
    let Some(length) = lengths.next() else {
        return Ok(0);
    };
    let is_number = !length.is_empty() && length.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number || lengths.next().is_some() {
        return Err(refused(400, "Content-Length is one number of bytes"));
    }
    match length.parse() {
        Ok(bytes) if bytes <= BODY_MAX => Ok(bytes),
        _ => Err(refused(
            413,
            &format!("a body has at most {BODY_MAX} bytes"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    /// Sends `bytes` in pieces of `piece`, and keeps what is written to it.
    struct Client<'a> {
        bytes: &'a [u8],
        piece: usize,
        told: Vec<u8>,
    }

    impl Read for Client<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let bytes = self.piece.min(into.len()).min(self.bytes.len());
            let (now, later) = self.bytes.split_at(bytes);
            into[..bytes].copy_from_slice(now);
            self.bytes = later;
            Ok(bytes)
        }
    }

    impl Write for Client<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.told.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn read_all(bytes: &[u8], piece: usize) -> (Vec<Request>, Option<Unreadable>, Vec<u8>) {
        let mut client = Client {
            bytes,
            piece,
            told: Vec::new(),
        };
        let (mut buffer, mut requests) = (Vec::new(), Vec::new());
        let end = loop {
            match read(&mut client, &mut buffer, Ipv4Addr::LOCALHOST.into()) {
                Ok(Some(request)) => requests.push(request),
                Ok(None) => break None,
                Err(why) => break Some(why),
            }
        };
        (requests, end, client.told)
    }

    fn refusal(bytes: &[u8]) -> u16 {
        match read_all(bytes, bytes.len()).1 {
            Some(Unreadable::Refused(answer)) => answer.status,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn requests_are_the_same_in_whatever_pieces_they_come() {
        let bytes = b"POST /backup?now HTTP/1.1\r\nHost: a\r\nexpect: 100-Continue\r\ncontent-length: 3\r\n\r\nabc\
                      GET / HTTP/1.1\r\nHost: b\r\nConnection: Close\r\n\r\n";
        let (whole, end, _) = read_all(bytes, bytes.len());
        assert!(end.is_none(), "{end:?}");
        assert_eq!(
            (whole[0].path(), whole[0].body.as_slice()),
            ("/backup", &b"abc"[..])
        );
        assert_eq!(whole[0].header("HOST"), Some("a"));
        assert_eq!((whole[0].is_last, whole[1].is_last), (false, true));
        for piece in 1..bytes.len() {
            let (pieces, end, told) = read_all(bytes, piece);
            assert!(end.is_none(), "{end:?}");
            assert_eq!(pieces, whole);
            if piece == 1 {
                assert_eq!(told, b"HTTP/1.1 100 Continue\r\n\r\n");
            }
        }
    }

    #[test]
    fn forms_and_queries_are_decoded_and_no_text_is_refused() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            form("kind=d.users&id=a+b%2C%c3%a9&&x&=y&z=1=2"),
            [
                pair("kind", "d.users"),
                pair("id", "a b,é"),
                pair("x", ""),
                pair("", "y"),
                pair("z", "1=2"),
            ]
        );
        for odd in ["%", "%4", "%zz", "%%41", "%ff", "+", "é"] {
            let shown = decoded(odd);
            assert!(!shown.is_empty(), "{odd}");
        }
        assert_eq!(decoded("%%41%4"), "%A%4");
        let (requests, ..) = read_all(b"GET /a?request=7&b#c HTTP/1.1\r\n\r\n", 9);
        assert_eq!(requests[0].query(), [pair("request", "7"), pair("b", "")]);
        assert_eq!(requests[0].path(), "/a");
    }

    #[test]
    fn a_request_of_http_1_0_is_the_last_of_its_connection() {
        let (requests, ..) = read_all(b"GET /readyz HTTP/1.0\r\n\r\n", 7);
        assert!(requests[0].is_last && requests[0].header("Host").is_none());
    }

    #[test]
    fn what_is_no_request_or_too_long_is_refused() {
        let post = |headers: &str| format!("POST / HTTP/1.1\r\n{headers}\r\n\r\n");
        assert_eq!(refusal(b"\x16\x03\x01\x02\x00\x01\x00\x01"), 400);
        assert_eq!(refusal(post("Content-Length: +3").as_bytes()), 400);
        assert_eq!(refusal(post("Content-Length: ").as_bytes()), 400);
        let two = post("Content-Length: 3\r\nContent-Length: 3");
        assert_eq!(refusal(two.as_bytes()), 400);
        assert_eq!(refusal(post("Content-Length: 65537").as_bytes()), 413);
        let huge = post("Content-Length: 99999999999999999999999");
        assert_eq!(refusal(huge.as_bytes()), 413);
        assert_eq!(refusal(post("Transfer-Encoding: chunked").as_bytes()), 501);
        assert_eq!(refusal(post("A: b\r\n".repeat(99).trim()).as_bytes()), 431);
        let endless = format!("GET /{} HTTP/1.1\r\n", "a".repeat(HEAD_MAX));
        assert_eq!(refusal(endless.as_bytes()), 431);
    }

    #[test]
    fn a_request_that_breaks_off_is_none() {
        for bytes in [
            &b"GET / HT"[..],
            b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab",
        ] {
            let (requests, end, _) = read_all(bytes, 5);
            assert!(
                requests.is_empty() && matches!(end, Some(Unreadable::Gone(_))),
                "{end:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_requests_or_a_reason(bytes in prop::collection::vec(any::<u8>(), 0..200), piece in 1..50_usize) {
            let (requests, _, _) = read_all(&bytes, piece);
            prop_assert!(requests.iter().all(|request| request.body.len() <= BODY_MAX));
        }
    }
}
