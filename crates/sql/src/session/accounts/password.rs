//! From passwords to what is stored.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

use crate::error::{SqlError, SqlResult};

/// The plugin of accounts that name none.
pub(crate) const DEFAULT_PLUGIN: &str = "caching_sha2_password";
/// The plugin of MySQL 5.
pub(crate) const NATIVE_PLUGIN: &str = "mysql_native_password";

/// The verifier of a clear-text password; empty for an empty one.
pub(crate) fn verifier(plugin: &str, password: &str) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let algorithm = if plugin == NATIVE_PLUGIN {
        &SHA1_FOR_LEGACY_USE_ONLY
    } else {
        &SHA256
    };
    let once = digest(algorithm, password.as_bytes());
    digest(algorithm, once.as_ref()).as_ref().to_vec()
}

/// The verifier from the text form of [`shown`].
///
/// # Errors
/// 1827 when it is not one.
pub(crate) fn from_hash(plugin: &str, hash: &str) -> SqlResult<Vec<u8>> {
    if hash.is_empty() {
        return Ok(Vec::new());
    }
    let bytes = hash
        .strip_prefix('*')
        .or_else(|| hash.strip_prefix("$manx$"))
        .and_then(|digits| hex::decode(digits).ok())
        .filter(|bytes| bytes.len() == if plugin == NATIVE_PLUGIN { 20 } else { 32 });
    bytes.ok_or_else(|| {
        SqlError::new(
            1827,
            "HY000",
            "The password hash doesn't have the expected format.",
        )
    })
}

/// Text form of a verifier: MySQL's own for the native plugin; ours for the other, whose
/// salted form MySQL cannot verify without the clear text.
pub(crate) fn shown(plugin: &str, verifier: &[u8]) -> String {
    if verifier.is_empty() {
        return String::new();
    }
    let digits = hex::encode_upper(verifier);
    if plugin == NATIVE_PLUGIN {
        format!("*{digits}")
    } else {
        format!("$manx${digits}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_native_hash_is_mysqls() {
        let stored = verifier(NATIVE_PLUGIN, "password");
        assert_eq!(
            shown(NATIVE_PLUGIN, &stored),
            "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"
        );
    }

    #[test]
    fn a_shown_hash_reads_back() {
        for plugin in [NATIVE_PLUGIN, DEFAULT_PLUGIN] {
            let stored = verifier(plugin, "s3cret");
            assert_eq!(from_hash(plugin, &shown(plugin, &stored)).unwrap(), stored);
        }
        assert_eq!(from_hash(NATIVE_PLUGIN, "*12").unwrap_err().code, 1827);
        assert!(verifier(DEFAULT_PLUGIN, "").is_empty());
    }
}
