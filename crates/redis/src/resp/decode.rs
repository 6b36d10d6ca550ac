//! Bytes from a client into commands.

use std::borrow::Cow;

use crate::command::Command;

/// What a client may send.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of one argument (`proto-max-bulk-len`).
    pub bulk_bytes: usize,
    /// Arguments of one command.
    pub arguments: usize,
    /// Bytes of a line: an inline command, or a length.
    pub line_bytes: usize,
}

impl Limits {
    /// Redis's own.
    pub const REDIS: Self = Self {
        bulk_bytes: 512 << 20,
        arguments: 1 << 20,
        line_bytes: 64 << 10,
    };
    /// For a client that has not given its password.
    pub const UNAUTHENTICATED: Self = Self {
        bulk_bytes: 16 << 10,
        arguments: 10,
        line_bytes: 64 << 10,
    };
}

/// Bytes that are no command. The connection ends with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ERR Protocol error: {0}")]
pub struct ProtocolError(pub Cow<'static, str>);

impl ProtocolError {
    const fn text(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

/// Where the decoder stands in a command that has not come whole. Bytes are looked at once.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Arguments still to come.
    missing: usize,
    /// Bytes of the argument whose length has come.
    bulk: Option<usize>,
    is_inside: bool,
    partial: Command,
}

impl Decoder {
    /// Takes bytes from the front of `input` until a command is whole; how many were taken, and
    /// whether `command` holds one. Empty lines and empty arrays are taken and give no command.
    ///
    /// # Errors
    /// [`ProtocolError`]: nothing that follows can be understood.
    pub fn decode(
        &mut self,
        input: &[u8],
        limits: &Limits,
        command: &mut Command,
    ) -> Result<(usize, bool), ProtocolError> {
        let mut at = 0;
        loop {
            if !self.is_inside {
                match input.get(at) {
                    None => return Ok((at, false)),
                    Some(b'*') => {
                        let Some((count, next)) = length(input, at, limits, ARRAY)? else {
                            return Ok((at, false));
                        };
                        at = next;
                        if count <= 0 {
                            continue;
                        }
                        let count = usize::try_from(count).unwrap_or(usize::MAX);
                        if count > limits.arguments {
                            let is_unauthenticated =
                                limits.arguments == Limits::UNAUTHENTICATED.arguments;
                            let unknown = "unauthenticated multibulk length";
                            return Err(ProtocolError::text(if is_unauthenticated {
                                unknown
                            } else {
                                ARRAY
                            }));
                        }
                        self.missing = count;
                        self.is_inside = true;
                        self.partial.clear();
                    }
                    Some(_) => return inline(input, at, limits, command),
                }
            }
            let (next, is_whole) = self.argument(input, at, limits)?;
            at = next;
            if !is_whole {
                return Ok((at, false));
            }
            if self.missing == 0 {
                self.is_inside = false;
                std::mem::swap(&mut self.partial, command);
                return Ok((at, true));
            }
        }
    }

    /// One argument: how far it was taken, and whether it came whole.
    fn argument(
        &mut self,
        input: &[u8],
        mut at: usize,
        limits: &Limits,
    ) -> Result<(usize, bool), ProtocolError> {
        let bytes = match self.bulk {
            Some(bytes) => bytes,
            None => {
                match input.get(at) {
                    None => return Ok((at, false)),
                    Some(b'$') => {}
                    Some(byte) => {
                        let got = if byte.is_ascii_control() { b' ' } else { *byte };
                        let why = format!("expected '$', got '{}'", char::from(got));
                        return Err(ProtocolError(Cow::Owned(why)));
                    }
                }
                let Some((bytes, next)) = length(input, at, limits, BULK)? else {
                    return Ok((at, false));
                };
                let bytes = usize::try_from(bytes).map_err(|_| ProtocolError::text(BULK))?;
                if bytes > limits.bulk_bytes {
                    let is_unauthenticated =
                        limits.bulk_bytes == Limits::UNAUTHENTICATED.bulk_bytes;
                    let unknown = "unauthenticated bulk length";
                    return Err(ProtocolError::text(if is_unauthenticated {
                        unknown
                    } else {
                        BULK
                    }));
                }
                at = next;
                bytes
            }
        };
        let Some(bulk) = input.get(at..at + bytes + 2) else {
            self.bulk = Some(bytes);
            return Ok((at, false));
        };
        self.bulk = None;
        self.partial.push(&bulk[..bytes]);
        self.missing -= 1;
        Ok((at + bytes + 2, true))
    }
}

const ARRAY: &str = "invalid multibulk length";
const BULK: &str = "invalid bulk length";

/// The number behind the marker at `at`, and where its line ends.
fn length(
    input: &[u8],
    at: usize,
    limits: &Limits,
    wrong: &'static str,
) -> Result<Option<(i64, usize)>, ProtocolError> {
    let rest = &input[at + 1..];
    let looked_at = &rest[..rest.len().min(limits.line_bytes)];
    let Some(end) = looked_at.iter().position(|&byte| byte == b'\r') else {
        return if rest.len() >= limits.line_bytes {
            Err(ProtocolError::text(if wrong == ARRAY {
                "too big mbulk count string"
            } else {
                "too big bulk count string"
            }))
        } else {
            Ok(None)
        };
    };
    if rest.len() < end + 2 {
        return Ok(None);
    }
    match crate::number::integer(&rest[..end]) {
        Some(number) => Ok(Some((number, at + 1 + end + 2))),
        None => Err(ProtocolError::text(wrong)),
    }
}

/// A line of words, as people type them.
fn inline(
    input: &[u8],
    mut at: usize,
    limits: &Limits,
    command: &mut Command,
) -> Result<(usize, bool), ProtocolError> {
    while let Some(byte) = input.get(at) {
        if *byte == b'*' {
            // An array after empty lines.
            return Ok((at, false));
        }
        let rest = &input[at..];
        let looked_at = &rest[..rest.len().min(limits.line_bytes)];
        let Some(end) = looked_at.iter().position(|&byte| byte == b'\n') else {
            return if rest.len() >= limits.line_bytes {
                Err(ProtocolError::text("too big inline request"))
            } else {
                Ok((at, false))
            };
        };
        let line = &rest[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        command.clear();
        words(line, command).ok_or(ProtocolError::text("unbalanced quotes in request"))?;
        at += end + 1;
        if !command.is_empty() {
            return Ok((at, true));
        }
    }
    Ok((at, false))
}

/// Splits a line into words, with quotes and escapes as redis-cli writes them.
fn words(line: &[u8], command: &mut Command) -> Option<()> {
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        let Some(&first) = rest.first() else {
            return Some(());
        };
        let mut word = Vec::new();
        if first == b'"' || first == b'\'' {
            rest = quoted(&rest[1..], first, &mut word)?;
            if rest.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
                return None;
            }
        } else {
            let end = rest.iter().position(u8::is_ascii_whitespace);
            let (plain, after) = rest.split_at(end.unwrap_or(rest.len()));
            if plain.contains(&b'"') || plain.contains(&b'\'') {
                return None;
            }
            word.extend_from_slice(plain);
            rest = after;
        }
        command.push(&word);
    }
}

fn quoted<'a>(mut rest: &'a [u8], quote: u8, word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            byte if byte == quote => return Some(rest),
            b'\\' if quote == b'"' => {
                let (&escaped, after) = rest.split_first()?;
                rest = after;
                match escaped {
                    b'n' => word.push(b'\n'),
                    b'r' => word.push(b'\r'),
                    b't' => word.push(b'\t'),
                    b'b' => word.push(8),
                    b'a' => word.push(7),
                    b'x' if rest.len() >= 2 => match hex(rest[0], rest[1]) {
                        Some(byte) => {
                            word.push(byte);
                            rest = &rest[2..];
                        }
                        None => word.push(b'x'),
                    },
                    other => word.push(other),
                }
            }
            b'\\' if rest.first() == Some(&b'\'') => {
                word.push(b'\'');
                rest = &rest[1..];
            }
            byte => word.push(byte),
        }
    }
}

fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8], pieces: usize) -> Result<Vec<Vec<Vec<u8>>>, ProtocolError> {
        let mut decoder = Decoder::default();
        let (mut command, mut buffer, mut found) = (Command::default(), Vec::new(), Vec::new());
        for piece in bytes.chunks(pieces.max(1)) {
            buffer.extend_from_slice(piece);
            loop {
                let (taken, is_whole) = decoder.decode(&buffer, &Limits::REDIS, &mut command)?;
                buffer.drain(..taken);
                if is_whole {
                    found.push(command.args_from(0).map(<[u8]>::to_vec).collect());
                } else if taken == 0 {
                    break;
                }
            }
        }
        Ok(found)
    }

    #[test]
    fn commands_come_whole_however_they_are_cut() {
        let bytes =
            b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n\r\nPING \"a b\"\r\n*0\r\n*-1\r\n*1\r\n$0\r\n\r\n";
        let expected = all(bytes, bytes.len()).unwrap();
        assert_eq!(expected.len(), 3);
        assert_eq!(expected[1], [b"PING".to_vec(), b"a b".to_vec()]);
        for pieces in 1..bytes.len() {
            assert_eq!(
                all(bytes, pieces).unwrap(),
                expected,
                "in pieces of {pieces}"
            );
        }
    }

    #[test]
    fn hostile_lengths_are_refused_before_memory_is_taken() {
        for bytes in [
            &b"*1\r\n$536870913\r\n"[..],
            b"*1\r\n$-1\r\n",
            b"*1048577\r\n",
            b"*1\r\n$99999999999999999999\r\n",
            b"*1\r\n*1\r\n$1\r\na\r\n",
            b"*x\r\n",
            b"PING \"a\r\n",
        ] {
            assert!(all(bytes, bytes.len()).is_err(), "{bytes:?}");
        }
        assert!(
            all(&vec![b'a'; 65 << 10], 1 << 20).is_err(),
            "an endless line"
        );
    }

    #[test]
    fn a_client_that_has_not_logged_in_may_send_little() {
        let mut decoder = Decoder::default();
        let mut command = Command::default();
        let error = decoder.decode(b"*11\r\n", &Limits::UNAUTHENTICATED, &mut command);
        assert_eq!(
            error,
            Err(ProtocolError::text("unauthenticated multibulk length"))
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_and_cuts_do_not_matter(
            bytes in prop::collection::vec(
                prop_oneof![Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), Just(b'1'), any::<u8>()],
                0..60,
            ),
            pieces in 1..9_usize,
        ) {
            let whole = all(&bytes, 100);
            let cut = all(&bytes, pieces);
            if let (Ok(whole), Ok(cut)) = (&whole, &cut) {
                prop_assert_eq!(whole, cut);
            }
            prop_assert_eq!(whole.is_err(), cut.is_err());
        }
    }
}
