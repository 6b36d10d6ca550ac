//! The keys that a transaction read.

use std::borrow::Cow;

use manxdb_storage::Version;

use super::run::KeyRun;

/// Keys read, absent ones included, each with the snapshot it was read at: a few as they are, and
/// any number in packed runs. A key may stand in it more than once; then each holds.
#[derive(Debug, Clone, Default)]
pub struct ReadPoints {
    loose: Vec<(Vec<u8>, Version)>,
    runs: Vec<KeyRun>,
}

impl ReadPoints {
    pub(crate) fn new(loose: Vec<(Vec<u8>, Version)>, runs: Vec<KeyRun>) -> Self {
        Self { loose, runs }
    }

    /// Adds a key.
    pub fn push(&mut self, point: (Vec<u8>, Version)) {
        self.loose.push(point);
    }

    /// Keys, those that stand in it twice counted twice.
    #[must_use]
    pub fn len(&self) -> usize {
        self.loose.len() + self.runs.iter().map(KeyRun::len).sum::<usize>()
    }

    /// Whether nothing was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// All of them, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'_, [u8]>, Version)> {
        let loose = self.loose.iter();
        let loose = loose.map(|(key, at)| (Cow::Borrowed(key.as_slice()), *at));
        let packed = self.runs.iter().flat_map(|run| {
            let mut cursor = run.cursor();
            std::iter::from_fn(move || {
                let (key, version) = cursor.entry()?;
                let key = key.to_vec();
                cursor.advance();
                Some((Cow::Owned(key), version))
            })
        });
        loose.chain(packed)
    }

    /// Keeps those that `keep` wants.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], Version) -> bool) {
        self.loose.retain(|(key, at)| keep(key, *at));
        for run in &mut self.runs {
            let mut kept = super::RunBuilder::new(run.oldest());
            let mut cursor = run.cursor();
            while let Some((key, at)) = cursor.entry() {
                if keep(key, at) {
                    kept.push(key, at);
                }
                cursor.advance();
            }
            let kept = kept.finish();
            assert!(
                kept.len() <= run.len() && kept.oldest() == run.oldest(),
                "what is kept was there, and its versions mean the same"
            );
            *run = kept;
        }
    }

    pub(crate) fn loose(&self) -> &[(Vec<u8>, Version)] {
        &self.loose
    }

    pub(crate) fn runs(&self) -> &[KeyRun] {
        &self.runs
    }
}

impl From<Vec<(Vec<u8>, Version)>> for ReadPoints {
    fn from(loose: Vec<(Vec<u8>, Version)>) -> Self {
        Self::new(loose, Vec::new())
    }
}

/// Equal when they list the same keys and versions in the same order, however they are held.
impl PartialEq for ReadPoints {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for ReadPoints {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_and_loose_points_are_listed_and_kept_alike() {
        let point = |key: u8, at: u64| (vec![key], Version(at));
        let run = KeyRun::pack(Version(2), [(&[3][..], Version(2)), (&[5], Version(4))]);
        let mut points = ReadPoints::new(vec![point(9, 7)], vec![run]);
        let all = ReadPoints::from(vec![point(9, 7), point(3, 2), point(5, 4)]);
        assert_eq!(points, all);
        assert_eq!(points.len(), 3);
        points.retain(|key, _| key != [3]);
        assert_eq!(points, vec![point(9, 7), point(5, 4)].into());
        points.clear();
        assert!(points.is_empty());
    }
}
