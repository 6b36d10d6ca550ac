//! Where the words of a reference mark go.

/// A rectangle in units of the figure, y downwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Area {
    pub left: i32,
    pub top: i32,
    pub right: i32,
    pub bottom: i32,
}

impl Area {
    fn holds(&self, (x, y): (i32, i32)) -> bool {
        (self.left..=self.right).contains(&x) && (self.top..=self.bottom).contains(&y)
    }

    fn meets(&self, other: &Area) -> bool {
        self.left <= other.right
            && other.left <= self.right
            && self.top <= other.bottom
            && other.top <= self.bottom
    }

    fn is_within(&self, other: &Area) -> bool {
        self.left >= other.left
            && self.right <= other.right
            && self.top >= other.top
            && self.bottom <= other.bottom
    }
}

/// What lies in a panel already.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Points close together along every line.
    dots: Vec<(i32, i32)>,
    /// The same along every mark: they have no markers.
    marks: Vec<(i32, i32)>,
    words: Vec<Area>,
}

/// Steps between the points of a line.
const STEP: i32 = 6;
/// Between words and their mark.
const GAP: i32 = 6;
/// From the middle of a line to the rim of its markers.
const THICK: i32 = 12;

impl Taken {
    /// A line takes its place.
    pub fn line(&mut self, corners: &[(i32, i32)]) {
        self.dots.extend(along(corners));
    }

    /// A mark takes its place.
    pub fn mark(&mut self, corners: &[(i32, i32)]) {
        self.marks.extend(along(corners));
    }

    /// How much of what is there words at a place would cover.
    fn covered(&self, area: &Area) -> usize {
        let around = Area {
            left: area.left - THICK,
            top: area.top - THICK,
            right: area.right + THICK,
            bottom: area.bottom + THICK,
        };
        let lines = self.dots.iter().filter(|dot| around.holds(**dot)).count();
        let marks = self.marks.iter().filter(|dot| area.holds(**dot)).count();
        let dots = lines + marks;
        let words = self.words.iter().filter(|words| words.meets(area)).count();
        dots + 1_000 * words
    }

    /// The place for words of a size beside a mark, inside the panel: the first of several that
    /// covers nothing, or the one that covers least. It is taken then.
    pub fn words(&mut self, mark: &[(i32, i32)], size: (i32, i32), panel: &Area) -> Area {
        let candidates = candidates(mark, size);
        let inside = candidates.iter().filter(|area| area.is_within(panel));
        // The first of the least: `min_by_key` keeps the earliest.
        let best = inside.min_by_key(|area| self.covered(area));
        let best = best.copied().unwrap_or(Area {
            left: panel.left + GAP,
            top: panel.top + GAP,
            right: panel.left + GAP + size.0,
            bottom: panel.top + GAP + size.1,
        });
        self.words.push(best);
        best
    }
}

/// Points close together along a path.
fn along(corners: &[(i32, i32)]) -> Vec<(i32, i32)> {
    let mut dots: Vec<(i32, i32)> = corners.first().copied().into_iter().collect();
    for pair in corners.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let (across, down) = (to.0 - from.0, to.1 - from.1);
        let steps = (across.abs().max(down.abs()) / STEP).max(1);
        let place = |step| (from.0 + across * step / steps, from.1 + down * step / steps);
        dots.extend((1..=steps).map(place));
    }
    dots
}

/// Above and below a mark, from its right end to its left one.
fn candidates(mark: &[(i32, i32)], (width, height): (i32, i32)) -> Vec<Area> {
    let mut found = Vec::new();
    let (Some(first), Some(last)) = (mark.first(), mark.last()) else {
        return found;
    };
    let room = (last.0 - first.0 - width - 2 * GAP).max(0);
    for quarter in (0..=4).rev() {
        let left = first.0 + GAP + room * quarter / 4;
        let span = left..=left + width;
        let heights = mark.windows(2).flat_map(|pair| heights(pair, &span));
        let (mut high, mut low) = (i32::MAX, i32::MIN);
        for y in heights {
            high = high.min(y);
            low = low.max(y);
        }
        if high > low {
            continue;
        }
        for top in [high - GAP - height, low + GAP] {
            found.push(Area {
                left,
                top,
                right: left + width,
                bottom: top + height,
            });
        }
    }
    found
}

/// Where a piece of a mark is at both ends of what it shares with a span.
fn heights(pair: &[(i32, i32)], span: &std::ops::RangeInclusive<i32>) -> Vec<i32> {
    let (from, to) = (pair[0], pair[1]);
    let (left, right) = (from.0.max(*span.start()), to.0.min(*span.end()));
    if left > right {
        return Vec::new();
    }
    let at = |x: i32| {
        let width = (to.0 - from.0).max(1);
        from.1 + (to.1 - from.1) * (x - from.0) / width
    };
    vec![at(left), at(right)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PANEL: Area = Area {
        left: 0,
        top: 0,
        right: 400,
        bottom: 300,
    };
    const LEVEL: [(i32, i32); 2] = [(0, 100), (400, 100)];
    const SIZE: (i32, i32) = (120, 20);

    #[test]
    fn words_stand_above_the_right_end_when_nothing_is_there() {
        let area = Taken::default().words(&LEVEL, SIZE, &PANEL);
        assert_eq!((area.right, area.bottom), (394, 94));
    }

    #[test]
    fn words_give_way_to_lines_and_to_other_words() {
        let mut taken = Taken::default();
        taken.line(&[(200, 75), (400, 75)]);
        let first = taken.words(&LEVEL, SIZE, &PANEL);
        assert_eq!((first.right, first.top), (394, 106), "below the right end");
        let second = taken.words(&LEVEL, SIZE, &PANEL);
        assert!(!first.meets(&second) && second.is_within(&PANEL));
        assert!(taken.dots.iter().all(|dot| !second.holds(*dot)));
    }

    #[test]
    fn words_beside_a_rising_mark_do_not_lie_on_it() {
        let mut taken = Taken::default();
        let mark = [(0, 290), (400, 10)];
        taken.mark(&mark);
        let area = taken.words(&mark, SIZE, &PANEL);
        assert!(taken.marks.iter().all(|dot| !area.holds(*dot)), "{area:?}");
    }
}
