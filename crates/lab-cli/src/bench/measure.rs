//! Times, kept whole: a run has few enough of them for exact percentiles.

use std::collections::BTreeMap;
use std::time::Duration;

use manxdb_workloads::{Answer, Statement};

/// Times under one name, in microseconds.
#[derive(Debug, Clone, Default)]
pub struct Times {
    micros: Vec<u32>,
}

impl Times {
    /// Adds a time; an hour and more counts as 71 minutes.
    pub fn add(&mut self, time: Duration) {
        self.micros
            .push(u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.micros.len()
    }

    /// In microseconds; 0 of none.
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    pub fn mean(&self) -> f64 {
        let sum: u64 = self.micros.iter().map(|micros| u64::from(*micros)).sum();
        sum as f64 / self.micros.len().max(1) as f64
    }

    /// The times that `percents` of all do not exceed, in microseconds; 0 of none.
    pub fn percentiles<const N: usize>(&self, percents: [usize; N]) -> [u32; N] {
        let mut sorted = self.micros.clone();
        sorted.sort_unstable();
        percents.map(|percent| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).copied().unwrap_or(0)
        })
    }

    /// Each of them, in microseconds, in no order.
    pub fn micros(&self) -> &[u32] {
        &self.micros
    }

    /// Takes in others.
    pub fn extend(&mut self, micros: impl IntoIterator<Item = u32>) {
        self.micros.extend(micros);
    }

    fn merge(&mut self, other: Self) {
        self.micros.extend(other.micros);
    }
}

/// What a cache of answers would hold: the last answer to each query with its parameters.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// Bytes of the question and of the last answer, and whether the server works for it more than
    /// looking rows up.
    bytes: BTreeMap<String, (usize, bool)>,
}

impl Answers {
    /// Keeps an answer; what is no query has none.
    pub fn keep(&mut self, statement: &Statement, answer: &Answer) {
        let text = statement.text.as_ref();
        if !text.starts_with("SELECT") {
            return;
        }
        let mut question = text.to_owned();
        for value in &statement.parameters {
            question.push('\0');
            question.push_str(&value.literal());
        }
        let cells = answer.rows.iter().flatten();
        let size = question.len() + cells.map(|value| value.literal().len()).sum::<usize>();
        let works = DERIVED.iter().any(|word| text.contains(word));
        self.bytes.insert(question, (size, works));
    }

    /// How many bytes all take, and how many those that the server works for.
    pub fn sizes(&self) -> (usize, usize) {
        let all = self.bytes.values();
        let sizes = |wanted: bool| {
            let kept = all.clone().filter(move |(_, works)| *works || !wanted);
            kept.map(|(bytes, _)| bytes).sum()
        };
        (sizes(false), sizes(true))
    }
}

/// Words of queries that join, group or sort.
const DERIVED: [&str; 3] = [" JOIN ", " GROUP BY ", " ORDER BY "];

/// What one thread saw, and in the end what all of them saw.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// By kind of page, from its arrival to its end.
    pub pages: BTreeMap<&'static str, Times>,
    /// By statement, from sending to the last row.
    pub statements: BTreeMap<&'static str, Times>,
    /// Pages that failed, by message.
    pub failures: BTreeMap<String, usize>,
    /// Where they are asked for.
    pub answers: Option<Answers>,
}

impl Seen {
    /// Takes in what another thread saw.
    pub fn merge(&mut self, other: Self) {
        for (name, times) in other.pages {
            self.pages.entry(name).or_default().merge(times);
        }
        for (name, times) in other.statements {
            self.statements.entry(name).or_default().merge(times);
        }
        for (message, count) in other.failures {
            *self.failures.entry(message).or_default() += count;
        }
        if let Some(answers) = other.answers {
            let all = self.answers.get_or_insert_default();
            all.bytes.extend(answers.bytes);
        }
    }
}

/// User and system time of a process so far; None where there is no /proc or no such process.
pub fn cpu_of(pid: Option<u32>) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid?)).ok()?;
    // The name in brackets may hold spaces; user and system time are fields 14 and 15 of all.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    Some(Duration::from_micros((user + system) * 1_000_000 / ticks))
}

#[cfg(test)]
mod tests {
    use manxdb_workloads::Value;

    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let mut times = Times::default();
        for micros in (1..=200).rev() {
            times.add(Duration::from_micros(micros));
        }
        assert_eq!(times.percentiles([50, 95, 100]), [100, 190, 200]);
        assert!((times.mean() - 100.5).abs() < 1e-9);
        assert_eq!(Times::default().percentiles([99]), [0]);
    }

    #[test]
    fn a_cache_holds_the_last_answer_to_each_question() {
        let mut answers = Answers::default();
        let rows = |texts: &[&str]| Answer {
            columns: vec!["a".into()],
            rows: texts
                .iter()
                .map(|text| vec![Value::Text((*text).into())])
                .collect(),
            affected: 0,
        };
        let sorted = |id| {
            let text = "SELECT a FROM t WHERE b = ? ORDER BY a";
            Statement::prepared("sorted", text, vec![Value::Integer(id)])
        };
        answers.keep(&sorted(1), &rows(&["first", "second"]));
        let (one, of_work) = answers.sizes();
        assert!(one > 0 && one == of_work);
        answers.keep(&sorted(1), &rows(&["first"]));
        assert!(answers.sizes().0 < one, "the later answer is kept");
        answers.keep(&sorted(2), &rows(&["first"]));
        answers.keep(&Statement::text("write", "UPDATE t SET a = 1"), &rows(&[]));
        answers.keep(&Statement::text("row", "SELECT a FROM t"), &rows(&["x"]));
        assert_eq!(answers.bytes.len(), 3);
        let (all, of_work) = answers.sizes();
        assert!(of_work < all, "{of_work} {all}");
    }
}
