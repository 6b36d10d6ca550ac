//! RocksDB's own description of jobs and results: four bytes of version, then `key=value;` text
//! with nested braces, names in hexadecimal. Its private format: unknown keys are passed over,
//! and what cannot be read is an error, never a guess.

/// The only version there is (11.8 to 11.12).
const VERSION: [u8; 4] = 1_u32.to_le_bytes();

/// Braces within braces; RocksDB uses six.
const DEPTH_MAX: usize = 32;

/// A text that is not as RocksDB writes it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("RocksDB's description of a compaction cannot be read: {0}")]
pub struct Unreadable(pub String);

fn unreadable<T>(what: impl Into<String>) -> Result<T, Unreadable> {
    Err(Unreadable(what.into()))
}

/// The fields of a structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    /// Reads a whole description.
    ///
    /// # Errors
    /// [`Unreadable`]: another version, or not text, or braces that do not match.
    pub fn of(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let Some((version, text)) = bytes.split_first_chunk::<4>() else {
            return unreadable("it is shorter than its version");
        };
        if *version != VERSION {
            return unreadable(format!(
                "version {} is unknown",
                u32::from_le_bytes(*version)
            ));
        }
        match std::str::from_utf8(text) {
            Ok(text) => Self::parse(text),
            Err(_) => unreadable("it is not text"),
        }
    }

    fn parse(text: &'a str) -> Result<Self, Unreadable> {
        let mut fields = Vec::new();
        for part in split(text, b';')? {
            if part.is_empty() {
                continue;
            }
            let Some((key, value)) = part.split_once('=') else {
                return unreadable(format!("'{}' is no field", shorten(part)));
            };
            fields.push((key.trim(), value));
        }
        Ok(Self(fields))
    }

    /// A field as it is written.
    ///
    /// # Errors
    /// [`Unreadable`]: it is not there.
    pub fn raw(&self, key: &str) -> Result<&'a str, Unreadable> {
        let found = self.0.iter().find(|(one, _)| *one == key);
        found.map_or_else(
            || unreadable(format!("field {key} is missing")),
            |(_, value)| Ok(*value),
        )
    }

    /// A field that is a number.
    ///
    /// # Errors
    /// [`Unreadable`]: it is not there, or no number.
    pub fn number(&self, key: &str) -> Result<u64, Unreadable> {
        let raw = self.raw(key)?;
        raw.parse()
            .or_else(|_| unreadable(format!("field {key} is '{}', no number", shorten(raw))))
    }

    /// A field that holds bytes.
    ///
    /// # Errors
    /// [`Unreadable`]: it is not there, or not hexadecimal.
    pub fn bytes(&self, key: &str) -> Result<Vec<u8>, Unreadable> {
        unhex(self.raw(key)?)
    }

    /// A field that is a structure.
    ///
    /// # Errors
    /// [`Unreadable`]: it is not there, or none.
    pub fn fields(&self, key: &str) -> Result<Fields<'a>, Unreadable> {
        Fields::parse(strip(self.raw(key)?)?)
    }

    /// A field that is a list of structures.
    ///
    /// # Errors
    /// [`Unreadable`]: it is not there, or none.
    pub fn list(&self, key: &str) -> Result<Vec<Fields<'a>>, Unreadable> {
        let inner = strip(self.raw(key)?)?;
        if !inner.starts_with('{') {
            // One structure, whose braces were removed together with the list's; or an empty list.
            let only = (!inner.is_empty()).then(|| Fields::parse(inner));
            return only.into_iter().collect();
        }
        let parts = split(inner, b':')?;
        parts
            .into_iter()
            .map(|part| Fields::parse(strip(part)?))
            .collect()
    }

    /// A field that is a list of names.
    ///
    /// # Errors
    /// [`Unreadable`]: it is not there, or not hexadecimal.
    pub fn names(&self, key: &str) -> Result<Vec<String>, Unreadable> {
        let inner = strip(self.raw(key)?)?;
        let parts = inner.split(':').filter(|part| !part.is_empty());
        parts.map(|part| text_of(unhex(strip(part)?)?)).collect()
    }
}

/// A description with one field of bytes replaced.
///
/// # Errors
/// [`Unreadable`]: it has no such field.
pub fn with_bytes(description: &[u8], key: &str, value: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let old = Fields::of(description)?.raw(key)?;
    with_raw(description, key, old, value)
}

