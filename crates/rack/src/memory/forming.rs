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

use manxdb_fabric::{Address, Fabric, Operation, Outcome, ServerId, WORD, WORD_LENGTH};

use super::MemoryError;
use super::geometry::FORMATION;
use crate::drive::Driver;

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

/// Looks whether all servers are of a formation.
///
/// # Errors
/// [`MemoryError`].
pub(super) fn check<F: Fabric>(
    driver: &mut Driver<F>,
    servers: u16,
    formation: u64,
) -> Result<(), MemoryError> {
    let found = look(driver, servers)?;
    let mut found = (0..).zip(found);
    match found.find(|(_, word)| *word != formation) {
        None => Ok(()),
        Some((server, 0)) => Err(MemoryError::Empty(server)),
        Some((server, _)) => Err(MemoryError::Mixed(server)),
    }
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
    let read = |server| Operation::Read {
        at: word(server),
        bytes: WORD,
    };
    let outcomes = driver.ask((0..servers).map(read).collect())?;
    outcomes.into_iter().map(number).collect()
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
