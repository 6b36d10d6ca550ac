//! Which memory belongs together: a number that is drawn once for all servers of a database.
//!
//! A server that is started anew has empty memory, and nothing in its superblock says that it ever
//! had rows: were it believed, half of a database would be gone unseen. So whoever finds all servers
//! empty writes the same number to each, in two steps of which the first server keeps note:
//!
//! ```text
//! first server: 0 → FORMING(x);   others: 0 → FORMED(x);   first server: FORMING(x) → FORMED(x)
//! ```
//!
//! Whoever finds `FORMING(x)` goes on with it: nobody has rows before `FORMED(x)`.
//!
//! A server that finds its rows on disk says so, and nobody forms a database on it. When all of a
//! database do, a log archiver writes their rows into them ([`super::again`]), and says to each that it has
//! them; to the first one last, as `FORMING(x)`: then it goes on as above.
//!
//! ```text
//! others: WAITING(n) → READY(x);   first server: WAITING(n) → FORMING(x);   others: READY(x) → FORMED(x)
//! ```
//!
//! Of replicated memory some servers may be lost, and others started anew in their places, which
//! nobody uses any more: those that are formed say what the number is.

use manxdb_fabric::{
    Address, Fabric, Fault, Operation, OperationOutcome, ServerId, WORD, WORD_LENGTH,
};

use super::MemoryError;
use super::plan::FORMATION;
use crate::drive::Driver;

/// The word of a server, if it answers.
type Said = (u16, Result<u64, Fault>);

/// In the word of a formation that has come to its end.
const FORMED: u64 = 1 << 63;
/// In that of a server whose rows are on disk and not in memory yet, beside a number by chance: so
/// nobody takes one that was started anew meanwhile for the one that has its rows.
const WAITING: u64 = 1 << 62;
/// In that of one that has its rows, beside the number of the formation that is to be.
const READY: u64 = 1 << 61;
const NUMBER: u64 = READY - 1;
const _: () = assert!(
    FORMED & WAITING == 0 && WAITING & READY == 0 && (FORMED | WAITING | READY) & NUMBER == 0,
    "what a word says of a formation does not touch its number"
);

/// What a word says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Empty,
    /// The first server's only.
    Forming(u64),
    Formed(u64),
    /// It waits for its rows, or has them and waits for the others.
    Waiting,
}

impl State {
    const fn of(word: u64) -> Self {
        match word {
            0 => Self::Empty,
            word if word & FORMED != 0 => Self::Formed(word & NUMBER),
            word if word & (WAITING | READY) != 0 => Self::Waiting,
            number => Self::Forming(number),
        }
    }
}

const _: () = assert!(
    matches!(State::of(WAITING), State::Waiting)
        && matches!(State::of(WAITING | NUMBER), State::Waiting)
        && matches!(State::of(READY | NUMBER), State::Waiting),
    "a server that waits, for its rows or for the first one, is taken for no empty one"
);

/// The word of a server whose rows are on disk; `draw` is a number by chance.
pub(super) fn waiting(draw: u64) -> u64 {
    WAITING | draw & NUMBER
}

/// A formation by a number by chance.
pub(super) fn formation(draw: u64) -> u64 {
    let formation = FORMED | draw & NUMBER | 1;
    assert!(
        matches!(State::of(formation), State::Formed(number) if number != 0),
        "the number of a formation is never 0"
    );
    formation
}

/// Forms a database, or finds the number under which it was formed. `draw` is a number by chance.
///
/// # Errors
/// [`MemoryError`]: a server was started anew, or is of another formation, or all wait for their rows.
pub(super) fn form<F: Fabric>(
    driver: &mut Driver<F>,
    servers: u16,
    draw: u64,
) -> Result<u64, MemoryError> {
    let found = look(driver, servers)?;
    let states: Vec<State> = found.iter().map(|word| State::of(*word)).collect();
    let all_are = |state| states.iter().all(|found| *found == state);
    let number = match states.first() {
        Some(State::Formed(number)) => return check(driver, servers, FORMED | number),
        Some(State::Forming(number)) => *number,
        Some(State::Empty) if all_are(State::Empty) => begin(driver, formation(draw) & NUMBER)?,
        Some(State::Waiting) if all_are(State::Waiting) => return Err(MemoryError::Waiting),
        _ => return Err(MemoryError::Empty(0)),
    };
    for server in 1..servers {
        for before in [0, READY | number] {
            swap(driver, server, before, FORMED | number)?;
        }
    }
    swap(driver, 0, number, FORMED | number)?;
    check(driver, servers, FORMED | number)
}

