//! What a node of DAST has measured, as it tells others: one note of its status, in JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::latencies::Latencies;

/// The note's name.
pub const MEASURED: &str = "measured";

/// A wait that is none of the core's: at the node that answers a call there is nothing to wait for. The
/// call is on its way between nodes, or another node works on it or has it wait.
pub const ELSEWHERE: &str = "elsewhere";

/// Whether a transaction stays in the region of the replica that answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Class {
    /// It does.
    #[serde(rename = "local")]
    Local,
    /// It touches others, or another one.
    #[serde(rename = "cross-region")]
    CrossRegion,
}

impl Class {
    /// Both.
    pub const ALL: [Class; 2] = [Class::Local, Class::CrossRegion];

    /// As metrics and pages name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::CrossRegion => "cross-region",
        }
    }
}

/// Microseconds by reason of [`manxdb_dast::waits`], or [`ELSEWHERE`].
pub type Waits = BTreeMap<String, u64>;

/// What a node has measured since its process began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Where its admin listener is, with the scheme; none: it has none.
    pub admin: Option<String>,
    /// How long the last minute is: less at the start.
    pub minute_ms: u64,
    /// If it is a replica.
    pub replica: Option<OfReplica>,
    /// If it is a manager.
    pub manager: Option<OfManager>,
}

/// What a replica has measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfReplica {
    /// Calls that it answers, local ones.
    pub local: OfClass,
    /// Calls that it answers, cross-region ones.
    pub cross_region: OfClass,
    /// How far its clock was held back, in microseconds: now, and at most in the last minute.
    pub stretch_micros: u64,
    /// As above.
    pub stretch_max_micros: u64,
    /// The slowest calls of the last ten minutes, the slowest first.
    pub slowest: Vec<SlowCall>,
}

impl OfReplica {
    /// Its calls of a class.
    #[must_use]
    pub fn of(&self, class: Class) -> &OfClass {
        match class {
            Class::Local => &self.local,
            Class::CrossRegion => &self.cross_region,
        }
    }
}

/// Calls of a class, from their arrival at the replica that answers them to the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfClass {
    /// Those answered.
    pub answered: Latencies,
    /// Those of the last minute.
    pub minute: Latencies,
    /// What calls waited for.
    pub waits: Waits,
    /// In the last minute.
    pub minute_waits: Waits,
    /// Calls that are not answered yet.
    pub open: u64,
    /// Calls that ended here without an answer from here: given up, or their replica was put out.
    pub given_up: u64,
}

impl OfClass {
    /// Adds what another replica has measured.
    pub fn merge(&mut self, other: &Self) {
        self.answered.merge(&other.answered);
        self.minute.merge(&other.minute);
        merge_waits(&mut self.waits, &other.waits);
        merge_waits(&mut self.minute_waits, &other.minute_waits);
        self.open = self.open.saturating_add(other.open);
        self.given_up = self.given_up.saturating_add(other.given_up);
    }
}

/// Adds times by reason.
pub fn merge_waits(to: &mut Waits, from: &Waits) {
    for (reason, micros) in from {
        let all = to.entry(reason.clone()).or_default();
        *all = all.saturating_add(*micros);
    }
}

/// A call that took long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowCall {
    /// Client and number.
    pub call: String,
    /// The procedure.
    pub procedure: String,
    /// Its class.
    pub class: Class,
    /// How long it took.
    pub micros: u64,
    /// How long ago it was answered.
    pub ago_ms: u64,
    /// What it waited for.
    pub waits: Waits,
}

/// What a manager has measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfManager {
    /// How often its region's leader was replaced.
    pub view: u64,
    /// What it knows while it leads.
    pub leading: Option<OfLeader>,
    /// How long transactions waited for the managers to agree, in microseconds: in all, and in the last
    /// minute.
    pub ledger_micros: u64,
    /// As above.
    pub minute_ledger_micros: u64,
}

/// What the leader of a region knows of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfLeader {
    /// Counts changes of who takes part.
    pub epoch: u64,
    /// Who takes part.
    pub live: Vec<u32>,
    /// Who is out, and what it stamped is being collected.
    pub closing: Vec<u32>,
    /// Who is being let in.
    pub joining: Option<u32>,
    /// By how much the bound is ahead of the region's time, in microseconds.
    pub bound_micros: Option<i64>,
    /// The region that is fenced, as the leader knows: it may be its own.
    pub fenced: Option<u32>,
    /// How the region and each other one are ordered ahead.
    pub pairs: Vec<OfPair>,
}

/// How a region and another one are ordered ahead, in microseconds; see [`manxdb_dast::manager::Pair`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfPair {
    /// The other region.
    pub region: u32,
    /// How far ahead marks are told.
    pub lead: i64,
    /// By how much the last one told is ahead.
    pub told: Option<i64>,
    /// By how much the last one heard is ahead.
    pub heard: Option<i64>,
    /// What parts of the other region's stream take.
    pub delay: Option<i64>,
    /// For how long the other region has been silent.
    pub silent: u64,
}

impl Measured {
    /// What the leader of a region knows, if it is one.
    #[must_use]
    pub fn leading(&self) -> Option<&OfLeader> {
        self.manager.as_ref()?.leading.as_ref()
    }

    /// As a note.
    #[must_use]
    pub fn to_note(&self) -> (String, String) {
        // Maps whose keys are text and numbers can be written.
        let text = serde_json::to_string(self).unwrap_or_default();
        assert!(!text.is_empty(), "what was measured can be written");
        (MEASURED.to_owned(), text)
    }

    /// From a note; what cannot be read was not measured: the node may be of another release.
    #[must_use]
    pub fn of_note(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood() {
        let mut measured = Measured {
            admin: Some("http://127.0.0.1:1".to_owned()),
            replica: Some(OfReplica::default()),
            ..Measured::default()
        };
        let replica = measured.replica.as_mut().unwrap();
        replica.local.answered.add(12_345);
        replica.local.waits.insert("ordering gate".to_owned(), 7);
        let (name, text) = measured.to_note();
        assert_eq!(
            (name.as_str(), Measured::of_note(&text)),
            (MEASURED, measured)
        );
        assert_eq!(Measured::of_note("{"), Measured::default());
    }
}
