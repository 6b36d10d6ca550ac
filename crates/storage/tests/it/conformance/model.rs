//! Random histories against a model that is too simple to be wrong.

use std::collections::BTreeMap;
use std::ops::Bound;

use manxdb_storage::{Direction, Durability, Engine, KeyRange, Version, WriteBatch};
use proptest::prelude::*;

use super::subject::{Memory, Rocks, Subject, read, walk};

/// All writes ever made, by key and version.
#[derive(Default)]
struct Model {
    writes: BTreeMap<Vec<u8>, BTreeMap<u64, Option<Vec<u8>>>>,
    latest: u64,
    watermark: u64,
}

impl Model {
    fn read(&self, key: &[u8], at: u64) -> Option<(u64, Vec<u8>)> {
        let (version, value) = self.writes.get(key)?.range(..=at).next_back()?;
        Some((*version, value.clone()?))
    }

    fn walk(&self, range: &KeyRange, at: u64) -> Vec<(Vec<u8>, u64, Vec<u8>)> {
        let keys = self.writes.keys().filter(|key| range.contains(key));
        keys.filter_map(|key| {
            let (version, value) = self.read(key, at)?;
            Some((key.clone(), version, value))
        })
        .collect()
    }

    /// A version a reader may still ask for, `back` from the newest.
    fn readable(&self, back: u64) -> u64 {
        self.latest.saturating_sub(back).max(self.watermark)
    }
}

/// Key, value, and whether it takes the next version.
type BatchEntry = (Vec<u8>, Option<Vec<u8>>, bool);

#[derive(Debug, Clone)]
enum Step {
    /// Writes a batch; entries share a version unless told to take the next one.
    Write(Vec<BatchEntry>),
    /// Reads a key some versions back.
    Get(Vec<u8>, u64),
    /// Scans a range some versions back.
    Scan(KeyRange, u64, bool),
    /// Raises the watermark to some versions back.
    Watermark(u64),
    Compact,
    CompactRange(KeyRange),
    Flush,
    Reopen,
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(0x61), Just(0xFF)];
    prop::collection::vec(byte, 0..3)
}

fn range() -> impl Strategy<Value = KeyRange> {
    let bound = || {
        prop_oneof![
            key().prop_map(Bound::Included),
            key().prop_map(Bound::Excluded),
            Just(Bound::Unbounded),
        ]
    };
    (bound(), bound()).prop_map(|(start, end)| KeyRange { start, end })
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop::option::weighted(0.7, prop::collection::vec(any::<u8>(), 0..40));
    let write = prop::collection::vec((key(), value, any::<bool>()), 1..6);
    prop_oneof![
        12 => write.prop_map(Step::Write),
        8 => (key(), 0..30u64).prop_map(|(key, back)| Step::Get(key, back)),
        6 => (range(), 0..30u64, any::<bool>())
            .prop_map(|(range, back, reverse)| Step::Scan(range, back, reverse)),
        2 => (0..20u64).prop_map(Step::Watermark),
        1 => Just(Step::Compact),
        2 => range().prop_map(Step::CompactRange),
        3 => Just(Step::Flush),
        1 => Just(Step::Reopen),
    ]
}

fn write(engine: &dyn Engine, model: &mut Model, entries: &[BatchEntry]) {
    model.latest += 1;
    let mut batch = WriteBatch::default();
    for (key, value, next_version) in entries {
        if *next_version {
            model.latest += 1;
        }
        let chain = model.writes.entry(key.clone()).or_default();
        chain.insert(model.latest, value.clone());
        batch
            .writes
            .push((Version(model.latest), key.clone(), value.clone()));
    }
    // Versions need not be dense, but the engine only knows those it saw.
    model.latest = batch.writes.last().map_or(model.latest, |write| write.0.0);
    engine.write(&batch, Durability::Async).unwrap();
}

fn run<S: Subject>(steps: Vec<Step>) {
    let mut subject = S::new();
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Write(entries) => write(subject.engine(), &mut model, &entries),
            Step::Get(key, back) => {
                let at = model.readable(back);
                assert_eq!(read(subject.engine(), &key, at), model.read(&key, at));
            }
            Step::Scan(range, back, reverse) => {
                let at = model.readable(back);
                let mut expected = model.walk(&range, at);
                let direction = if reverse {
                    expected.reverse();
                    Direction::Reverse
                } else {
                    Direction::Forward
                };
                assert_eq!(walk(subject.engine(), &range, at, direction), expected);
            }
            Step::Watermark(back) => {
                model.watermark = model.readable(back);
                subject.engine().set_watermark(Version(model.watermark));
            }
            Step::Compact => subject.compact(),
            Step::CompactRange(range) => subject.compact_range(&range),
            Step::Flush => subject.flush(),
            Step::Reopen => subject = subject.reopen(),
        }
        assert_eq!(subject.engine().latest().unwrap().0, model.latest);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]
    #[test]
    fn memory_agrees_with_the_model(steps in prop::collection::vec(step(), 1..80)) {
        run::<Memory>(steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]
    #[test]
    fn rocks_agrees_with_the_model(steps in prop::collection::vec(step(), 1..80)) {
        run::<Rocks>(steps);
    }
}