/// Finds the number under which replicated memory was formed, or forms it when all servers are there
/// and were not formed yet. `None`: some are not there, and none of the others was.
///
/// # Errors
/// [`MemoryError::Mixed`]; [`MemoryError::Waiting`]; others.
pub(super) fn form_or_find<F: Fabric>(
    driver: &mut Driver<F>,
    servers: u16,
    draw: u64,
) -> Result<Option<u64>, MemoryError> {
    let all: Vec<u16> = (0..servers).collect();
    let found = look_at(driver, &all)?;
    let formed = |(server, word): &Said| match word {
        Ok(word) if word & FORMED != 0 => Some((*server, *word)),
        _ => None,
    };
    let mut formed = found.iter().filter_map(formed);
    let first = found.first().map(|(_, word)| word.map(State::of));
    if let (Some((_, number)), false) =
        (formed.next(), matches!(first, Some(Ok(State::Forming(_)))))
    {
        return match formed.find(|(_, other)| *other != number) {
            None => Ok(Some(number)),
            Some((server, _)) => Err(MemoryError::Mixed(server)),
        };
    }
    let is_there = found.iter().all(|(_, word)| word.is_ok());
    is_there.then(|| form(driver, servers, draw)).transpose()
}

/// The words of all servers, if all of them wait for their rows.
///
/// # Errors
/// [`MemoryError`].
pub(super) fn waiting_ones<F: Fabric>(
    driver: &mut Driver<F>,
    servers: u16,
) -> Result<Option<Vec<u64>>, MemoryError> {
    let found = look(driver, servers)?;
    let is_waiting = |word: &u64| State::of(*word) == State::Waiting;
    Ok(found.iter().all(is_waiting).then_some(found))
}

/// Says that all servers, which said this when they waited, have their rows: from now on whoever comes
/// forms the database. When it is not heard to its end all of them still wait, or it was done.
///
/// # Errors
/// [`MemoryError::Waiting`]: one of them is another one by now.
pub(super) fn are_ready<F: Fabric>(
    driver: &mut Driver<F>,
    words: &[u64],
    formation: u64,
) -> Result<(), MemoryError> {
    assert!(!words.is_empty(), "a database has a first server");
    let number = formation & NUMBER;
    assert!(
        number != 0 && State::of(number) == State::Forming(number),
        "the number of a formation is one: {formation:#x}"
    );
    assert!(
        words.iter().all(|word| State::of(*word) == State::Waiting),
        "only servers that wait for their rows are told that they have them"
    );
    let all = (0..).zip(words);
    // The first one last: its word says that all have theirs.
    for (server, before) in all.clone().skip(1).chain(all.take(1)) {
        let new = if server == 0 { number } else { READY | number };
        if swap(driver, server, *before, new)? != *before {
            return Err(MemoryError::Waiting);
        }
    }
    Ok(())
}

/// Looks whether all servers are of a formation; that one.
///
/// # Errors
/// [`MemoryError`].
fn check<F: Fabric>(
    driver: &mut Driver<F>,
    servers: u16,
    formation: u64,
) -> Result<u64, MemoryError> {
    let all: Vec<u16> = (0..servers).collect();
    match strange(driver, &all, formation)?.into_iter().next() {
        None => Ok(formation),
        Some((_, error)) => Err(error),
    }
}

