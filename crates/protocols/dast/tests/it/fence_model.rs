//! The fence of decision 46, explored step by step: three regions, of which one falls silent, and three
//! transactions, in every order of steps. It is a model of the design; the protocol's own fence is
//! tested with histories (`ahead_fence` of the laboratory).
//!
//! A region is one number, up to where its cuts are. All transactions of a region clash, so that what
//! ran must have one order for all regions. Five simplifications lose nothing:
//!
//! - All transactions have their places from the start: one that is ordered later is behind every cut and
//!   mark, or the same as none.
//! - Marks are told as they are needed, and of the silent region's each of the others has any that it
//!   may have when it stops to take from the stream. A mark on its way only keeps its region from giving
//!   a place.
//! - What the silent region does on marks that were on their way when it was fenced, it could have done
//!   just before.
//! - Both others stop taking from the stream at once: the one that stopped first could as well have
//!   had nothing more to take.
//! - Local transactions are left out: they clash with everything of their region alone, so that each
//!   path through one of them is a path between its neighbours.

use std::collections::HashSet;

/// The silent region, and the two that fence it.
const SILENT: usize = 0;
const OTHERS: [usize; 2] = [1, 2];
const REGIONS: usize = 3;
/// Transactions; a transaction's number is its place.
const COUNT: usize = 3;

/// Whether each region is touched.
type Touches = [bool; REGIONS];

const TOUCHES: [Touches; 4] = [
    [true, true, false],
    [true, false, true],
    [false, true, true],
    [true, true, true],
];

#[derive(Debug, Clone, Copy)]
struct Transaction {
    home: usize,
    touches: Touches,
}

type Transactions = [Transaction; COUNT];

/// What regions do; the design, or it with a defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Designed,
    /// Entries of the silent region that only one has are not given to the other.
    WithoutExchange,
    /// Its stream ends at the lowest mark that arrived.
    EndsAtLowestMark,
    /// Behind the end, what touches the silent region and another one has ordered runs at its place.
    RunsBehindTheEnd,
    /// Behind the end, new places are not in the order of the old ones.
    NewPlacesInAnyOrder,
}

/// The transactions that ran in a region, in their order.
#[derive(Debug, Clone, Copy, Default)]
struct Ran {
    list: [u8; COUNT],
    length: u8,
}

impl Ran {
    fn push(&mut self, transaction: usize) {
        let place = usize::from(self.length);
        assert!(place < COUNT, "a transaction runs twice in a region");
        self.list[place] = u8::try_from(transaction).unwrap();
        self.length += 1;
    }

    fn all(&self) -> impl Iterator<Item = usize> + '_ {
        let ran = &self.list[..usize::from(self.length)];
        ran.iter().map(|one| usize::from(*one))
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// The last mark of the silent region that each of the others has; its cut, until it is frozen.
    heard: [usize; REGIONS],
    /// Up to where each region has cut its order.
    cut: [usize; REGIONS],
    ran: [Ran; REGIONS],
    /// Nobody takes anything more from the silent region.
    is_frozen: bool,
    /// Who knows where its stream ends.
    applied: [bool; REGIONS],
}

impl State {
    /// Below this the region may cut.
    fn bound(&self, region: usize) -> usize {
        let is_fenced = OTHERS.iter().any(|other| self.applied[*other]);
        match region {
            // Nobody tells it marks any more.
            SILENT if is_fenced => self.cut[SILENT],
            SILENT => COUNT,
            _ if self.applied[region] || !self.is_frozen => COUNT,
            _ => self.heard[region],
        }
    }

    /// Another one for each state.
    fn number(&self) -> u64 {
        let flags = self.applied.into_iter().chain([self.is_frozen]);
        let small = self.heard.into_iter().chain(self.cut);
        let ran = self.ran.iter().flat_map(|ran| {
            let list = ran.list.into_iter().chain([ran.length]);
            list.map(usize::from)
        });
        // Nothing here is above 3.
        let all = flags.map(usize::from).chain(small).chain(ran);
        all.fold(0, |number, part| number << 2 | part as u64)
    }
}

struct Model {
    transactions: Transactions,
    rule: Rule,
}

impl Model {
    fn of(&self, place: usize) -> Transaction {
        self.transactions[place]
    }

    /// Where the stream of the silent region ends, once nobody takes anything more from it.
    fn end(&self, state: &State) -> usize {
        let marks = OTHERS.map(|region| state.heard[region]);
        match self.rule {
            Rule::EndsAtLowestMark => marks[0].min(marks[1]),
            _ => marks[0].max(marks[1]),
        }
    }

    /// Whether a transaction gets a new place when the silent region is back.
    fn is_moved(&self, state: &State, place: usize) -> bool {
        let transaction = self.of(place);
        let concerns = transaction.touches[SILENT] || transaction.home == SILENT;
        let runs_on = self.rule == Rule::RunsBehindTheEnd && transaction.home != SILENT;
        concerns && !runs_on && place >= self.end(state)
    }

    /// Whether a region has a transaction that was ordered.
    fn has(&self, state: &State, region: usize, place: usize) -> bool {
        let home = self.of(place).home;
        if region == SILENT || home != SILENT {
            return true;
        }
        let exchanged = state.applied[region] && self.rule != Rule::WithoutExchange;
        // A mark that a cut needs has come, and behind it what was ordered before.
        !state.is_frozen || place < state.heard[region] || (exchanged && place < self.end(state))
    }

    /// One more place is cut.
    fn cut(&self, state: &State, region: usize) -> State {
        let mut next = *state;
        let place = state.cut[region];
        next.cut[region] += 1;
        if region != SILENT && !state.is_frozen {
            next.heard[region] = next.cut[region];
        }
        let is_moved = region != SILENT && state.applied[region] && self.is_moved(state, place);
        let is_here = self.of(place).touches[region] && self.has(state, region, place);
        if is_here && !is_moved {
            next.ran[region].push(place);
        }
        next
    }

