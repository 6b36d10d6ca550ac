//! Waiting by looking again and again, on processors that others may want too.

use std::thread;
use std::time::{Duration, Instant};

/// Who gets the processor back so late has had to share it.
const LATE: Duration = Duration::from_millis(1);
/// Naps before it is tried again without, and how long one is.
const NAPS: u32 = 256;
const NAP: Duration = Duration::from_micros(50);

/// Gives way to others between two looks. With a processor for itself that takes next to nothing. Where
/// threads want processors that have work for all of their time, one who is always ready waits for its
/// whole turn each time, and one who naps is woken in between: so it naps.
#[derive(Debug, Default)]
pub struct Waiting {
    naps: u32,
}

impl Waiting {
    /// Lets others have the processor, for a moment.
    pub fn give_way(&mut self) {
        if self.naps > 0 {
            assert!(self.naps <= NAPS, "naps are counted down");
            self.naps -= 1;
            return thread::sleep(NAP);
        }
        let began = Instant::now();
        thread::yield_now();
        if began.elapsed() > LATE {
            self.naps = NAPS;
        }
    }
}
