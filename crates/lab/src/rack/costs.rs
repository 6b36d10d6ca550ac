//! What machines, messages and operations cost: the paper's measurements (§2.2), as published.

use manxdb_core::Nanos;

use super::System;

/// Machines with clients,
pub const CLIENT_MACHINES: usize = 4;
/// with products,
pub const PRODUCT_MACHINES: usize = 3;
/// and the one with timestamps, or the transaction manager, behind them.
pub const MANAGER: usize = CLIENT_MACHINES + PRODUCT_MACHINES;
/// All machines.
pub const MACHINES: usize = MANAGER + 1;
/// Cores of each server, as the paper's own bound counts them (§4.1).
pub const CORES: usize = 8;
/// Cycles of a core in a microsecond.
const CYCLES_PER_MICROSECOND: u64 = 2_200;

/// What a message between two machines costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    /// From one machine to another, beside what its bytes take.
    pub one_way: Nanos,
    /// What a link carries, in each direction.
    bytes_per_second: u64,
    /// Of the sender,
    send_cycles: u64,
    /// and of the receiver.
    receive_cycles: u64,
    /// Bytes that these cycles are enough for; more cost as much again.
    window: u64,
}

impl Prices {
    /// Of a system's messages or operations.
    pub fn of(system: System) -> Self {
        match system {
            System::TradEthernet => Self {
                one_way: Nanos::from_micros(30),
                bytes_per_second: 120_000_000,
                send_cycles: 7_544,
                receive_cycles: 7_544,
                window: 1_488,
            },
            System::TradIpoib => Self {
                one_way: Nanos::from_micros(20),
                bytes_per_second: 3_500_000_000,
                send_cycles: 13_264,
                receive_cycles: 13_264,
                window: 21_888,
            },
            // Cycles of a receiver are read off a plot: about a hundred.
            System::Rsi | System::TwoSided => Self {
                one_way: Nanos::from_micros(1),
                bytes_per_second: 6_800_000_000,
                send_cycles: 450,
                receive_cycles: 100,
                window: u64::MAX,
            },
        }
    }

    /// To send a message of so many bytes.
    pub fn sending(&self, bytes: u64) -> Nanos {
        cycles(self.send_cycles * self.windows(bytes))
    }

    /// To receive one.
    pub fn receiving(&self, bytes: u64) -> Nanos {
        cycles(self.receive_cycles * self.windows(bytes))
    }

    fn windows(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.window).max(1)
    }

    /// What a link is busy with so many bytes.
    pub fn carrying(&self, bytes: u64) -> Nanos {
        Nanos((bytes * 1_000_000_000).div_ceil(self.bytes_per_second))
    }
}

fn cycles(count: u64) -> Nanos {
    Nanos((count * 1_000).div_ceil(CYCLES_PER_MICROSECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_the_published_ones() {
        let ethernet = Prices::of(System::TradEthernet);
        // 7,544 cycles at 2.2 GHz; three windows for the writes of a checkout.
        assert_eq!(ethernet.sending(64), Nanos(3_430));
        assert_eq!(ethernet.sending(3_584), Nanos(10_288));
        assert_eq!(ethernet.carrying(120), Nanos(1_000));
        let ipoib = Prices::of(System::TradIpoib);
        assert_eq!(ipoib.receiving(3_584), Nanos(6_030));
        let rdma = Prices::of(System::Rsi);
        assert_eq!(rdma.sending(1 << 20), Nanos(205));
        assert_eq!(rdma.carrying(1_024), Nanos(151));
    }
}