/// A description with the first field of this name and value, however deep, replaced by bytes.
///
/// # Errors
/// [`Unreadable`]: it has no such field.
pub fn with_raw(
    description: &[u8],
    key: &str,
    old: &str,
    value: &[u8],
) -> Result<Vec<u8>, Unreadable> {
    let Some((_, text)) = description.split_first_chunk::<4>() else {
        return unreadable("it is shorter than its version");
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return unreadable("it is not text");
    };
    let field = format!("{key}={old};");
    if !text.contains(&field) {
        return unreadable(format!("field {key} is not where it was"));
    }
    let changed = text.replacen(&field, &format!("{key}={};", hex::encode_upper(value)), 1);
    Ok([&VERSION[..], changed.as_bytes()].concat())
}

/// Bytes as text.
///
/// # Errors
/// [`Unreadable`]: they are none.
pub fn text_of(bytes: Vec<u8>) -> Result<String, Unreadable> {
    String::from_utf8(bytes).or_else(|_| unreadable("a name is not text"))
}

/// Splits at a separator outside of all braces.
fn split(text: &str, separator: u8) -> Result<Vec<&str>, Unreadable> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return unreadable("a brace closes that was not opened"),
            b'}' => depth -= 1,
            _ if byte == separator && depth == 0 => {
                parts.push(&text[start..at]); // at an ASCII byte: a character's border
                start = at + 1;
            }
            _ => {}
        }
        if depth > DEPTH_MAX {
            return unreadable("braces are nested too deeply");
        }
    }
    if depth > 0 {
        return unreadable("a brace is not closed");
    }
    parts.push(&text[start..]);
    Ok(parts)
}

/// Takes off the braces around a whole value.
fn strip(text: &str) -> Result<&str, Unreadable> {
    let mut inner = text.trim();
    while let Some(body) = inner
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
    {
        if split(body, b';').is_err() {
            break; // the first and the last brace are not a pair
        }
        inner = body;
    }
    split(inner, b';')?;
    Ok(inner)
}

fn unhex(text: &str) -> Result<Vec<u8>, Unreadable> {
    hex::decode(text).or_else(|_| unreadable(format!("'{}' is not hexadecimal", shorten(text))))
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn described(text: &str) -> Vec<u8> {
        [&VERSION[..], text.as_bytes()].concat()
    }

    #[test]
    fn fields_lists_and_structures_are_read() {
        let bytes = described(
            "level=6;path=2F61;files={{{name=61;ids=1:2;inner={x={};y=3;};}}};none=;\
             two={{name=61;}:{name=6262;}};inputs=612E73:622E73;",
        );
        let fields = Fields::of(&bytes).unwrap();
        assert_eq!(fields.number("level"), Ok(6));
        assert_eq!(fields.bytes("path"), Ok(b"/a".to_vec()));
        let files = fields.list("files").unwrap();
        assert_eq!(files[0].fields("inner").unwrap().number("y"), Ok(3));
        assert_eq!(fields.list("none"), Ok(vec![]));
        let two = fields.list("two").unwrap();
        assert_eq!(two[1].bytes("name"), Ok(b"bb".to_vec()));
        assert_eq!(fields.names("inputs").unwrap(), ["a.s", "b.s"]);
        assert_eq!(fields.names("none").unwrap(), [""; 0]);
        assert!(fields.number("path").is_err() && fields.raw("no").is_err());
    }

    #[test]
    fn a_field_is_replaced_and_nothing_else() {
        let bytes = described("a=1;path=2F61;b={path=2F61;};");
        let changed = with_bytes(&bytes, "path", b"/xy").unwrap();
        assert_eq!(changed, described("a=1;path=2F7879;b={path=2F61;};"));
        assert!(with_bytes(&bytes, "other", b"").is_err());
    }

    #[test]
    fn what_is_broken_is_named() {
        for (text, what) in [
            ("a=}", "not opened"),
            ("a={", "not closed"),
            ("a", "no field"),
        ] {
            let error = Fields::of(&described(text)).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
        assert!(Fields::of(b"").is_err() && Fields::of(&[9, 0, 0, 0]).is_err());
        assert!(Fields::of(&described(&"{".repeat(99))).is_err());
    }

    proptest! {
        #[test]
        fn nothing_read_from_noise_panics(text in "[a-c={};:0-9é]{0,60}") {
            let bytes = described(&text);
            if let Ok(fields) = Fields::of(&bytes) {
                for key in ["a", "b", "c"] {
                    let _ = (fields.list(key), fields.names(key), fields.bytes(key));
                    let _ = (fields.fields(key), with_bytes(&bytes, key, b"x"));
                }
            }
        }
    }
}
