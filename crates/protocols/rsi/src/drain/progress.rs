//! How far a log archiver is, and what it may say of it.
//!
//! A log archiver says that a batch is *written* when a file has it; then the slots of its transactions may be
//! written over. When a sync fails, files may lose what was written, and the log archiver writes it again. A
//! log archiver that dies before it has leaves a *gap*: transactions that are published, and neither in a file
//! nor in a log. They are in memory, as all that is published, so the next log archiver closes the gap by a copy
//! of memory:
//!
//! | | until the copy is complete | then |
//! |---|---|---|
//! | what comes back when all memory is lost | the batches before the gap | the copy, and the batches behind it |
//! | what counts as synced | what did when the gap was found | what is on disk behind the copy |
//! | what counts as written | all that was published when the gap was found, and batches behind it | the same |
//!
//! Batches behind a gap are written, because the copy needs them. That they are of no use without the
//! copy is written beside them, and whoever reads files leaves them out then.

#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::vector::Snapshot;

/// How far a log archiver is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Progress {
    /// All of this is in files, or was published when a gap was found.
    written: Snapshot,
    /// What is on disk before a gap that is not closed.
    held: Option<Snapshot>,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

impl Progress {
    /// Of a log archiver that begins to work behind what files have.
    #[must_use]
    pub fn new(files: Snapshot) -> Self {
        Self {
            written: files,
            held: None,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    /// The same with a defect.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with(mut self, mutant: Option<Mutant>) -> Self {
        self.mutant = mutant;
        self
    }

    /// What the next batch is behind.
    #[must_use]
    pub fn written(&self) -> &Snapshot {
        &self.written
    }

    /// A batch with this cut is in a file.
    pub fn wrote(&mut self, cut: Snapshot) {
        assert!(
            cut.includes(&self.written),
            "a batch is behind the one before it"
        );
        self.written = cut;
    }

    /// A gap is found, where all of this is published, and what was written before is on disk for good.
    pub fn lost(&mut self, cut: Snapshot) {
        assert!(
            cut.includes(&self.written),
            "what is lost was published behind what is written"
        );
        let before = std::mem::replace(&mut self.written, cut);
        self.held.get_or_insert(before);
    }

    /// Whether a gap is to be closed.
    #[must_use]
    pub fn has_gap(&self) -> bool {
        self.held.is_some()
    }

    /// A copy of memory that was begun behind the gap is complete.
    pub fn closed(&mut self) {
        assert!(
            self.held
                .as_ref()
                .is_none_or(|held| self.written.includes(held)),
            "what is behind a gap includes what is before it"
        );
        self.held = None;
    }

    /// What counts as synced where this much is in files for good.
    #[must_use]
    pub fn synced<'s>(&'s self, synced: &'s Snapshot) -> &'s Snapshot {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::PromisesOverAGap) {
            return synced;
        }
        self.held.as_ref().unwrap_or(synced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_promised_over_a_gap_before_it_is_closed() {
        let all = [3, 5, 7, 9].map(|number| Snapshot::of_numbers(vec![number; 2]));
        let [first, second, third, fourth] = all.clone();
        let mut progress = Progress::new(first.clone());
        assert!(!progress.has_gap());
        assert_eq!(progress.synced(&first), &first);
        // Another one is found before the first is closed.
        for cut in [&second, &third] {
            progress.lost(cut.clone());
            assert!(progress.has_gap());
            assert_eq!((progress.written(), progress.synced(cut)), (cut, &first));
        }
        progress.wrote(fourth.clone());
        assert_eq!(progress.written(), &fourth);
        assert_eq!(progress.synced(&fourth), &first);
        progress.closed();
        assert_eq!(progress.synced(&fourth), &fourth);
    }
}