    fn steps(&self, state: &State) -> Vec<State> {
        let mut steps = Vec::new();
        let mut step = |change: &dyn Fn(&mut State)| {
            let mut next = *state;
            change(&mut next);
            steps.push(next);
        };
        for region in OTHERS {
            if state.is_frozen && !state.applied[region] {
                step(&|next| next.applied[region] = true);
            }
        }
        if !state.is_frozen {
            let [one, other] = OTHERS;
            for first in state.heard[one]..=COUNT {
                for second in state.heard[other]..=COUNT {
                    step(&|next| {
                        next.is_frozen = true;
                        (next.heard[one], next.heard[other]) = (first, second);
                    });
                }
            }
        }
        for region in 0..REGIONS {
            let place = state.cut[region];
            if place < COUNT && place < state.bound(region) {
                steps.push(self.cut(state, region));
            }
        }
        steps
    }

    /// What each region has run when the silent one is back and all is over. Everything below the end,
    /// and what does not concern the silent region, runs at its place; the rest behind that.
    fn returned(&self, state: &State) -> [Vec<usize>; REGIONS] {
        [0, 1, 2].map(|region| {
            let mut order: Vec<usize> = state.ran[region].all().collect();
            let left = (0..COUNT).filter(|place| {
                self.of(*place).touches[region] && !state.ran[region].all().any(|ran| ran == *place)
            });
            let (moved, placed): (Vec<usize>, Vec<usize>) =
                left.partition(|place| self.is_moved(state, *place));
            let placed = placed.into_iter();
            // What its cuts have passed it does not run any more.
            order.extend(placed.filter(|place| *place >= state.cut[region]));
            if self.rule == Rule::NewPlacesInAnyOrder && region != SILENT {
                order.extend(moved.into_iter().rev());
            } else {
                order.extend(moved);
            }
            order
        })
    }

    /// What is wrong with a state in which the others have run all they can, if the silent region came
    /// back now. Of other states nothing is asked: what ran in them has run in one of these.
    fn wrong(&self, state: &State) -> Option<String> {
        let are_done = |region: &usize| state.applied[*region] && state.cut[*region] == COUNT;
        if !OTHERS.iter().all(are_done) {
            return None;
        }
        let orders = self.returned(state);
        for (region, order) in orders.iter().enumerate() {
            for place in 0..COUNT {
                let runs = order.iter().filter(|ran| **ran == place).count();
                if runs != usize::from(self.of(place).touches[region]) {
                    return Some(format!("{place} ran {runs} times in {region}: {state:?}"));
                }
            }
        }
        let before = |one: usize, other: usize| {
            orders.iter().any(|order| {
                let at = |it| order.iter().position(|ran| *ran == it);
                matches!((at(one), at(other)), (Some(first), Some(second)) if first < second)
            })
        };
        // A cycle of three has a pair in it that differs, or goes round once.
        let round = |a, b, c| before(a, b) && before(b, c) && before(c, a);
        let pair = |a, b| before(a, b) && before(b, a);
        let is_cycle = pair(0, 1) || pair(0, 2) || pair(1, 2) || round(0, 1, 2) || round(0, 2, 1);
        is_cycle.then(|| format!("no order for all: {orders:?} in {state:?}"))
    }

    /// All states that can be reached, and what is wrong with the first one with which something is.
    fn explore(&self) -> (usize, Option<String>) {
        let mut seen = HashSet::from([State::default().number()]);
        let mut open = vec![State::default()];
        while let Some(state) = open.pop() {
            if let Some(wrong) = self.wrong(&state) {
                return (seen.len(), Some(wrong));
            }
            for next in self.steps(&state) {
                if seen.insert(next.number()) {
                    open.push(next);
                }
            }
        }
        (seen.len(), None)
    }
}

/// Three transactions of every home, touching every two regions or all.
fn all() -> impl Iterator<Item = Transactions> {
    let one = |number: usize| Transaction {
        home: number % REGIONS,
        touches: TOUCHES[number / REGIONS],
    };
    let kinds = REGIONS * TOUCHES.len();
    // With the other two regions exchanged it is the same.
    let exchanged = move |kind: usize| {
        let home = [0, 2, 1][kind % REGIONS];
        home + REGIONS * [1, 0, 2, 3][kind / REGIONS]
    };
    let all = (0..kinds.pow(3)).map(move |number| {
        [
            number % kinds,
            number / kinds % kinds,
            number / kinds / kinds,
        ]
    });
    let once = all.filter(move |of| *of <= of.map(exchanged));
    once.map(move |of| of.map(one))
}

fn find(rule: Rule) -> (usize, Option<String>) {
    let mut states = 0;
    for transactions in all() {
        let (count, wrong) = Model { transactions, rule }.explore();
        states += count;
        if let Some(wrong) = wrong {
            return (states, Some(format!("{wrong} of {transactions:?}")));
        }
    }
    (states, None)
}

#[test]
fn with_the_fence_there_is_one_order_for_all_regions() {
    let (states, wrong) = find(Rule::Designed);
    assert_eq!(wrong, None);
    assert!(states > 1_000_000, "{states} states");
}

#[test]
fn each_part_of_the_fence_is_needed() {
    for rule in [
        Rule::WithoutExchange,
        Rule::EndsAtLowestMark,
        Rule::RunsBehindTheEnd,
        Rule::NewPlacesInAnyOrder,
    ] {
        let (_, wrong) = find(rule);
        assert!(wrong.is_some(), "{rule:?} is as good");
    }
}
