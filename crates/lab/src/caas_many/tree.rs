//! The shape of a log-structured tree: how many bytes are on which level, which compactions it
//! wants, and what they read. No keys: every level's bytes are spread evenly over them.
//!
//! The rules are those of RocksDB 11.8's leveled compaction with dynamic level sizes
//! (`VersionStorageInfo::CalculateBaseBytes`, `LevelCompactionPicker`): level 0 is wanted when it
//! has as many files as its trigger, a deeper level when it is larger than its target; the highest
//! score goes first. Files of level 0 cover all keys, so a compaction of them needs the whole base
//! level, and waits until nothing of that is being compacted; meanwhile the base level begins
//! nothing new.
//!
//! Left out: compactions inside level 0, files cut at the borders of the next level, deletes and
//! overwritten rows (nothing gets smaller).

/// Settings of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Bytes of a full memtable, and of the file it becomes.
    pub memtable: u64,
    /// Bytes of a sorted file on a deeper level.
    pub file: u64,
    /// Files on level 0 at which it is compacted.
    pub level0_trigger: usize,
    /// Files on level 0 at which no memtable is written out any more.
    pub level0_stop: usize,
    /// Target of the base level in bytes.
    pub base: u64,
    /// How much larger each level is than the one above it.
    pub ratio: u64,
}

/// Levels, level 0 among them.
const LEVELS: usize = 7;
/// The deepest level.
pub(super) const LAST: usize = LEVELS - 1;

#[derive(Debug, Clone, Copy, Default)]
struct Level {
    bytes: u64,
    /// Those of them that are being compacted.
    busy: u64,
}

/// A tree.
#[derive(Debug)]
pub(super) struct Tree {
    shape: Shape,
    /// Files of level 0, oldest first.
    level0: Vec<u64>,
    /// The oldest of them that are being compacted.
    level0_busy: usize,
    /// Level 0 has its own list.
    levels: [Level; LEVELS],
}

/// A compaction: all that it reads is busy until it is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pick {
    /// Level of the upper inputs.
    pub start: usize,
    /// Where the outputs go.
    pub output: usize,
    /// Bytes read of the upper level, and
    upper: u64,
    /// of the level where the outputs go.
    lower: u64,
    /// Compaction score × 1,000.
    pub score: u64,
}

impl Pick {
    /// Bytes of all inputs.
    pub fn bytes(&self) -> u64 {
        self.upper + self.lower
    }

    /// Whether it only moves files down, which takes no time.
    pub fn is_move(&self) -> bool {
        self.start > 0 && self.lower == 0
    }
}

impl Tree {
    /// A tree that has been written to for long: each level is as large as it may be, the base
    /// level half of that.
    pub fn filled(shape: Shape, bytes: u64) -> Self {
        let mut tree = Self {
            shape,
            level0: Vec::new(),
            level0_busy: 0,
            levels: [Level::default(); LEVELS],
        };
        // A level and those above it are 1 + 1/10 + 1/100 … as large.
        let mut size = bytes - bytes / shape.ratio;
        let mut left = bytes;
        for level in (1..LEVELS).rev() {
            let is_base = size <= shape.base || level == 1;
            tree.levels[level].bytes = if is_base { left.min(size / 2) } else { size };
            left -= tree.levels[level].bytes;
            if is_base {
                break;
            }
            size = (size / shape.ratio).min(left);
        }
        // What is left over of rounding belongs to the last level.
        tree.levels[LAST].bytes += left;
        tree
    }

    /// Bytes in all files.
    pub fn bytes(&self) -> u64 {
        let deeper: u64 = self.levels.iter().map(|level| level.bytes).sum();
        self.level0.iter().sum::<u64>() + deeper
    }

    /// Files on level 0.
    pub fn level0(&self) -> usize {
        self.level0.len()
    }

    /// Whether no memtable is written out any more.
    pub fn is_stopped(&self) -> bool {
        self.level0.len() >= self.shape.level0_stop
    }

    /// A memtable became a file.
    pub fn add(&mut self, bytes: u64) {
        self.level0.push(bytes);
    }

    /// The compaction that is wanted most, if any can begin; its inputs are busy from now on.
    pub fn pick(&mut self) -> Option<Pick> {
        let (base, targets) = self.targets();
        let mut wanted: Vec<(u64, usize)> = (base..LAST)
            .map(|level| (self.score(level, targets[level]), level))
            .collect();
        wanted.push((self.level0_score(), 0));
        wanted.retain(|(score, _)| *score >= 1_000);
        wanted.sort_by_key(|(score, level)| (std::cmp::Reverse(*score), *level));
        let mut level0_waits = false;
        for (score, level) in wanted {
            let pick = if level == 0 {
                self.of_level0(base, score)
            } else if level == base && level0_waits {
                None
            } else {
                self.of_level(level, score)
            };
            if let Some(pick) = pick {
                self.begin(&pick);
                return Some(pick);
            }
            level0_waits |= level == 0;
        }
        None
    }

    /// The outputs of a compaction take the place of its inputs.
    pub fn install(&mut self, pick: &Pick) {
        if pick.start == 0 {
            let gone: u64 = self.level0.drain(..self.level0_busy).sum();
            debug_assert_eq!(gone, pick.upper, "files of level 0 came or went");
            self.level0_busy = 0;
        } else {
            let upper = &mut self.levels[pick.start];
            upper.bytes -= pick.upper;
            upper.busy -= pick.upper;
        }
        let lower = &mut self.levels[pick.output];
        lower.busy -= pick.lower;
        lower.bytes += pick.upper;
    }

