//! What a client is answered.

use crate::error::CommandError;

/// Which protocol a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// The one of every client.
    #[default]
    Resp2,
    /// Asked for with HELLO 3.
    Resp3,
}

/// An answer, in the types of RESP 3; RESP 2 has fewer and gets the nearest.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A short word.
    Simple(&'static str),
    /// A word that a script made up.
    Status(Vec<u8>),
    /// An error.
    Error(CommandError),
    /// A number.
    Integer(i64),
    /// Bytes.
    Bulk(Vec<u8>),
    /// Text for people, of INFO and the like.
    Verbatim(String),
    /// Nothing, where bytes were expected.
    Null,
    /// Nothing, where an array was expected.
    NullArray,
    /// A floating-point number.
    Double(f64),
    /// A floating-point number without an exponent, with up to 17 digits behind the point.
    LongDouble(f64),
    /// Yes or no.
    Bool(bool),
    /// Answers in order.
    Array(Vec<Reply>),
    /// Answers in no order.
    Set(Vec<Reply>),
    /// Pairs.
    Map(Vec<(Reply, Reply)>),
    /// Pairs in order: an array of pairs, flat in RESP 2.
    Pairs(Vec<(Reply, Reply)>),
    /// Pairs in order: a map in RESP 3, an array of pairs in RESP 2.
    MapOrPairs(Vec<(Reply, Reply)>),
    /// Not asked for: a message.
    Push(Vec<Reply>),
    /// Nothing is sent now: the client waits for a key, or was answered otherwise.
    Later,
}

impl Reply {
    /// `OK`.
    pub const OK: Self = Self::Simple("OK");

    /// Bytes.
    pub fn bulk(bytes: impl AsRef<[u8]>) -> Self {
        Self::Bulk(bytes.as_ref().to_vec())
    }

    /// Bytes or nothing.
    pub fn bulk_or_null(bytes: Option<&[u8]>) -> Self {
        bytes.map_or(Self::Null, Self::bulk)
    }

