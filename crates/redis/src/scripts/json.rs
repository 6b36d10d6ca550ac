//! Reading JSON into tables of Lua. Bytes of strings are taken as they are: they need not be UTF-8.

use mlua::{Lua, Value};

use super::cjson::DEPTH_MAX;
use super::library::LibraryError;

/// The value of a text.
pub fn read(lua: &Lua, text: &[u8]) -> Result<Value, LibraryError> {
    if text.starts_with(&[0]) || text.get(1) == Some(&0) {
        return Err("JSON parser does not support UTF-16 or UTF-32".into());
    }
    let mut reader = Reader { lua, text, at: 0 };
    let token = reader.next();
    let value = reader.value(token, 0)?;
    match reader.next() {
        (Token::End, _) => Ok(value),
        (token, at) => Err(expected("the end", &token, at)),
    }
}

#[derive(Debug)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Text(Vec<u8>),
    Number(f64),
    Bool(bool),
    Null,
    Colon,
    Comma,
    End,
    Wrong(&'static str),
}

impl Token {
    fn name(&self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::Text(_) => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Bool(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Wrong(why) => why,
        }
    }
}

fn expected(what: &str, found: &Token, at: usize) -> LibraryError {
    LibraryError::Text(format!(
        "Expected {what} but found {} at character {}",
        found.name(),
        at + 1
    ))
}

struct Reader<'a> {
    lua: &'a Lua,
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// The next token and where it begins.
    fn next(&mut self) -> (Token, usize) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        let start = self.at;
        let Some(&byte) = self.text.get(start) else {
            return (Token::End, start);
        };
        let mut one = |token| {
            self.at += 1;
            (token, start)
        };
        match byte {
            b'{' => one(Token::ObjectBegin),
            b'}' => one(Token::ObjectEnd),
            b'[' => one(Token::ArrayBegin),
            b']' => one(Token::ArrayEnd),
            b':' => one(Token::Colon),
            b',' => one(Token::Comma),
            b'"' => (self.string(), start),
            b'-' | b'0'..=b'9' => (self.number(), start),
            _ => {
                for (word, token) in [
                    (&b"true"[..], Token::Bool(true)),
                    (b"false", Token::Bool(false)),
                    (b"null", Token::Null),
                ] {
                    if self.text[start..].starts_with(word) {
                        self.at += word.len();
                        return (token, start);
                    }
                }
                (Token::Wrong("invalid token"), start)
            }
        }
    }

    fn number(&mut self) -> Token {
        let start = self.at;
        let digits = self.text[start..].iter().take_while(|byte| {
            byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E')
        });
        self.at += digits.count();
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        text.parse()
            .map_or(Token::Wrong("invalid number"), Token::Number)
    }

    fn string(&mut self) -> Token {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let Some(&byte) = self.text.get(self.at) else {
                return Token::Wrong("unexpected end of string");
            };
            self.at += 1;
            match byte {
                b'"' => return Token::Text(out),
                b'\\' => {
                    if let Err(why) = self.escape(&mut out) {
                        return Token::Wrong(why);
                    }
                }
                _ => out.push(byte),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), &'static str> {
        let byte = self.text.get(self.at).ok_or("unexpected end of string")?;
        self.at += 1;
        out.push(match byte {
            b'"' | b'\\' | b'/' => *byte,
            b'b' => 8,
            b't' => 9,
            b'n' => 10,
            b'f' => 12,
            b'r' => 13,
            b'u' => {
                let character = self.unicode().ok_or("invalid unicode escape code")?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return Err("invalid escape code"),
        });
        Ok(())
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }

    /// What follows `\u`, two of them for characters beyond 16 bits.
    fn unicode(&mut self) -> Option<char> {
        let first = self.hex()?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first);
        }
        if self.text.get(self.at..self.at + 2)? != b"\\u" {
            return None;
        }
        self.at += 2;
        let second = self.hex()?.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
        char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + second)
    }

    fn value(&mut self, (token, at): (Token, usize), depth: usize) -> Result<Value, LibraryError> {
        match token {
            Token::Text(bytes) => Ok(Value::String(self.lua.create_string(bytes)?)),
            Token::Number(value) => Ok(Value::Number(value)),
            Token::Bool(value) => Ok(Value::Boolean(value)),
            Token::Null => Ok(Value::NULL),
            Token::ObjectBegin | Token::ArrayBegin if depth >= DEPTH_MAX => {
                Err(LibraryError::Text(format!(
                    "Found too many nested data structures ({}) at character {}",
                    depth + 1,
                    at + 1
                )))
            }
            Token::ObjectBegin => self.object(depth + 1),
            Token::ArrayBegin => self.array(depth + 1),
            token => Err(expected("value", &token, at)),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, LibraryError> {
        let table = self.lua.create_table()?;
        let mut token = self.next();
        if matches!(token.0, Token::ObjectEnd) {
            return Ok(Value::Table(table));
        }
        loop {
            let key = match token {
                (Token::Text(key), _) => self.lua.create_string(key)?,
                (token, at) => return Err(expected("object key string", &token, at)),
            };
            match self.next() {
                (Token::Colon, _) => {}
                (token, at) => return Err(expected("colon", &token, at)),
            }
            let token_of_value = self.next();
            table.raw_set(key, self.value(token_of_value, depth)?)?;
            match self.next() {
                (Token::ObjectEnd, _) => return Ok(Value::Table(table)),
                (Token::Comma, _) => token = self.next(),
                (token, at) => return Err(expected("comma or object end", &token, at)),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, LibraryError> {
        let table = self.lua.create_table()?;
        let mut token = self.next();
        if matches!(token.0, Token::ArrayEnd) {
            return Ok(Value::Table(table));
        }
        for place in 1_i64.. {
            table.raw_set(place, self.value(token, depth)?)?;
            match self.next() {
                (Token::ArrayEnd, _) => break,
                (Token::Comma, _) => token = self.next(),
                (token, at) => return Err(expected("comma or array end", &token, at)),
            }
        }
        Ok(Value::Table(table))
    }
}
