//! Waiting for what another processor does.

use std::hint;
use std::thread;

/// Turns of waiting before the processor is given to others.
const SPINS: u32 = 64;

/// One turn of waiting for others: at first on the processor, then off it. `turns` counts them.
pub fn turn(turns: &mut u32) {
    *turns = turns.saturating_add(1);
    if *turns < SPINS {
        hint::spin_loop();
    } else {
        thread::yield_now();
    }
}
