//! Templates of queries that a view might answer: what was read by each, what its tables were
//! written, and which of them earn a view.
//!
//! Both are counted in rows, which are the same on every machine. A template saves the rows that its
//! base plan touches for each read; it costs the rows that deltas touch for each written row of its
//! tables: measured where it has a view, estimated where it has none. It earns a view when it saves
//! [`EARNS`] times its cost, and loses it when it saves less than it costs: what lies between keeps
//! what it has, so that views do not come and go.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::catalog::{MaterializedView, TableId};

/// Templates that are counted; later ones are not.
const TEMPLATES_MAX: usize = 1_000;
/// Views that are made by themselves.
pub(crate) const AUTOMATIC_MAX: usize = 32;
/// How often the cost must be saved for a template to earn a view.
const EARNS: u64 = 2;
/// A read that touches fewer rows is as cheap as the look-up in a view.
const ROWS_MIN: u64 = 8;
/// Reads in a window below which nothing is known of a template.
const READS_MIN: u64 = 10;

/// A template of queries that a view can be made for.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// The view that would answer it; its name is the one it would get.
    pub definition: Arc<MaterializedView>,
    /// The tables that it reads.
    pub tables: Vec<TableId>,
    reads: AtomicU64,
    /// Reads by the base plan, and the rows that they touched.
    base_reads: AtomicU64,
    base_rows: AtomicU64,
    /// Counters when the window began: reads, rows written, rows touched by deltas.
    began: Mutex<(u64, u64, u64)>,
}

/// What is known of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Reads.
    pub reads: u64,
    /// Rows that a read by the base plan touches, on average.
    pub rows_a_read: u64,
    /// Rows of its tables that were written.
    pub written: u64,
    /// Rows that deltas have touched, or would have.
    pub delta_rows: u64,
}

impl Figures {
    /// Rows that reads do not touch with a view.
    pub fn saved(&self) -> u64 {
        self.reads.saturating_mul(self.rows_a_read)
    }

    /// Whether a template without a view earns one.
    fn earns(&self) -> bool {
        self.reads >= READS_MIN
            && self.rows_a_read >= ROWS_MIN
            && self.saved() >= self.delta_rows.saturating_mul(EARNS)
    }

    /// Whether a template with a view loses it.
    fn loses(&self) -> bool {
        self.saved() < self.delta_rows
    }
}

impl Candidate {
    /// A template that was not read yet.
    pub fn new(definition: MaterializedView, tables: Vec<TableId>) -> Self {
        assert!(!tables.is_empty(), "a view is over a table");
        Self {
            definition: Arc::new(definition),
            tables,
            reads: AtomicU64::new(0),
            base_reads: AtomicU64::new(0),
            base_rows: AtomicU64::new(0),
            began: Mutex::default(),
        }
    }

    /// Counts a read and the rows that it touched; `by_view`: a view was asked first.
    pub fn note_read(&self, touched: u64, by_view: bool) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if !by_view {
            self.base_reads.fetch_add(1, Ordering::Relaxed);
            self.base_rows.fetch_add(touched, Ordering::Relaxed);
        }
    }

    /// Rows that the deltas of one written row touch, estimated: the row's predecessor, and for the
    /// old row and the new one a row of each other table.
    fn estimate(&self) -> u64 {
        1 + 2 * (self.tables.len() as u64 - 1)
    }

    /// Forgets what was counted.
    fn reset(&self) {
        for counter in [&self.reads, &self.base_reads, &self.base_rows] {
            counter.store(0, Ordering::Relaxed);
        }
        *self.began.lock() = Default::default();
    }

    fn totals(&self, candidates: &Candidates, measured: Option<u64>) -> Figures {
        let written = candidates.written(&self.tables);
        let base_reads = self.base_reads.load(Ordering::Relaxed);
        let base_rows = self.base_rows.load(Ordering::Relaxed);
        Figures {
            reads: self.reads.load(Ordering::Relaxed),
            rows_a_read: base_rows.checked_div(base_reads).unwrap_or(0),
            written,
            delta_rows: measured.unwrap_or(written.saturating_mul(self.estimate())),
        }
    }

    /// What was counted since the window began, which begins anew.
    fn window(&self, candidates: &Candidates, measured: Option<u64>) -> Figures {
        let now = self.totals(candidates, measured);
        let mut began = self.began.lock();
        let (reads, written, deltas) = *began;
        *began = (now.reads, now.written, measured.unwrap_or(0));
        let written = now.written.saturating_sub(written);
        let delta_rows = match measured {
            Some(total) => total.saturating_sub(deltas),
            None => written.saturating_mul(self.estimate()),
        };
        Figures {
            reads: now.reads.saturating_sub(reads),
            written,
            delta_rows,
            ..now
        }
    }
}

