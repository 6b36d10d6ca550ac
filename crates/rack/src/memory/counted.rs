//! What a server's memory says when its own processor looks at it, for metrics.

use manxdb_fabric::WORD;
use manxdb_rsi::{Seat, Stamp, ThreadId};

use super::geometry::{Geometry, NEXT, TERMS};

/// Numbers of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Bytes that are given away or taken by tables and logs.
    pub given: u64,
    /// Transactions that the logs here are about: of each place the number of the last one.
    pub logged: u64,
    /// Places that are somebody's; of the first server, as what follows.
    pub taken: u64,
    /// Places whose owners are to be recovered.
    pub over: u64,
    /// Wardens that have led.
    pub term: u64,
}

impl Counted {
    /// Looks at a server's memory, word by word.
    #[must_use]
    pub fn of(geometry: Geometry, server: u16, word: &dyn Fn(u64) -> u64) -> Self {
        let mut counted = Self {
            given: word(NEXT).max(geometry.rooms()),
            ..Self::default()
        };
        let threads = (0..geometry.places).filter_map(ThreadId::new);
        for thread in threads {
            if geometry.has_log(server, thread) {
                // A length, then the entry's version: its thread, and its number.
                let label = word(geometry.log_at(thread) + WORD);
                counted.logged += label & Stamp::SEQUENCE_MAX;
            }
            if server == 0 {
                match Seat::of_word(word(geometry.seats().seat(thread).offset)) {
                    Seat::Kept(_) | Seat::Taken(_) => counted.taken += 1,
                    Seat::Over(_) => counted.over += 1,
                    Seat::Free(_) => {}
                }
            }
        }
        if server == 0 {
            counted.term = word(TERMS);
        }
        counted
    }
}
