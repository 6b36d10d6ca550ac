//! A database of lists, and the scripts of those who use a view over it.
//!
//! A key's value is the list of the versions that wrote it: whoever misses a commit, hears of one
//! twice or in the wrong order holds another list.

use std::collections::BTreeSet;
use std::sync::Arc;

use manxdb_views::mutants::Mutants;
use manxdb_views::{Contents, Feed, Fill, Lookup, Unsuited, Version, View};

/// The versions that wrote a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Log(pub Vec<u64>);

impl Contents for Log {
    type Change = u64;

    fn apply(&mut self, change: &u64) -> Result<(), Unsuited> {
        self.0.push(*change);
        Ok(())
    }

    fn undo(&mut self, change: &u64) -> Result<(), Unsuited> {
        match self.0.pop() {
            Some(last) if last == *change => Ok(()),
            _ => Err(Unsuited),
        }
    }

    fn size_bytes(&self) -> usize {
        self.0.len() * 8
    }

    fn change_bytes(_change: &u64) -> usize {
        8
    }
}

pub const KEY: &[u8] = b"k";

/// Who takes steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// Gets a place in the commit order, then publishes it.
    Committer,
    /// Takes a snapshot, looks up or begins a fill, ends it.
    Reader,
    /// Takes a snapshot and looks up later.
    LateReader,
    /// Evicts.
    Evictor,
    /// Empties the view at a commit of its own, as a change of the table does.
    Emptier,
}

impl Actor {
    pub fn steps(self) -> usize {
        match self {
            Actor::Committer | Actor::LateReader | Actor::Emptier => 2,
            Actor::Reader => 3,
            Actor::Evictor => 1,
        }
    }
}

enum Note {
    Change(u64),
    Empty,
}

#[derive(Default)]
struct Script {
    step: usize,
    version: u64,
    snapshot: Option<u64>,
    fill: Option<Fill<Log>>,
}

/// A database, a view over it, and its users.
pub struct World {
    actors: Vec<Actor>,
    scripts: Vec<Script>,
    view: Arc<View<Log>>,
    feed: Feed<Note>,
    /// Versions that wrote the key, published or not.
    written: BTreeSet<u64>,
    assigned: u64,
    visible: u64,
    /// What was answered wrongly.
    pub wrong: Option<String>,
    /// Reads that the view answered.
    pub hits: usize,
    /// Fills that were kept.
    pub fills: usize,
}

impl World {
    pub fn new(actors: &[Actor], mutants: Mutants) -> Self {
        let view = Arc::new(View::new(Version(0)));
        let feed = Feed::default();
        view.plant(mutants);
        feed.plant(mutants);
        Self {
            actors: actors.to_vec(),
            scripts: actors.iter().map(|_| Script::default()).collect(),
            view,
            feed,
            written: BTreeSet::new(),
            assigned: 0,
            visible: 0,
            wrong: None,
            hits: 0,
            fills: 0,
        }
    }

    pub fn may_step(&self, actor: usize) -> bool {
        self.scripts[actor].step < self.actors[actor].steps()
    }

    fn base(&self, at: u64) -> Log {
        Log(self.written.range(..=at).copied().collect())
    }

    fn oldest(&self) -> u64 {
        let pinned = self.scripts.iter().filter_map(|script| script.snapshot);
        pinned.min().unwrap_or(self.visible).min(self.visible)
    }

    pub fn step(&mut self, actor: usize) {
        let step = self.scripts[actor].step;
        self.scripts[actor].step += 1;
        match (self.actors[actor], step) {
            (Actor::Committer, 0) => self.stage(actor, true),
            (Actor::Emptier, 0) => self.stage(actor, false),
            (Actor::Committer | Actor::Emptier, _) => self.publish(actor),
            (Actor::Reader | Actor::LateReader, 0) => {
                self.scripts[actor].snapshot = Some(self.visible);
            }
            (Actor::Reader, 1) => self.look_or_fill(actor),
            (Actor::Reader, _) => self.end_fill(actor),
            (Actor::LateReader, _) => {
                let at = self.scripts[actor].snapshot.take().unwrap_or_default();
                self.look(at);
            }
            (Actor::Evictor, _) => {
                let _ = self.view.evict_one();
            }
        }
    }

    fn stage(&mut self, actor: usize, writes: bool) {
        self.assigned += 1;
        let version = self.assigned;
        self.scripts[actor].version = version;
        if writes {
            self.written.insert(version);
            self.feed.stage(Version(version), Note::Change(version));
        } else {
            self.feed.stage(Version(version), Note::Empty);
        }
    }

    fn publish(&mut self, actor: usize) {
        let through = self.scripts[actor].version;
        let oldest = Version(self.oldest());
        let view = &self.view;
        self.feed
            .apply(Version(through), &mut |version, note| match note {
                Note::Change(change) => {
                    view.apply(version, oldest, vec![(KEY.to_vec(), change)]);
                }
                Note::Empty => view.empty(version),
            });
        self.visible = self.visible.max(through);
    }

    fn look(&mut self, at: u64) -> Lookup<Log> {
        let applied = self.feed.applied();
        let found = self.view.lookup(KEY, Version(at), applied, Log::clone);
        if let Lookup::Hit(log) = &found {
            self.hits += 1;
            let base = self.base(at);
            if *log != base {
                self.wrong = Some(format!("at {at}: {log:?} for {base:?}"));
            }
        }
        found
    }

    fn look_or_fill(&mut self, actor: usize) {
        let at = self.scripts[actor].snapshot.unwrap_or_default();
        if self.look(at) == Lookup::Missing {
            self.scripts[actor].fill = self.view.begin_fill(KEY, Version(at));
        }
    }

    fn end_fill(&mut self, actor: usize) {
        let at = self.scripts[actor].snapshot.unwrap_or_default();
        if let Some(fill) = self.scripts[actor].fill.take() {
            let contents = self.base(at);
            if fill.finish(contents) {
                self.fills += 1;
            }
        }
        self.look(at);
        self.scripts[actor].snapshot = None;
    }

    /// What everybody sees who comes at the end.
    pub fn end(&mut self) {
        self.look(self.visible);
    }
}
