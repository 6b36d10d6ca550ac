//! What clients saw, judged by the checker of linearizability.

use std::collections::HashSet;

use manxdb_checker::linear::check;

use super::numbered::Numbered;
use super::{OPERATIONS_MAX, Program};
use crate::common::machine::{Answer, Call, Command, OneKey, operations};

const STEPS_MAX: u64 = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct History {
    pub asked: [u8; 2],
    /// Numbers of answers, of each client in its order.
    pub answers: [[Option<u32>; OPERATIONS_MAX]; 2],
    /// How many answers the other client had when an operation was asked for.
    pub before: [[u8; OPERATIONS_MAX]; 2],
    /// The number of what the master has, once that stays.
    pub values: Option<u32>,
}

/// Remembers which histories of a program are linearizable.
#[derive(Default)]
pub struct Judge {
    good: HashSet<History>,
}

impl Judge {
    pub fn wrong(
        &mut self,
        history: History,
        program: &Program,
        answers: &Numbered<Answer>,
    ) -> Option<String> {
        if self.good.contains(&history) {
            return None;
        }
        let calls = calls(&history, program, answers);
        let named = calls.iter().enumerate();
        let all: Vec<_> = named
            .flat_map(|(name, call)| operations(name as u64, call))
            .collect();
        let verdict = check(&OneKey, &all, STEPS_MAX);
        if verdict.is_linearizable() {
            self.good.insert(history);
            return None;
        }
        Some(format!("{verdict}\n{calls:#?}"))
    }
}

/// The calls of a history on one clock, and a read of each key at its end when that is known.
fn calls(history: &History, program: &Program, answers: &Numbered<Answer>) -> Vec<Call> {
    let mut calls: [Vec<Call>; 2] = [Vec::new(), Vec::new()];
    let mut answered = [0; 2];
    let mut now = 0;
    loop {
        let asks = |client: usize, calls: &[Vec<Call>; 2], answered: &[usize; 2]| {
            let next = calls[client].len();
            next < usize::from(history.asked[client])
                && next == answered[client]
                && usize::from(history.before[client][next]) == answered[1 - client]
        };
        now += 1;
        if let Some(client) = [0, 1].into_iter().find(|one| asks(*one, &calls, &answered)) {
            let command = program.commands(client)[calls[client].len()].clone();
            calls[client].push(Call {
                client: u32::try_from(client).unwrap(),
                command,
                invoked: now,
                answered: None,
            });
            continue;
        }
        // An answer, before which all was asked that was asked before it.
        let mut clients = [0, 1].into_iter().filter(|client| {
            let place = answered[*client];
            place < calls[*client].len() && history.answers[*client][place].is_some()
        });
        let waits = |client: usize| {
            let other = 1 - client;
            let next = calls[other].len();
            let is_asked = next < usize::from(history.asked[other]);
            is_asked && usize::from(history.before[other][next]) <= answered[client]
        };
        let Some(client) = clients.find(|client| !waits(*client)) else {
            break;
        };
        let place = answered[client];
        let answer = history.answers[client][place].unwrap();
        let answer = answers.get(answer).clone();
        calls[client][place].answered = Some((now, answer));
        answered[client] += 1;
    }
    assert_eq!(
        answered,
        history.answers.map(|told| told.iter().flatten().count()),
        "a history has an order: {history:?}"
    );
    let mut all = calls.concat();
    if let Some(values) = history.values {
        for (key, value) in answers.get(values) {
            all.push(Call {
                client: 2,
                command: Command::Get(*key),
                invoked: now + 1,
                answered: Some((now + 2, vec![(*key, value.clone())])),
            });
        }
    }
    all
}