    fn begin(&mut self, pick: &Pick) {
        if pick.start == 0 {
            self.level0_busy = self.level0.len();
        } else {
            self.levels[pick.start].busy += pick.upper;
        }
        self.levels[pick.output].busy += pick.lower;
    }

    fn level0_score(&self) -> u64 {
        if self.level0_busy > 0 {
            return 0;
        }
        let files = self.level0.len() as u64 * 1_000 / (self.shape.level0_trigger as u64).max(1);
        // A trigger not reached yet is no reason by itself, however large the files are.
        if self.level0.len() < self.shape.level0_trigger {
            return files;
        }
        files.max(self.level0.iter().sum::<u64>() * 1_000 / self.shape.base)
    }

    fn score(&self, level: usize, target: u64) -> u64 {
        let level = self.levels[level];
        (level.bytes - level.busy) * 1_000 / target.max(1)
    }

    fn of_level0(&self, base: usize, score: u64) -> Option<Pick> {
        let into = self.levels[base];
        (into.busy == 0).then(|| Pick {
            start: 0,
            output: base,
            upper: self.level0.iter().sum(),
            lower: into.bytes,
            score,
        })
    }

    /// One file of a level, and what it overlaps in the next one.
    fn of_level(&self, start: usize, score: u64) -> Option<Pick> {
        let (level, next) = (self.levels[start], self.levels[start + 1]);
        let upper = self.shape.file.min(level.bytes - level.busy);
        let overlap = u128::from(next.bytes) * u128::from(upper) / u128::from(level.bytes.max(1));
        let lower = u64::try_from(overlap).unwrap_or(u64::MAX);
        let has_room = upper > 0 && next.bytes - next.busy >= lower;
        has_room.then_some(Pick {
            start,
            output: start + 1,
            upper,
            lower,
            score,
        })
    }

    /// The level that level 0 is compacted into, and the target of each level.
    fn targets(&self) -> (usize, [u64; LEVELS]) {
        let largest = self.levels.iter().map(|level| level.bytes).max();
        let mut size = largest.unwrap_or(0);
        let first = (1..LEVELS).find(|level| self.levels[*level].bytes > 0);
        let first = first.unwrap_or(LAST);
        for _ in first..LAST {
            size /= self.shape.ratio;
        }
        let mut base = first;
        while base > 1 && size > self.shape.base {
            base -= 1;
            size /= self.shape.ratio;
        }
        let mut size = size.clamp(self.shape.base / self.shape.ratio + 1, self.shape.base);
        let mut targets = [u64::MAX; LEVELS];
        for target in &mut targets[base..] {
            *target = size.max(self.shape.base);
            size *= self.shape.ratio;
        }
        (base, targets)
    }

    /// That nothing is compacted that is not there.
    pub fn check(&self) -> Result<(), String> {
        let is_wrong = |level: &&Level| level.busy > level.bytes;
        match self.levels.iter().find(is_wrong) {
            Some(level) => Err(format!("{level:?} compacts more than it has")),
            None if self.level0_busy > self.level0.len() => Err("level 0 too".to_owned()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn shape() -> Shape {
        Shape {
            memtable: 64 * MIB,
            file: 64 * MIB,
            level0_trigger: 4,
            level0_stop: 36,
            base: 256 * MIB,
            ratio: 10,
        }
    }

    #[test]
    fn a_filled_tree_has_its_bytes_and_wants_nothing() {
        for gib in [1, 3, 10, 20, 100] {
            let mut tree = Tree::filled(shape(), gib << 30);
            assert_eq!(tree.bytes(), gib << 30);
            assert_eq!(tree.pick(), None, "{tree:?}");
        }
    }

    #[test]
    fn level_0_goes_with_the_whole_base_level_once_it_has_four_files() {
        let mut tree = Tree::filled(shape(), 10 << 30);
        let (base, _) = tree.targets();
        for _ in 0..3 {
            tree.add(64 * MIB);
        }
        assert_eq!(tree.pick(), None);
        tree.add(64 * MIB);
        let pick = tree.pick().unwrap();
        assert_eq!((pick.start, pick.output), (0, base));
        assert_eq!(pick.bytes(), 256 * MIB + tree.levels[base].bytes);
        // More arrives meanwhile, and has to wait.
        for _ in 0..8 {
            tree.add(64 * MIB);
        }
        assert_eq!(tree.pick(), None);
        let before = tree.bytes();
        tree.install(&pick);
        assert_eq!((tree.bytes(), tree.level0()), (before, 8));
    }

    #[test]
    fn compactions_end_and_lose_nothing_and_read_what_leveled_trees_read() {
        let mut tree = Tree::filled(shape(), 16 << 30);
        let (mut read, mut written) = (0, 0);
        for _ in 0..400 {
            tree.add(64 * MIB);
            written += 64 * MIB;
            while let Some(pick) = tree.pick() {
                tree.check().unwrap();
                read += pick.bytes();
                tree.install(&pick);
            }
        }
        assert_eq!(tree.bytes(), (16 << 30) + written);
        // Each of two levels rewrites about ten times what comes in, level 0 about twice.
        let amplification = read / written;
        assert!((10..=26).contains(&amplification), "{amplification}");
    }

    #[test]
    fn the_base_level_begins_nothing_while_level_0_waits_for_it() {
        let mut tree = Tree::filled(shape(), 10 << 30);
        let (base, _) = tree.targets();
        tree.levels[base].bytes += 4 << 30;
        let first = tree.pick().unwrap();
        assert_eq!(first.start, base);
        for _ in 0..200 {
            tree.add(64 * MIB); // its score is now the highest
        }
        assert_eq!(tree.pick().map(|pick| pick.start), None);
        tree.install(&first);
        assert_eq!(tree.pick().map(|pick| pick.start), Some(0));
    }
}
