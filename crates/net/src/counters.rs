//! What a process counts.

use std::collections::BTreeMap;

/// Counts since the process started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages sent to other processes, by label, with those sent again.
    pub sent: BTreeMap<&'static str, u64>,
    /// Bytes written to sockets.
    pub bytes_sent: u64,
    /// Messages received from other processes.
    pub received: u64,
    /// Connections opened, the first to each address.
    pub connects: u64,
    /// Connections opened again after one was lost or refused.
    pub reconnects: u64,
    /// Connections closed because of what came over them.
    pub refused: u64,
    /// Frames dropped because their receiver could not be reached, or was too slow.
    pub dropped: u64,
    /// Datagrams that came and are none of the protocol's.
    pub datagrams_refused: u64,
    /// Datagrams that the operating system did not take.
    pub datagrams_lost: u64,
    /// Messages for nodes that are not here, or from nodes nobody has heard of.
    pub unknown: u64,
}

impl Counters {
    /// All of them by name.
    #[must_use]
    pub fn named(&self) -> Vec<(String, u64)> {
        let sent = self.sent.iter();
        let mut named: Vec<_> = sent
            .map(|(label, count)| (format!("sent {label}"), *count))
            .collect();
        let others = [
            ("bytes sent", self.bytes_sent),
            ("received", self.received),
            ("connects", self.connects),
            ("reconnects", self.reconnects),
            ("connections refused", self.refused),
            ("frames dropped", self.dropped),
            ("datagrams refused", self.datagrams_refused),
            ("datagrams lost", self.datagrams_lost),
            ("nodes unknown", self.unknown),
        ];
        named.extend(others.map(|(name, count)| (name.to_owned(), count)));
        named
    }
}