/// What shall be done.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Templates that earn a view, the best first.
    pub made: Vec<Arc<Candidate>>,
    /// Views that do not pay.
    pub dropped: Vec<Arc<MaterializedView>>,
}

/// All templates that are counted.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    counts: AtomicBool,
    makes: AtomicBool,
    /// By database and name of the view.
    known: Mutex<HashMap<(String, String), Arc<Candidate>>>,
    written: Mutex<HashMap<TableId, u64>>,
    judged_at: AtomicU64,
}

impl Candidates {
    /// What `views_auto` says: OFF, ADVISE or ON. What was counted is forgotten with OFF.
    pub fn set_mode(&self, mode: &str) {
        let makes = mode.eq_ignore_ascii_case("ON");
        let counts = makes || mode.eq_ignore_ascii_case("ADVISE");
        self.makes.store(makes, Ordering::Relaxed);
        let counted = self.counts.swap(counts, Ordering::Relaxed);
        if counted && !counts {
            self.known.lock().values().for_each(|one| one.reset());
            self.written.lock().clear();
        }
    }

    /// Whether reads and writes are counted.
    pub fn counts(&self) -> bool {
        self.counts.load(Ordering::Relaxed)
    }

    /// Whether views are made and dropped.
    pub fn makes(&self) -> bool {
        self.makes.load(Ordering::Relaxed)
    }

    /// Counts written rows of a table.
    pub fn note_written(&self, table: TableId, rows: u64) {
        *self.written.lock().entry(table).or_default() += rows;
    }

    fn written(&self, tables: &[TableId]) -> u64 {
        let written = self.written.lock();
        let of = |table: &TableId| written.get(table).copied().unwrap_or(0);
        tables.iter().map(of).sum()
    }

    /// The template with this definition, which is `made` if it was not known; `None` when there are
    /// too many.
    pub fn known_as(&self, made: Candidate) -> Option<Arc<Candidate>> {
        let key = (
            made.definition.database.clone(),
            made.definition.name.clone(),
        );
        let mut known = self.known.lock();
        if let Some(found) = known.get(&key) {
            return Some(Arc::clone(found));
        }
        if known.len() >= TEMPLATES_MAX {
            return None;
        }
        let made = Arc::new(made);
        // Rows that were written before it came are no cost of its own.
        made.began.lock().1 = self.written(&made.tables);
        known.insert(key, Arc::clone(&made));
        Some(made)
    }

    /// All of them with what was counted since the start; `measured` gives the rows that deltas of a
    /// definition's view have touched, if it is in use.
    pub fn all(
        &self,
        measured: &dyn Fn(&MaterializedView) -> Option<u64>,
    ) -> Vec<(Arc<Candidate>, Figures)> {
        let known: Vec<_> = self.known.lock().values().cloned().collect();
        let mut all: Vec<_> = known
            .into_iter()
            .map(|one| {
                let figures = one.totals(self, measured(&one.definition));
                (one, figures)
            })
            .filter(|(_, figures)| figures.reads > 0)
            .collect();
        all.sort_by_key(|(one, figures)| {
            let saved = figures.saved();
            (std::cmp::Reverse(saved), one.definition.query.clone())
        });
        all
    }

    /// Whether a window has ended at `now`, in microseconds; the next begins.
    pub fn is_due(&self, now: u64, window_micros: u64) -> bool {
        let last = self.judged_at.load(Ordering::Relaxed);
        if last == 0 {
            self.judged_at.store(now.max(1), Ordering::Relaxed);
            return false;
        }
        let is_due = now.saturating_sub(last) >= window_micros;
        if is_due {
            self.judged_at.store(now, Ordering::Relaxed);
        }
        is_due
    }

