//! Hashes of keys, as witnesses compare them.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// Hashes keys under a secret of the cluster, so that nobody can make keys that collide. Two
/// keys that do collide are taken for one, which costs a round trip and nothing else.
#[derive(Debug, Clone, Copy)]
pub struct KeyHasher {
    /// The cluster's secret.
    pub secret: [u64; 2],
}

impl KeyHasher {
    /// The hash of a key of a numbered database.
    #[must_use]
    pub fn hash(&self, database: u32, key: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.secret[0], self.secret[1]);
        hasher.write(&database.to_le_bytes());
        hasher.write(key);
        hasher.finish()
    }

    /// The hashes of keys, each once, ascending.
    #[must_use]
    pub fn hashes(&self, database: u32, keys: &[Vec<u8>]) -> Vec<u64> {
        let mut hashes: Vec<u64> = keys.iter().map(|key| self.hash(database, key)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert!(
            hashes.is_sorted_by(|one, next| one < next),
            "witnesses refuse a hash that comes twice"
        );
        hashes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_depends_on_secret_database_and_key() {
        let one = KeyHasher { secret: [1, 2] };
        let other = KeyHasher { secret: [1, 3] };
        assert_eq!(one.hash(0, b"key"), one.hash(0, b"key"));
        // Fixed: witnesses of another build must agree.
        assert_eq!(one.hash(0, b"key"), 9_312_337_192_619_749_696, "golden");
        for different in [
            one.hash(1, b"key"),
            one.hash(0, b"kez"),
            other.hash(0, b"key"),
        ] {
            assert_ne!(different, one.hash(0, b"key"));
        }
        assert_eq!(one.hashes(0, &[b"a".to_vec(), b"a".to_vec()]).len(), 1);
    }
}