/// Which of these servers answer, and are not of a formation; and what they are.
///
/// # Errors
/// [`MemoryError::Misuse`].
pub(super) fn strange<F: Fabric>(
    driver: &mut Driver<F>,
    servers: &[u16],
    formation: u64,
) -> Result<Vec<(u16, MemoryError)>, MemoryError> {
    let judge = |(server, word)| match word {
        Err(_) => None,
        Ok(word) if word == formation => None,
        Ok(word) if matches!(State::of(word), State::Empty | State::Waiting) => {
            Some((server, MemoryError::Empty(server)))
        }
        Ok(_) => Some((server, MemoryError::Mixed(server))),
    };
    let found = look_at(driver, servers)?;
    Ok(found.into_iter().filter_map(judge).collect())
}

/// Which of these servers do not answer, or are not of a formation.
///
/// # Errors
/// [`MemoryError::Misuse`].
pub(super) fn not_of<F: Fabric>(
    driver: &mut Driver<F>,
    servers: &[u16],
    formation: u64,
) -> Result<Vec<u16>, MemoryError> {
    let found = look_at(driver, servers)?;
    let other = |(server, word): Said| (word != Ok(formation)).then_some(server);
    Ok(found.into_iter().filter_map(other).collect())
}

/// Whether a server, whose words its own processor reads, waits for its rows from disk.
pub fn waits_for_rows(word: &dyn Fn(u64) -> u64) -> bool {
    State::of(word(FORMATION)) == State::Waiting
}

/// The number of this formation: ours, if nobody else was faster.
fn begin<F: Fabric>(driver: &mut Driver<F>, number: u64) -> Result<u64, MemoryError> {
    match swap(driver, 0, 0, number)? {
        0 => Ok(number),
        other => Ok(other & NUMBER),
    }
}

fn word(server: u16) -> Address {
    Address {
        server: ServerId(server),
        offset: FORMATION,
    }
}

fn look<F: Fabric>(driver: &mut Driver<F>, servers: u16) -> Result<Vec<u64>, MemoryError> {
    let all: Vec<u16> = (0..servers).collect();
    let words = look_at(driver, &all)?.into_iter();
    words.map(|(_, word)| Ok(word?)).collect()
}

/// What servers say, each by itself.
fn look_at<F: Fabric>(driver: &mut Driver<F>, servers: &[u16]) -> Result<Vec<Said>, MemoryError> {
    let read = |server: &u16| Operation::Read {
        at: word(*server),
        bytes: WORD,
    };
    let outcomes = driver.ask(servers.iter().map(read).collect())?;
    assert_eq!(
        outcomes.len(),
        servers.len(),
        "a server that was not heard would pass for one of this formation"
    );
    let said = |(server, outcome): (&u16, OperationOutcome)| match outcome {
        OperationOutcome::Failed(fault) => (*server, Err(fault)),
        outcome => (*server, Ok(number(outcome).unwrap_or(0))), // it has not failed
    };
    Ok(servers.iter().zip(outcomes).map(said).collect())
}

fn swap<F: Fabric>(
    driver: &mut Driver<F>,
    server: u16,
    expected: u64,
    new: u64,
) -> Result<u64, MemoryError> {
    let at = word(server);
    let outcomes = driver.ask(vec![Operation::CompareSwap { at, expected, new }])?;
    let outcome = outcomes.into_iter().next();
    assert!(
        matches!(
            outcome,
            Some(OperationOutcome::Word(_) | OperationOutcome::Failed(_))
        ),
        "a swap that did not come has not found what it expected: {outcome:?}"
    );
    number(outcome.unwrap_or(OperationOutcome::Word(!expected)))
}

/// The word that was read or swapped.
pub(super) fn number(outcome: OperationOutcome) -> Result<u64, MemoryError> {
    match outcome {
        OperationOutcome::Failed(fault) => Err(fault.into()),
        OperationOutcome::Word(word) => Ok(word),
        OperationOutcome::Read(bytes) => {
            assert_eq!(bytes.len(), WORD_LENGTH, "a word is read as one");
            let word = bytes.first_chunk::<WORD_LENGTH>();
            Ok(word.map_or(0, |word| u64::from_le_bytes(*word)))
        }
        other @ OperationOutcome::Written => {
            assert_ne!(
                other,
                OperationOutcome::Written,
                "a word is not answered as a write"
            );
            Ok(0)
        }
    }
}
