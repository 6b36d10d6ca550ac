//! What Redis says when a command cannot be done. The texts are Redis's own: clients match them.

use std::borrow::Cow;

/// Why a command was not done, as its first word and text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CommandError(pub Cow<'static, str>);

impl CommandError {
    /// The key holds a value of another type.
    pub const WRONG_TYPE: Self =
        Self::text("WRONGTYPE Operation against a key holding the wrong kind of value");
    /// A number was expected.
    pub const NOT_INTEGER: Self = Self::text("ERR value is not an integer or out of range");
    /// A floating-point number was expected.
    pub const NOT_FLOAT: Self = Self::text("ERR value is not a valid float");
    /// An option that is none, or in the wrong place.
    pub const SYNTAX: Self = Self::text("ERR syntax error");
    /// A key that must exist does not.
    pub const NO_SUCH_KEY: Self = Self::text("ERR no such key");
    /// An index behind the end.
    pub const INDEX: Self = Self::text("ERR index out of range");
    /// A sum beyond 64 bits.
    pub const OVERFLOW: Self = Self::text("ERR increment or decrement would overflow");
    /// A sum that is no number.
    pub const NAN: Self = Self::text("ERR increment would produce NaN or Infinity");
    /// A value beyond 512 MiB.
    pub const TOO_LONG: Self =
        Self::text("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    /// Memory is used up by what cannot leave it.
    pub const OUT_OF_MEMORY: Self =
        Self::text("OOM command not allowed when used memory > 'maxmemory'.");

    /// An error with a fixed text.
    #[must_use]
    pub const fn text(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// An error with a text of its own.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Cow::Owned(text))
    }

    /// Wrong number of arguments of `name`.
    #[must_use]
    pub fn arity(name: &str) -> Self {
        Self::new(format!(
            "ERR wrong number of arguments for '{}' command",
            name.to_ascii_lowercase()
        ))
    }

    /// An expiry that is not in the future of numbers.
    #[must_use]
    pub fn expire_time(name: &[u8]) -> Self {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        Self::new(format!("ERR invalid expire time in '{name}' command"))
    }
}