    /// What the window that ends now says. `automatic`: the views that were made by themselves.
    pub fn judge(
        &self,
        automatic: &[Arc<MaterializedView>],
        measured: &dyn Fn(&MaterializedView) -> Option<u64>,
    ) -> Verdict {
        let known: Vec<_> = self.known.lock().values().cloned().collect();
        let mut verdict = Verdict::default();
        let mut earning = Vec::new();
        for one in known {
            let view = automatic.iter().find(|view| is_of(view, &one.definition));
            let figures = one.window(self, measured(&one.definition));
            match view {
                Some(view) if figures.loses() => verdict.dropped.push(Arc::clone(view)),
                None if figures.earns() => {
                    let gain = figures.saved().saturating_sub(figures.delta_rows);
                    earning.push((gain, one));
                }
                _ => {}
            }
        }
        let kept = automatic.len().saturating_sub(verdict.dropped.len());
        let room = AUTOMATIC_MAX.saturating_sub(kept);
        earning.sort_by_key(|(gain, one)| (std::cmp::Reverse(*gain), one.definition.query.clone()));
        verdict.made = earning.into_iter().take(room).map(|(_, one)| one).collect();
        assert!(
            kept + verdict.made.len() <= AUTOMATIC_MAX.max(kept),
            "no more views are made than there is room for"
        );
        verdict
    }
}

/// Whether a view is the one that a template would get.
fn is_of(view: &MaterializedView, definition: &MaterializedView) -> bool {
    view.is_named_as(definition) && view.query == definition.query
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Collation;

    fn candidate(query: &str, tables: u32) -> Candidate {
        let definition = MaterializedView {
            database: "d".into(),
            name: format!("auto_{query}"),
            query: query.into(),
            sql_mode: 0,
            collation: Collation::default(),
            definer: String::new(),
            schema_version: 1,
        };
        Candidate::new(definition, (0..tables).map(TableId).collect())
    }

    fn read(one: &Candidate, times: u64, rows: u64) {
        for _ in 0..times {
            one.note_read(rows, false);
        }
    }

    #[test]
    fn a_view_is_earned_at_twice_the_cost_and_lost_below_it() {
        let all = Candidates::default();
        all.set_mode("on");
        let one = all.known_as(candidate("q", 2)).unwrap();
        let none = |_: &MaterializedView| None;
        read(&one, 100, 60);
        // 100 × 60 rows are saved; 1,001 written rows cost 3 each.
        all.note_written(TableId(0), 1_001);
        assert!(all.judge(&[], &none).made.is_empty());
        read(&one, 100, 60);
        all.note_written(TableId(1), 1_000);
        assert_eq!(all.judge(&[], &none).made.len(), 1);
        let made = [Arc::clone(&one.definition)];
        let deltas = |rows: u64| move |_: &MaterializedView| Some(rows);
        read(&one, 100, 60);
        assert!(all.judge(&made, &deltas(6_000)).dropped.is_empty());
        read(&one, 100, 60);
        assert_eq!(all.judge(&made, &deltas(12_001)).dropped.len(), 1);
    }

    #[test]
    fn a_read_of_few_rows_and_a_template_that_is_hardly_read_earn_none() {
        let all = Candidates::default();
        all.set_mode("advise");
        assert!(all.counts() && !all.makes());
        let cheap = all.known_as(candidate("cheap", 1)).unwrap();
        let rare = all.known_as(candidate("rare", 1)).unwrap();
        read(&cheap, 1_000, ROWS_MIN - 1);
        read(&rare, READS_MIN - 1, 1_000_000);
        assert!(all.judge(&[], &|_| None).made.is_empty());
        assert_eq!(all.all(&|_| None).len(), 2);
        all.set_mode("off");
        assert!(all.all(&|_| None).is_empty());
    }

    #[test]
    fn no_more_views_are_made_than_there_is_room_for() {
        let all = Candidates::default();
        all.set_mode("on");
        for at in 0..100_u64 {
            let one = all.known_as(candidate(&format!("q{at:03}"), 1)).unwrap();
            read(&one, 10, 100 + at);
        }
        let verdict = all.judge(&[], &|_| None);
        assert_eq!(verdict.made.len(), AUTOMATIC_MAX);
        let best = verdict.made.first().unwrap();
        assert_eq!(best.definition.query, "q099", "those that save most first");
    }

    #[test]
    fn windows_end_when_their_time_is_over() {
        let all = Candidates::default();
        assert!(!all.is_due(5, 60), "the first begins");
        assert!(!all.is_due(64, 60));
        assert!(all.is_due(65, 60));
        assert!(!all.is_due(66, 60));
    }
}
