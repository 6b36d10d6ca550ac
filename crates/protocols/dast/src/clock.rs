//! The stretchable clock (DAST §4.2): stamps that grow for ever and stay below every floor.
//!
//! A floor is the anticipated timestamp of a cross-region transaction whose place is not decided
//! yet. When time reaches the lowest floor the clock does not stop: it stays in the microsecond
//! below the floor and counts on in the second component. So local transactions go on getting
//! stamps, all of them below the pending one, and wait for nothing. A ceiling works as a floor does:
//! it is the bound below which a region knows all cross-region transactions that are ordered ahead
//! ([`Crossing::Ahead`](crate::Crossing)), and it moves.
//!
//! | invariant | |
//! |---|---|
//! | C1 | stamps strictly increase |
//! | C2 | while a floor above the last stamp is held, every stamp is below it |
//! | C2' | while a ceiling above the last stamp is set, every stamp is below it |
//! | C3 | every floor is that of a cross-region transaction that is not decided |

use std::collections::BTreeMap;

use manxdb_core::LocalTime;
use manxdb_core::check::ensure;

use crate::call::CallId;
use crate::timestamp::Timestamp;

/// How far a clock may run ahead of what it last heard of its region, in microseconds: the most
/// by which a wall clock that is set forward can carry stamps away.
const AHEAD_MAX_MICROS: u64 = 200_000;

/// The clock of one replica.
#[derive(Debug, Clone)]
pub struct Clock {
    site: u32,
    /// Added to the wall clock, in microseconds: corrections of the region's manager.
    offset: i64,
    last: Timestamp,
    floors: BTreeMap<Timestamp, CallId>,
    /// Stamps stay below this too; none: it is not heard of, or there is none.
    ceiling: Option<Timestamp>,
    /// No reading is believed beyond this many microseconds.
    bound: u64,
    #[cfg(feature = "mutants")]
    mutant: Option<crate::mutants::Mutant>,
}

