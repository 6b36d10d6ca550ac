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

/// Where words stand, and what they belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub area: Area,
    /// From the mark down or up to words that do not stand beside it.
    pub thread: Option<[(i32, i32); 2]>,
}

/// What lies in a panel already.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Points close together along every line and every bar that says how far values spread.
    dots: Vec<(i32, i32)>,
    /// The same along every mark and every thread: they have no markers.
    marks: Vec<(i32, i32)>,
    words: Vec<Area>,
}

/// Steps between the points of a line.
const STEP: i32 = 6;
/// Between words and their mark.
const GAP: i32 = 6;
/// From the middle of a line to the rim of its markers.
const THICK: i32 = 12;
/// Between places that are tried away from a mark.
const GRID: i32 = 10;

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

    /// The place for words of a size: the first of several beside their mark that covers nothing;
    /// where there is none, anywhere in the panel with a thread to the mark, which shall cross as
    /// little as it can and be short. It is taken then. In a panel without any room it is the
    /// place that covers least.
    pub fn words(&mut self, mark: &[(i32, i32)], size: (i32, i32), panel: &Area) -> Place {
        let mut places = beside(mark, size);
        places.retain(|place| place.area.is_within(panel));
        if places.iter().all(|place| self.covered(&place.area) > 0) {
            places.extend(away(mark, size, panel));
        }
        let corner = at((panel.left + GAP, panel.top + GAP), size);
        // The first of the least: `min_by_key` keeps the earliest.
        let best = places.into_iter().min_by_key(|place| self.cost(place));
        let best = best.unwrap_or(Place {
            area: corner,
            thread: None,
        });
        self.words.push(best.area);
        if let Some(thread) = best.thread {
            self.marks.extend(along(&thread));
        }
        best
    }

    /// What a place covers and its thread crosses; then how long the thread is.
    fn cost(&self, place: &Place) -> (usize, u32) {
        let covered = self.covered(&place.area);
        let Some([from, to]) = place.thread else {
            return (covered, 0);
        };
        // What is so close to the mark is the mark itself.
        let from_y = from.1 + 2 * GAP * (to.1 - from.1).signum();
        let around = Area {
            left: to.0 - STEP,
            top: from_y.min(to.1),
            right: to.0 + STEP,
            bottom: from_y.max(to.1),
        };
        (covered + self.covered(&around), to.1.abs_diff(from.1))
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
fn beside(mark: &[(i32, i32)], (width, height): (i32, i32)) -> Vec<Place> {
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
            found.push(Place {
                area: at((left, top), (width, height)),
                thread: None,
            });
        }
    }
    found
}

/// All over a panel, above or below some part of a mark, with a thread that comes straight from it.
fn away(mark: &[(i32, i32)], size: (i32, i32), panel: &Area) -> Vec<Place> {
    let steps = |from: i32, to: i32| (from + GAP..=to - GAP).step_by(GRID.unsigned_abs() as usize);
    let mut found = Vec::new();
    for left in steps(panel.left, panel.right - size.0) {
        for x in [left + GAP, left + size.0 / 2, left + size.0 - GAP] {
            let mut heights = mark.windows(2).flat_map(|pair| heights(pair, &(x..=x)));
            let Some(y) = heights.next() else {
                continue;
            };
            for top in steps(panel.top, panel.bottom - size.1) {
                let area = at((left, top), size);
                let end = if area.bottom < y { area.bottom } else { top };
                if (end - y).abs() > 2 * GAP && !(top..=area.bottom).contains(&y) {
                    let thread = Some([(x, y), (x, end)]);
                    found.push(Place { area, thread });
                }
            }
        }
    }
    found
}

fn at((left, top): (i32, i32), (width, height): (i32, i32)) -> Area {
    Area {
        left,
        top,
        right: left + width,
        bottom: top + height,
    }
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
        let place = Taken::default().words(&LEVEL, SIZE, &PANEL);
        assert_eq!((place.area.right, place.area.bottom), (394, 94));
        assert_eq!(place.thread, None);
    }

    #[test]
    fn words_give_way_to_lines_and_to_other_words() {
        let mut taken = Taken::default();
        taken.line(&[(200, 75), (400, 75)]);
        let first = taken.words(&LEVEL, SIZE, &PANEL).area;
        assert_eq!((first.right, first.top), (394, 106), "below the right end");
        let second = taken.words(&LEVEL, SIZE, &PANEL).area;
        assert!(!first.meets(&second) && second.is_within(&PANEL));
        assert!(taken.dots.iter().all(|dot| !second.holds(*dot)));
    }

    #[test]
    fn words_beside_a_rising_mark_do_not_lie_on_it() {
        let mut taken = Taken::default();
        let mark = [(0, 290), (400, 10)];
        taken.mark(&mark);
        let area = taken.words(&mark, SIZE, &PANEL).area;
        assert!(taken.marks.iter().all(|dot| !area.holds(*dot)), "{area:?}");
    }

    /// Lines on both sides of two marks leave no room beside them, and none of a thread's width
    /// but at the left end.
    #[test]
    fn words_without_room_beside_their_mark_hang_on_a_thread() {
        let mut taken = Taken::default();
        for y in [75, 100, 125, 150, 175] {
            taken.line(&[(60, y), (400, y)]);
        }
        let upper = [(0, 112), (400, 112)];
        let lower = [(0, 138), (400, 138)];
        taken.mark(&upper);
        taken.mark(&lower);
        let places = [upper, lower].map(|mark| taken.words(&mark, SIZE, &PANEL));
        assert!(!places[0].area.meets(&places[1].area));
        for (place, y) in places.iter().zip([112, 138]) {
            assert!(place.area.is_within(&PANEL));
            assert_eq!(
                taken
                    .dots
                    .iter()
                    .filter(|dot| place.area.holds(**dot))
                    .count(),
                0
            );
            let [from, to] = place.thread.expect("a thread");
            assert_eq!((from.0, from.1), (to.0, y), "straight from its mark");
            assert!(from.0 < 60 - THICK, "it crosses no line: {place:?}");
            assert!(to.1 == place.area.bottom || to.1 == place.area.top);
        }
    }

    #[test]
    fn words_in_a_panel_without_room_are_in_it_all_the_same() {
        let mut taken = Taken::default();
        for y in (0..300).step_by(10) {
            taken.line(&[(0, y), (400, y)]);
        }
        assert!(taken.words(&LEVEL, SIZE, &PANEL).area.is_within(&PANEL));
    }
}
