//! How much time the kernel spends in the program at an interface.

use std::os::fd::OwnedFd;

use aya::programs::loaded_programs;
use aya::sys::{Stats, enable_stats};

use super::XdpCarrier;
use crate::error::CarrierError;

/// Runs of a program, and the time that they took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProgramTime {
    /// Packets that it has looked at.
    pub runs: u64,
    /// Nanoseconds of some processor's time.
    pub nanos: u64,
}

/// Has the kernel measure all BPF programs as long as it is there, which costs each run some 40 ns.
pub struct ProgramClock {
    program: u32,
    _stats: OwnedFd,
}

impl XdpCarrier {
    /// Measures the program at this witness's interface, with those of all its witnesses.
    ///
    /// # Errors
    /// The kernel's.
    pub fn clock(&self) -> Result<ProgramClock, CarrierError> {
        let stats = enable_stats(Stats::RunTime);
        Ok(ProgramClock {
            program: self.kernel.dispatch,
            _stats: stats.map_err(CarrierError::refused("measure programs"))?,
        })
    }
}

impl ProgramClock {
    /// What it has seen since the program was loaded; of runs before the clock was there, nothing.
    ///
    /// # Errors
    /// The kernel's, or the program is gone.
    pub fn read(&self) -> Result<ProgramTime, CarrierError> {
        let mut programs = loaded_programs().filter_map(Result::ok);
        let Some(found) = programs.find(|program| program.id() == self.program) else {
            return Err(CarrierError::Refused {
                what: "measure programs",
                why: format!("program {} is gone", self.program),
            });
        };
        let nanos = u64::try_from(found.run_time().as_nanos()).unwrap_or(u64::MAX);
        let runs = found.run_count();
        assert!(runs > 0 || nanos == 0, "time is of runs");
        Ok(ProgramTime { runs, nanos })
    }
}
