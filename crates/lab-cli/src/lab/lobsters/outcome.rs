//! What is kept of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::system::System;
use super::trial::PAGES_AT_ONE;

/// The pages of the published figures, in their order.
pub const PAGES: [&str; 9] = [
    "Story",
    "Frontpage",
    "User",
    "Comments",
    "Recent",
    "CommentVote",
    "StoryVote",
    "Comment",
    "Submit",
];

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Pages that were meant to arrive each second.
    pub rate: f64,
    /// System by system, in the order of the trial.
    pub sites: Vec<Site>,
}

impl Outcome {
    /// The rate as a request scale.
    pub fn request_scale(&self) -> f64 {
        self.rate / PAGES_AT_ONE
    }

    /// What came of a system, if it ran.
    pub fn site(&self, system: System) -> Option<&Ran> {
        let mut of = self.sites.iter().filter(|site| site.system == system);
        of.next()?.ran.as_ref()
    }
}

/// What came of a system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// Which.
    pub system: System,
    /// Why it did not run, if it did not: what is missing on this machine, and the package that has it.
    pub missing: Option<String>,
    /// What came of it.
    pub ran: Option<Ran>,
}

/// What came of a system that ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    /// As the server names itself.
    pub version: String,
    /// Whether its pages showed notifications.
    pub notifications: bool,
    /// How long it took to make and fill its tables.
    pub fill_seconds: f64,
    /// Pages a second on eight connections that are never idle, and the server's CPU for each; if
    /// that was measured.
    pub flat_out: Option<FlatOut>,
    /// The most pages a second that it keeps up with, if that was looked for.
    pub keeps_up: Option<f64>,
    /// Pages that arrived while it was measured: all of them were served.
    pub served: u64,
    /// How long they arrived.
    pub seconds: f64,
    /// How much longer it took until the last of them was served.
    pub late_seconds: f64,
    /// CPU of the server for a page.
    pub cpu_us: f64,
    /// CPU of the client for a page.
    pub client_cpu_us: f64,
    /// By kind of page: from its arrival to its last row.
    pub pages: BTreeMap<String, Spread>,
    /// The statement that counts notifications: from sending to the last row.
    pub notification: Option<Spread>,
    /// Memory.
    pub memory: Memory,
}

impl Ran {
    /// Of pages that arrived, the share that was served as they arrived.
    pub fn kept(&self) -> f64 {
        let whole = self.seconds + self.late_seconds;
        self.seconds / whole.max(f64::MIN_POSITIVE)
    }
}

/// What a system does when it is never idle.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FlatOut {
    /// Pages a second.
    pub rate: f64,
    /// CPU of the server for each.
    pub cpu_us: f64,
}

/// Times of one kind, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Half of them do not exceed it.
    pub p50: f64,
    /// Nor 95 of a hundred this.
    pub p95: f64,
    /// Nor 99 of a hundred this.
    pub p99: f64,
}

/// Memory and disk of a server, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Resident before it has tables.
    pub empty: u64,
    /// Resident when they are filled.
    pub filled: u64,
    /// Resident when pages were served.
    pub loaded: u64,
    /// Of files in its data directory, when they are filled.
    pub disk: u64,
    /// Of tables and indexes, as the server says at the end.
    pub tables: u64,
    /// What a cache of all answers would hold, where that was added up;
    pub answers: u64,
    /// and what one of those answers that join, group or sort.
    pub answers_of_work: u64,
}
