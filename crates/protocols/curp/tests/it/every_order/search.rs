//! The search over all states, and what is looked at in each.

use std::collections::HashSet;

use manxdb_curp::Completion;

use super::OPERATIONS_MAX;
use super::history::History;
use super::past::{CLIENTS, FIRST, NODES, PastId, SECOND};
use super::steps::{Explorer, Stage, State};

/// What was seen on the way.
#[derive(Debug, Default, Clone, Copy)]
pub struct Seen {
    pub states: usize,
    /// States in which all was answered.
    pub complete: usize,
    /// States in which a second master serves, and has replayed records.
    pub replayed: usize,
    /// Operations of complete states by what completed them.
    pub fast: usize,
    pub synced: usize,
}

impl Seen {
    pub fn add(&mut self, other: Self) {
        self.states += other.states;
        self.complete += other.complete;
        self.replayed += other.replayed;
        self.fast += other.fast;
        self.synced += other.synced;
    }
}

impl Explorer<'_> {
    /// What is wrong with a state.
    pub fn wrong(&mut self, state: &State) -> Option<String> {
        for past in state.at {
            if let Some(wrong) = &self.nodes.past(past).wrong {
                return Some(wrong.clone());
            }
        }
        let clients = CLIENTS.map(|client| self.nodes.past(state.at[client]));
        let mut answers = [[None; OPERATIONS_MAX]; 2];
        for (told, past) in answers.iter_mut().zip(clients) {
            for (place, (answer, _)) in told.iter_mut().zip(&past.answers) {
                *place = Some(*answer);
            }
        }
        let master = match state.stage {
            Stage::Over(SECOND) => Some(SECOND),
            Stage::WithoutMaster => None,
            // It may be lost, unless all of it was answered.
            _ => Some(FIRST).filter(|_| self.is_complete(state)),
        };
        let history = History {
            asked: clients.map(|past| past.asked),
            answers,
            before: state.before,
            values: master.and_then(|master| self.nodes.past(state.at[master]).served),
        };
        let (program, answers) = (self.program, &self.nodes.answers);
        self.judge.wrong(history, program, answers)
    }

    fn is_complete(&self, state: &State) -> bool {
        let answered = CLIENTS.map(|client| self.nodes.past(state.at[client]).answers.len());
        answered == self.commands.each_ref().map(Vec::len)
    }

    fn count(&self, state: &State, seen: &mut Seen) {
        seen.states += 1;
        seen.replayed += usize::from(self.nodes.past(state.at[SECOND]).replayed > 0);
        if self.is_complete(state) {
            seen.complete += 1;
            for client in CLIENTS {
                let completed = self.nodes.past(state.at[client]).answers.iter();
                for (_, how) in completed {
                    seen.fast += usize::from(*how == Completion::Fast);
                    seen.synced += usize::from(*how != Completion::Fast);
                }
            }
        }
    }

    /// All states that can be reached, and what is wrong with the first with which something is.
    pub fn explore(&mut self) -> (Seen, Option<String>) {
        let mut seen = Seen::default();
        let beginning = State {
            at: [0, 1, 2, 3, 4, 5, 6],
            stage: Stage::InUse,
            before: [[0; OPERATIONS_MAX]; 2],
            waits: [0; 2],
        };
        let mut beginnings = Vec::new();
        self.settle(beginning, &mut beginnings);
        let mut known: HashSet<State> = beginnings.iter().copied().collect();
        let mut open: Vec<(State, Option<usize>)> =
            beginnings.into_iter().map(|state| (state, None)).collect();
        let mut next = 0;
        while let Some((state, _)) = open.get(next).copied() {
            self.count(&state, &mut seen);
            let wrong = self.wrong(&state);
            let steps = self.steps(&state);
            if let Some(wrong) = wrong.or(self.wrong_at_opening.take()) {
                let way = self.way(&open, next);
                return (seen, Some(format!("{wrong}\n{way}")));
            }
            for step in steps {
                if known.insert(step) {
                    open.push((step, Some(next)));
                }
            }
            next += 1;
        }
        (seen, None)
    }

    /// The steps to a state.
    fn way(&self, open: &[(State, Option<usize>)], to: usize) -> String {
        let mut told: Vec<String> = Vec::new();
        let mut at = Some(to);
        while let Some(place) = at {
            let (state, parent) = &open[place];
            let earlier = parent.map(|parent| open[parent].0.at);
            for node in (0..NODES).rev() {
                let from = earlier.map_or(PastId::try_from(node).unwrap(), |at| at[node]);
                told.extend(self.nodes.tell(from, state.at[node]).into_iter().rev());
            }
            at = *parent;
        }
        told.reverse();
        told.join("\n")
    }
}
