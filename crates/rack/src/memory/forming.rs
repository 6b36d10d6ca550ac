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
//! Of replicated memory some servers may be lost, and others started anew in their places, which
//! nobody uses any more: those that are formed say what the number is.

use manxdb_fabric::{Address, Fabric, Fault, Operation, Outcome, ServerId, WORD, WORD_LENGTH};

use super::MemoryError;
use super::plan::FORMATION;
use crate::drive::Driver;

/// The word of a server, if it answers.
type Said = (u16, Result<u64, Fault>);

/// In the word of a formation that has come to its end.
const FORMED: u64 = 1 << 63;

/// Forms a database, or finds the number under which it was formed. `draw` is a number by chance.
///
/// # Errors
/// [`MemoryError`]: a server was started anew, or is of another formation.
pub(super) fn form<F: Fabric>(
    driver: &mut Driver<F>,
    servers: u16,
    draw: u64,
) -> Result<u64, MemoryError> {
    let found = look(driver, servers)?;
    let first = found.first().copied().unwrap_or(0);
    let is_empty = found.iter().all(|word| *word == 0);
    let number = match first & !FORMED {
        0 if is_empty => begin(driver, draw & !FORMED | 1)?,
        0 => return Err(MemoryError::Empty(0)),
        number => number,
    };
    if first & FORMED == 0 {
        for server in 1..servers {
            swap(driver, server, 0, FORMED | number)?;
        }
        swap(driver, 0, number, FORMED | number)?;
    }
    check(driver, servers, FORMED | number)?;
    Ok(FORMED | number)
}

/// Finds the number under which replicated memory was formed, or forms it when all servers are there
/// and were not formed yet. `None`: some are not there, and none of the others was.
///
/// # Errors
/// [`MemoryError::Mixed`]; others.
pub(super) fn form_or_find<F: Fabric>(
    driver: &mut Driver<F>,
    servers: u16,
    draw: u64,
) -> Result<Option<u64>, MemoryError> {
    let all: Vec<u16> = (0..servers).collect();
    let found = look_at(driver, &all)?;
    let words: Option<Vec<u64>> = found.iter().map(|(_, word)| word.ok()).collect();
    let is_being_formed = words.is_some_and(|words| {
        let (first, others) = words.split_first().unwrap_or((&0, &[]));
        *first & FORMED == 0 && (*first != 0 || others.iter().all(|word| *word == 0))
    });
    if is_being_formed {
        return form(driver, servers, draw).map(Some);
    }
    let formed = |(server, word): &Said| match word {
        Ok(word) if word & FORMED != 0 => Some((*server, *word)),
        _ => None,
    };
    let mut formed = found.iter().filter_map(formed);
    let Some((_, number)) = formed.next() else {
        return Ok(None);
    };
    match formed.find(|(_, other)| *other != number) {
        None => Ok(Some(number)),
        Some((server, _)) => Err(MemoryError::Mixed(server)),
    }
}

/// Looks whether all servers are of a formation.
///
/// # Errors
/// [`MemoryError`].
fn check<F: Fabric>(
    driver: &mut Driver<F>,
    servers: u16,
    formation: u64,
) -> Result<(), MemoryError> {
    let all: Vec<u16> = (0..servers).collect();
    match strange(driver, &all, formation)?.into_iter().next() {
        None => Ok(()),
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
        Ok(0) => Some((server, MemoryError::Empty(server))),
        Ok(_) => Some((server, MemoryError::Mixed(server))),
    };
    let found = look_at(driver, servers)?;
    Ok(found.into_iter().filter_map(judge).collect())
}

/// The number of this formation: ours, if nobody else was faster.
fn begin<F: Fabric>(driver: &mut Driver<F>, number: u64) -> Result<u64, MemoryError> {
    match swap(driver, 0, 0, number)? {
        0 => Ok(number),
        other => Ok(other & !FORMED),
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
    let said = |(server, outcome): (&u16, Outcome)| match outcome {
        Outcome::Failed(fault) => (*server, Err(fault)),
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
    number(outcome.unwrap_or(Outcome::Word(expected))) // a batch has as many outcomes
}

/// The word that was read or swapped.
pub(super) fn number(outcome: Outcome) -> Result<u64, MemoryError> {
    match outcome {
        Outcome::Failed(fault) => Err(fault.into()),
        Outcome::Word(word) => Ok(word),
        Outcome::Read(bytes) => {
            let word = bytes.first_chunk::<WORD_LENGTH>();
            Ok(word.map_or(0, |word| u64::from_le_bytes(*word)))
        }
        Outcome::Written => Ok(0), // no carrier answers so
    }
}
