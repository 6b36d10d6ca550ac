//! What stories come to, added up: what a test has seen, so that it is not blind.

use crate::drains::story::Story;

/// What all runs of a story came to.
#[derive(Default)]
pub struct Tally {
    pub commits: usize,
    pub promises: usize,
    pub batches: u64,
    pub checkpoints: u64,
    pub cut_off: u64,
    pub found: u64,
    pub closed: u64,
    pub used: u64,
    pub epochs: u64,
    pub unwritten: u64,
}

impl Tally {
    pub fn add(&mut self, story: &Story) {
        let disk = story.cellar.disk.borrow();
        self.commits = self.commits.max(story.notes.count());
        self.promises += story.notes.synced.borrow().len();
        self.batches += disk.batches;
        self.checkpoints += disk.completed;
        self.cut_off += disk.cut_off;
        self.found += disk.found;
        self.closed += disk.closed;
        let checkpoint = disk.checkpoint.as_ref();
        self.used += u64::from(checkpoint.is_some_and(|one| one.number > 0));
        self.epochs += story.rack.opened;
        self.unwritten = self.unwritten.max(*story.notes.unwritten.borrow());
    }

    pub fn join(&mut self, other: &Self) {
        self.commits += other.commits;
        self.promises += other.promises;
        self.batches += other.batches;
        self.checkpoints += other.checkpoints;
        self.cut_off += other.cut_off;
        self.found += other.found;
        self.closed += other.closed;
        self.used += other.used;
        self.epochs += other.epochs;
        self.unwritten += other.unwritten;
    }

    pub fn print(&self, story: &str) {
        println!(
            "{story}: {} commits that are there, {} promises kept, {} batches, {} of them cut off, \
             {} gaps, {} of them closed, {} checkpoints, {} times one was needed; {} epochs opened, \
             {} commits waited in vain",
            self.commits,
            self.promises,
            self.batches,
            self.cut_off,
            self.found,
            self.closed,
            self.checkpoints,
            self.used,
            self.epochs,
            self.unwritten
        );
    }
}
