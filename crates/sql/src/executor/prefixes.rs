//! The beginnings of the keys that points on their columns lead to.

/// Prefixes past this number are not enumerated: the columns before it bound the keys alone.
const PREFIXES_MAX: usize = 65_536;

/// Encoded keys in the making, one column after the other.
pub(super) struct Prefixes {
    prefixes: Vec<Prefix>,
    /// Later columns are tied to earlier ones.
    has_ties: bool,
}

struct Prefix {
    key: Vec<u8>,
    /// Of each column so far, which of its values was taken; empty without ties.
    taken: Vec<u32>,
}

impl Prefixes {
    /// All keys that begin with `key`.
    pub fn of(key: Vec<u8>, has_ties: bool) -> Self {
        Self {
            prefixes: vec![Prefix {
                key,
                taken: Vec::new(),
            }],
            has_ties,
        }
    }

    /// Adds a column that holds any of `values`, of which `None` matches nothing. False when that
    /// would be too many: nothing is added then.
    #[must_use]
    pub fn cross(&mut self, values: &[Option<Vec<u8>>]) -> bool {
        if self.prefixes.len().saturating_mul(values.len()) > PREFIXES_MAX {
            return false;
        }
        if let ([Some(value)], false) = (values, self.has_ties) {
            for prefix in &mut self.prefixes {
                prefix.key.extend_from_slice(value);
            }
            return true;
        }
        let mut longer = Vec::with_capacity(self.prefixes.len() * values.len());
        for (number, value) in (0..).zip(values) {
            if let Some(value) = value {
                longer.extend(
                    self.prefixes
                        .iter()
                        .map(|prefix| prefix.with(value, number)),
                );
            }
        }
        self.prefixes = longer;
        true
    }

    /// Adds a column whose n-th value goes with the n-th of column `part`. False when the two have
    /// not as many values: nothing is added then.
    #[must_use]
    pub fn tie(&mut self, part: usize, values: &[Option<Vec<u8>>]) -> bool {
        let value_of = |prefix: &Prefix| {
            let number = *prefix.taken.get(part)?;
            values.get(usize::try_from(number).ok()?)
        };
        if self
            .prefixes
            .iter()
            .any(|prefix| value_of(prefix).is_none())
        {
            return false;
        }
        let tied = self.prefixes.iter().filter_map(|prefix| {
            let value = value_of(prefix)?.as_ref()?;
            let number = *prefix.taken.get(part)?;
            Some(prefix.with(value, number))
        });
        self.prefixes = tied.collect();
        true
    }

    /// The keys in order, each once: `IN (5, 5)` finds a row once.
    pub fn in_order(self) -> Vec<Vec<u8>> {
        let mut keys: Vec<Vec<u8>> = self.prefixes.into_iter().map(|prefix| prefix.key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

impl Prefix {
    fn with(&self, value: &[u8], number: u32) -> Self {
        let key = [self.key.as_slice(), value].concat();
        let taken = [self.taken.as_slice(), &[number]].concat();
        Self { key, taken }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(values: &[&str]) -> Vec<Option<Vec<u8>>> {
        let encode = |value: &&str| (!value.is_empty()).then(|| value.as_bytes().to_vec());
        values.iter().map(encode).collect()
    }

    fn shown(prefixes: Prefixes) -> Vec<String> {
        let keys = prefixes.in_order().into_iter();
        keys.map(|key| String::from_utf8(key).unwrap()).collect()
    }

    #[test]
    fn each_value_goes_with_each() {
        for has_ties in [true, false] {
            let mut prefixes = Prefixes::of(b"t".to_vec(), has_ties);
            assert!(prefixes.cross(&values(&["b", "a", ""])));
            assert!(prefixes.cross(&values(&["-"])));
            assert!(prefixes.cross(&values(&["2", "1", "2"])));
            assert_eq!(shown(prefixes), ["ta-1", "ta-2", "tb-1", "tb-2"]);
        }
    }

    #[test]
    fn tied_values_go_with_their_own_across_a_column_between() {
        let mut prefixes = Prefixes::of(b"t".to_vec(), true);
        assert!(prefixes.cross(&values(&["a", "b", "c"])));
        assert!(prefixes.cross(&values(&["x"])));
        assert!(prefixes.tie(0, &values(&["1", "2", ""])));
        assert_eq!(shown(prefixes), ["tax1", "tbx2"]);
    }

    #[test]
    fn too_many_are_refused_and_tying_makes_none() {
        let many: Vec<Option<Vec<u8>>> =
            (0..300_u32).map(|n| Some(n.to_be_bytes().into())).collect();
        let mut prefixes = Prefixes::of(Vec::new(), true);
        assert!(prefixes.cross(&many));
        assert!(!prefixes.cross(&many));
        assert!(prefixes.tie(0, &many));
        assert!(!prefixes.tie(0, &many[..299]));
        assert_eq!(prefixes.in_order().len(), 300);
    }
}