    /// A count.
    pub fn count(count: usize) -> Self {
        Self::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// A number of 64 bits; more than fit are as many as do.
    pub fn wide(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }

    /// 1 or 0.
    pub fn flag(flag: bool) -> Self {
        Self::Integer(i64::from(flag))
    }

    /// An error.
    pub fn error(text: impl Into<String>) -> Self {
        Self::Error(CommandError::new(text.into()))
    }

    /// Whether it is an error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// Adds its bytes to `out`.
    pub fn encode(&self, protocol: Protocol, out: &mut Vec<u8>) {
        let is_new = protocol == Protocol::Resp3;
        match self {
            Self::Later => {}
            Self::Simple(word) => line(out, b'+', word.as_bytes()),
            Self::Status(word) => {
                // Nothing that a client sent may end the line.
                let word: Vec<u8> = word
                    .iter()
                    .map(|byte| {
                        if matches!(byte, b'\r' | b'\n') {
                            b' '
                        } else {
                            *byte
                        }
                    })
                    .collect();
                line(out, b'+', &word);
            }
            Self::Error(error) => {
                // Nothing that a client sent may end the line.
                let text = error.0.replace(['\r', '\n'], " ");
                line(out, b'-', text.as_bytes());
            }
            Self::Integer(value) => number(out, b':', *value),
            Self::Bulk(bytes) => bulk(out, bytes),
            Self::Verbatim(text) if is_new => {
                length(out, b'=', text.len() + 4);
                out.extend_from_slice(b"txt:");
                out.extend_from_slice(text.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
            Self::Verbatim(text) => bulk(out, text.as_bytes()),
            Self::Null | Self::NullArray if is_new => out.extend_from_slice(b"_\r\n"),
            Self::Null => out.extend_from_slice(b"$-1\r\n"),
            Self::NullArray => out.extend_from_slice(b"*-1\r\n"),
            Self::Double(value) => {
                let text = crate::number::write_float(*value);
                if is_new {
                    line(out, b',', text.as_bytes());
                } else {
                    bulk(out, text.as_bytes());
                }
            }
            Self::LongDouble(value) => {
                let text = format!("{value:.17}");
                let text = text.trim_end_matches('0').trim_end_matches('.');
                if is_new {
                    line(out, b',', text.as_bytes());
                } else {
                    bulk(out, text.as_bytes());
                }
            }
            Self::Bool(value) if is_new => line(out, b'#', if *value { b"t" } else { b"f" }),
            Self::Bool(value) => number(out, b':', i64::from(*value)),
            Self::Array(parts) => many(out, b'*', parts, protocol),
            Self::Set(parts) => many(out, if is_new { b'~' } else { b'*' }, parts, protocol),
            Self::Push(parts) => many(out, if is_new { b'>' } else { b'*' }, parts, protocol),
            Self::Pairs(pairs) => {
                length(
                    out,
                    b'*',
                    if is_new { pairs.len() } else { pairs.len() * 2 },
                );
                for (one, other) in pairs {
                    if is_new {
                        length(out, b'*', 2);
                    }
                    one.encode(protocol, out);
                    other.encode(protocol, out);
                }
            }
            Self::MapOrPairs(pairs) => {
                length(out, if is_new { b'%' } else { b'*' }, pairs.len());
                for (key, value) in pairs {
                    if !is_new {
                        length(out, b'*', 2);
                    }
                    key.encode(protocol, out);
                    value.encode(protocol, out);
                }
            }
            Self::Map(pairs) => {
                if is_new {
                    length(out, b'%', pairs.len());
                } else {
                    length(out, b'*', pairs.len() * 2);
                }
                for (key, value) in pairs {
                    key.encode(protocol, out);
                    value.encode(protocol, out);
                }
            }
        }
    }
}

impl From<Result<Reply, CommandError>> for Reply {
    fn from(result: Result<Reply, CommandError>) -> Self {
        result.unwrap_or_else(Self::Error)
    }
}

fn line(out: &mut Vec<u8>, marker: u8, text: &[u8]) {
    out.push(marker);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn number(out: &mut Vec<u8>, marker: u8, value: i64) {
    out.push(marker);
    push_number(out, value);
    out.extend_from_slice(b"\r\n");
}

fn length(out: &mut Vec<u8>, marker: u8, length: usize) {
    number(out, marker, i64::try_from(length).unwrap_or(i64::MAX));
}

fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    length(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn many(out: &mut Vec<u8>, marker: u8, parts: &[Reply], protocol: Protocol) {
    length(out, marker, parts.len());
    for part in parts {
        part.encode(protocol, out);
    }
}

/// Decimal digits, without a string on the way.
pub fn push_number(out: &mut Vec<u8>, value: i64) {
    let mut digits = [0_u8; 20];
    let mut place = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        place -= 1;
        digits[place] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[place..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(reply: &Reply, protocol: Protocol) -> String {
        let mut out = Vec::new();
        reply.encode(protocol, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_protocol_gets_its_types() {
        let map = Reply::Map(vec![(Reply::bulk("a"), Reply::Double(1.5))]);
        assert_eq!(
            text(&map, Protocol::Resp2),
            "*2\r\n$1\r\na\r\n$3\r\n1.5\r\n"
        );
        assert_eq!(text(&map, Protocol::Resp3), "%1\r\n$1\r\na\r\n,1.5\r\n");
        let streams = Reply::MapOrPairs(vec![(Reply::bulk("a"), Reply::Integer(1))]);
        assert_eq!(
            text(&streams, Protocol::Resp2),
            "*1\r\n*2\r\n$1\r\na\r\n:1\r\n"
        );
        assert_eq!(text(&streams, Protocol::Resp3), "%1\r\n$1\r\na\r\n:1\r\n");
        assert_eq!(text(&Reply::Null, Protocol::Resp3), "_\r\n");
        assert_eq!(text(&Reply::NullArray, Protocol::Resp2), "*-1\r\n");
        assert_eq!(
            text(&Reply::Integer(i64::MIN), Protocol::Resp2),
            ":-9223372036854775808\r\n"
        );
        assert_eq!(
            text(&Reply::error("ERR a\r\nb"), Protocol::Resp2),
            "-ERR a  b\r\n"
        );
    }
}