impl Clock {
    /// A clock of `site`, which must be different for every clock.
    #[must_use]
    pub fn new(site: u32) -> Self {
        Self {
            site,
            offset: 0,
            last: Timestamp::ZERO,
            floors: BTreeMap::new(),
            ceiling: None,
            bound: u64::MAX,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    /// Plants a defect.
    #[cfg(feature = "mutants")]
    pub fn plant(&mut self, mutant: Option<crate::mutants::Mutant>) {
        self.mutant = mutant;
    }

    /// What the corrected wall clock shows, in microseconds; never stretched.
    #[must_use]
    pub fn reading(&self, now: LocalTime) -> u64 {
        let corrected = now.as_micros().saturating_add_signed(self.offset);
        corrected.min(self.bound)
    }

    /// The next stamp, if it were given now.
    #[must_use]
    pub fn peek(&self, now: LocalTime) -> Timestamp {
        let reading = self.reading(now);
        let mut stamp = Timestamp::at(reading, self.site);
        if let Some(floor) = self.limit()
            && stamp.micros >= floor.micros
            && self.last.micros < floor.micros
        {
            stamp.micros = floor.micros.saturating_sub(1);
            stamp.stretch = reading;
        }
        if stamp <= self.last {
            stamp = self.last;
            stamp.stretch += 1;
            stamp.site = self.site;
        }
        stamp
    }

    /// A new stamp.
    pub fn tick(&mut self, now: LocalTime) -> Timestamp {
        let stamp = self.peek(now);
        assert!(stamp > self.last, "C1: stamps increase");
        assert!(
            self.limit()
                .is_none_or(|limit| stamp < limit || self.last.micros >= limit.micros),
            "C2: stamps stay below floors and the ceiling"
        );
        self.last = stamp;
        stamp
    }

    /// Never again gives a stamp up to `past`.
    pub fn pass(&mut self, past: Timestamp) {
        self.last = self.last.max(past);
    }

    /// The lowest floor that still binds.
    #[must_use]
    pub fn lowest_floor(&self) -> Option<Timestamp> {
        self.floors.keys().next().copied()
    }

    /// The lower of the lowest floor and the ceiling.
    fn limit(&self) -> Option<Timestamp> {
        self.lowest_floor().into_iter().chain(self.ceiling).min()
    }

    /// What the ceiling is, if there is one.
    #[must_use]
    pub fn ceiling(&self) -> Option<Timestamp> {
        self.ceiling
    }

    /// Holds the clock below `ceiling` from now on. A clock that is already past it goes on: what
    /// it stamps waits until the region's bound is there.
    pub fn set_ceiling(&mut self, ceiling: Timestamp) {
        self.ceiling = Some(ceiling);
    }

    /// Forgets the ceiling.
    pub fn clear_ceiling(&mut self) {
        self.ceiling = None;
    }

    /// Holds the clock below `at` for the sake of `call`. A clock that is already past it goes
    /// on: its transactions will wait for `call`, which is slow and not wrong.
    pub fn add_floor(&mut self, at: Timestamp, call: CallId) {
        // By whole microseconds: within the floor's own there is no room to stretch.
        if self.last.micros < at.micros {
            let other = self.floors.insert(at, call);
            assert!(
                other.is_none_or(|other| other == call),
                "one timestamp is one transaction's"
            );
        }
    }

    /// Lets go of a floor; whether it was there.
    pub fn remove_floor(&mut self, at: Timestamp) -> bool {
        let was_there = self.floors.remove(&at).is_some();
        #[cfg(feature = "mutants")]
        if was_there && self.mutant == Some(crate::mutants::Mutant::ClockForgetsStretch) {
            self.last = Timestamp::ZERO;
        }
        was_there
    }

    /// Sets the clock by `micros`, forward or back. Stamps go on increasing either way.
    pub fn correct(&mut self, micros: i64) {
        self.offset = self.offset.saturating_add(micros);
    }

    /// Notes that the region's clock shows `micros`.
    pub fn hear(&mut self, micros: u64) {
        self.bound = micros.saturating_add(AHEAD_MAX_MICROS);
    }

    /// So many microseconds have passed by a timer, which nobody can set: they are believed.
    pub fn pass_time(&mut self, micros: u64) {
        self.bound = self.bound.saturating_add(micros);
    }

    /// Checks that every floor is one of `open`: a floor that nobody lets go of would hold the
    /// clock back for ever.
    ///
    /// # Errors
    /// The floor that is left over.
    pub fn check(&self, open: &BTreeMap<CallId, Timestamp>) -> Result<(), String> {
        for (at, call) in &self.floors {
            ensure(open.get(call) == Some(at), || {
                format!("C3: the clock keeps below {at:?} for {call:?}, which is not open")
            })?;
        }
        Ok(())
    }

    /// Stamps given so far end here.
    #[must_use]
    pub fn last(&self) -> Timestamp {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manxdb_core::NodeId;
    use proptest::prelude::*;

    fn call(number: u64) -> CallId {
        CallId {
            client: NodeId(0),
            number,
        }
    }

    fn at(micros: u64) -> LocalTime {
        LocalTime(micros * 1_000)
    }

    #[test]
    fn a_free_clock_shows_the_time() {
        let mut clock = Clock::new(7);
        assert_eq!(clock.tick(at(100)), Timestamp::at(100, 7));
        assert_eq!(clock.tick(at(101)), Timestamp::at(101, 7));
    }

    #[test]
    fn below_a_floor_a_clock_stretches_and_keeps_time() {
        let mut clock = Clock::new(1);
        let floor = Timestamp::at(200, 9);
        clock.add_floor(floor, call(1));
        assert_eq!(clock.tick(at(150)).micros, 150);
        let one = clock.tick(at(250));
        let other = clock.tick(at(300));
        assert_eq!((one.micros, one.stretch), (199, 250));
        assert_eq!((other.micros, other.stretch), (199, 300));
        assert!(clock.remove_floor(floor));
        assert_eq!(clock.tick(at(301)), Timestamp::at(301, 1));
    }

    #[test]
    fn below_a_ceiling_that_moves_a_clock_stretches_until_it_is_raised() {
        let mut clock = Clock::new(1);
        clock.set_ceiling(Timestamp::at(200, 0));
        let held = clock.tick(at(250));
        assert_eq!((held.micros, held.stretch), (199, 250));
        clock.set_ceiling(Timestamp::at(260, 0));
        assert_eq!(clock.tick(at(251)), Timestamp::at(251, 1));
        clock.add_floor(Timestamp::at(255, 9), call(1));
        assert_eq!(clock.tick(at(300)).micros, 254, "the lower one counts");
    }

    #[test]
    fn two_clocks_below_one_floor_advance_together() {
        let (mut one, mut other) = (Clock::new(1), Clock::new(2));
        for clock in [&mut one, &mut other] {
            clock.add_floor(Timestamp::at(200, 9), call(1));
        }
        let stamp = one.tick(at(500));
        assert!(other.tick(at(501)) > stamp);
    }

    #[test]
    fn a_clock_past_a_floor_is_not_held_by_it() {
        let mut clock = Clock::new(1);
        clock.tick(at(300));
        clock.add_floor(Timestamp::at(200, 9), call(1));
        assert_eq!(clock.tick(at(301)).micros, 301);
    }

    #[test]
    fn a_wall_clock_that_goes_back_does_not_take_stamps_back() {
        let mut clock = Clock::new(1);
        let before = clock.tick(at(1_000));
        let after = clock.tick(at(10));
        assert!(after > before);
        assert_eq!(after.micros, 1_000);
    }

    #[test]
    fn a_wall_clock_that_leaps_forward_is_believed_only_so_far() {
        let mut clock = Clock::new(1);
        clock.hear(1_000);
        assert_eq!(clock.tick(at(10_000_000)).micros, 1_000 + AHEAD_MAX_MICROS);
        clock.pass_time(700);
        assert_eq!(clock.tick(at(10_000_000)).micros, 1_700 + AHEAD_MAX_MICROS);
    }

    /// Two stamps in one microsecond, and a floor that goes in between.
    fn stamps_around_a_floors_end(mutant: Option<crate::mutants::Mutant>) -> [Timestamp; 2] {
        let mut clock = Clock::new(1);
        clock.plant(mutant);
        let floor = Timestamp::at(200, 9);
        clock.add_floor(floor, call(1));
        let before = clock.tick(at(150));
        clock.remove_floor(floor);
        [before, clock.tick(at(150))]
    }

    #[test]
    fn a_clock_that_forgets_its_stretch_is_found() {
        let [before, after] = stamps_around_a_floors_end(None);
        assert!(before < after);
        let mutant = crate::mutants::Mutant::ClockForgetsStretch;
        let [before, after] = stamps_around_a_floors_end(Some(mutant));
        assert_eq!(before, after, "two transactions at one place");
    }

    #[derive(Debug, Clone)]
    enum Step {
        Tick(u64),
        Add(u64),
        Remove(u64),
        Correct(i64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..1_000_u64).prop_map(Step::Tick),
            (0..1_000_u64).prop_map(Step::Add),
            (0..1_000_u64).prop_map(Step::Remove),
            (-200..200_i64).prop_map(Step::Correct),
        ]
    }

    proptest! {
        #[test]
        fn stamps_increase_and_stay_below_floors(steps in prop::collection::vec(step(), 0..60)) {
            let mut clock = Clock::new(3);
            let mut floors = std::collections::BTreeSet::new();
            for step in steps {
                match step {
                    Step::Tick(micros) => {
                        let before = clock.last();
                        let stamp = clock.tick(at(micros));
                        prop_assert!(stamp > before);
                        for floor in &floors {
                            prop_assert!(stamp < *floor, "{stamp:?} is not below {floor:?}");
                        }
                    }
                    Step::Add(micros) => {
                        let floor = Timestamp::at(micros, 9);
                        if clock.last().micros < micros {
                            floors.insert(floor);
                        }
                        clock.add_floor(floor, call(micros));
                    }
                    Step::Remove(micros) => {
                        floors.remove(&Timestamp::at(micros, 9));
                        clock.remove_floor(Timestamp::at(micros, 9));
                    }
                    Step::Correct(by) => clock.correct(by),
                }
            }
        }
    }
}
