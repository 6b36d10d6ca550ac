//! Servers that commit transfers between accounts, and what must be true of them.
//!
//! Each server is a process of two nodes, a CURP server and the client of its own commits, with the
//! real commit path over an engine in memory. Sessions transfer money wherever a server takes itself for
//! the primary. Every transfer leaves a marker that says what it did, so that the balances of any state
//! can be computed from its markers.

use std::collections::{BTreeMap, BTreeSet};

use manxdb_core::{Nanos, NodeId, RequestId};
use manxdb_curp::ClientAnswer;
use manxdb_curp_sql::primary::CommitCounts;
use manxdb_sim::{Driver, Outside, SimTime};
use manxdb_storage::Version;
use manxdb_txn::{CommitPath as _, TxnError};

use crate::process::{Process, account, intent, marker, ready};
use crate::setting::{Cluster, Ran, Setting};

/// What every account begins with.
const BALANCE: i64 = 100;
/// How often servers are looked at, as the loop of a process does in each round.
const LOOK_EVERY: Nanos = Nanos::from_micros(250);
const LOOK: u64 = u64::MAX;

pub struct Bank {
    setting: Setting,
    pub processes: Vec<Process>,
    next: u64,
    reigns: u64,
    /// Transfers whose sessions were told that they are done.
    acknowledged: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    unknown: BTreeSet<u64>,
    /// Transfers that some read has shown.
    seen: BTreeSet<u64>,
    earlier: CommitCounts,
    wrong: Option<String>,
    is_judged: bool,
}

impl Bank {
    pub fn new(setting: Setting) -> Self {
        let servers = 1..=setting.options().servers;
        Self {
            setting,
            processes: servers
                .map(|server| Process::new(&setting, server))
                .collect(),
            next: 1,
            reigns: 0,
            acknowledged: BTreeSet::new(),
            refused: BTreeSet::new(),
            unknown: BTreeSet::new(),
            seen: BTreeSet::new(),
            earlier: CommitCounts::default(),
            wrong: None,
            is_judged: false,
        }
    }

    pub fn is_judged(&self) -> bool {
        self.is_judged
    }

    pub fn wrong(&self) -> Option<String> {
        self.wrong.clone()
    }

    pub fn ran(&self, digest: u64) -> Ran {
        Ran {
            digest,
            acknowledged: self.acknowledged.len(),
            unknown: self.unknown.len(),
            reigns: self.reigns,
            counts: self.counts(),
        }
    }

    fn counts(&self) -> CommitCounts {
        let mut sum = self.earlier;
        for process in &self.processes {
            add(&mut sum, process.primary.counts());
        }
        sum
    }

    fn round(&mut self, outside: &mut Outside<'_, Cluster>) {
        for index in 0..self.processes.len() {
            let process = &mut self.processes[index];
            if process.look(outside, self.setting.defect) {
                self.reigns += 1;
                self.open_accounts(outside, index);
            }
            self.end_groups(index);
        }
    }

    /// The first primary of all gives every account its money.
    fn open_accounts(&mut self, outside: &mut Outside<'_, Cluster>, index: usize) {
        let process = &mut self.processes[index];
        let Some(reign) = &mut process.reign else {
            return;
        };
        let at = reign.path.visible();
        if reign.balance(at, 0).is_some() {
            return;
        }
        let all = 0..self.setting.accounts;
        let writes = all.map(|number| (account(number), BALANCE.to_string().into_bytes()));
        let opening = intent(0, vec![(account(0), at)], writes.collect());
        reign.stage(0, vec![opening]);
        process.hand_over(outside);
    }

    fn end_groups(&mut self, index: usize) {
        let process = &mut self.processes[index];
        let Some(reign) = &mut process.reign else {
            return;
        };
        for (id, verdict) in reign.finish() {
            match verdict {
                _ if id == 0 => {}
                Ok(_) => {
                    self.acknowledged.insert(id);
                }
                Err(TxnError::Conflict { .. }) => {
                    self.refused.insert(id);
                }
                Err(_) => {
                    self.unknown.insert(id);
                }
            }
        }
        if reign.commits.is_lost() && reign.groups.is_empty() {
            process.reign = None;
        }
    }

    /// Looks at a whole state, and says what is wrong with it.
    fn look_at_state(&mut self, index: usize) -> Result<Option<Version>, String> {
        let Some(reign) = &self.processes[index].reign else {
            return Ok(None);
        };
        let Ok(snapshot) = ready(reign.path.snapshot()) else {
            return Ok(None);
        };
        let at = snapshot.version;
        let markers = reign.markers(at);
        let mut balances = BTreeMap::new();
        for number in 0..self.setting.accounts {
            let Some(balance) = reign.balance(at, number) else {
                return Ok(None); // not opened yet
            };
            balances.insert(number, balance);
        }
        let mut expected: BTreeMap<u64, i64> = (0..self.setting.accounts)
            .map(|number| (number, BALANCE))
            .collect();
        for (from, to, amount) in markers.values() {
            *expected.entry(*from).or_default() -= amount;
            *expected.entry(*to).or_default() += amount;
        }
        if balances != expected {
            return Err(format!(
                "at {at:?} the balances are not those of the transfers"
            ));
        }
        let sum: i64 = balances.values().sum();
        if sum != BALANCE * i64::try_from(self.setting.accounts).unwrap() {
            return Err(format!("at {at:?} the sum of all accounts is {sum}"));
        }
        for id in &self.acknowledged {
            if !markers.contains_key(id) {
                return Err(format!(
                    "transfer {id} was acknowledged and is not there at {at:?}"
                ));
            }
        }
        for id in &self.seen {
            if !markers.contains_key(id) {
                return Err(format!("transfer {id} was seen and is not there at {at:?}"));
            }
        }
        if let Some(id) = markers.keys().find(|id| self.refused.contains(id)) {
            return Err(format!("transfer {id} was refused and is there"));
        }
        self.seen.extend(markers.keys());
        Ok(Some(at))
    }

    fn set_clocks(&self, now: SimTime) {
        for reign in self
            .processes
            .iter()
            .filter_map(|process| process.reign.as_ref())
        {
            reign.set_clock(now);
        }
    }

    /// One session does a transfer where it finds a primary.
    fn transfer(&mut self, outside: &mut Outside<'_, Cluster>) {
        let defect = self.setting.defect;
        self.set_clocks(outside.now());
        let reigning = self.processes.iter().enumerate().filter(|(_, process)| {
            let is_up = outside.is_up(process.server) && outside.is_up(process.client);
            let reads = process
                .reign
                .as_ref()
                .is_some_and(|reign| reign.may_read(defect));
            is_up && reads
        });
        let reigning: Vec<usize> = reigning.map(|(index, _)| index).collect();
        if reigning.is_empty() {
            return;
        }
        let mut below = |bound: u64| outside.random().below(bound);
        let index = reigning[usize::try_from(below(reigning.len() as u64)).unwrap()];
        let accounts = self.setting.accounts;
        let (from, to) = (below(accounts), below(accounts));
        let (amount, kind) = (i64::try_from(1 + below(9)).unwrap(), below(8));
        let looks = below(self.setting.looks);
        // A whole state is a long read: one in so many.
        if looks == 0
            && let Err(wrong) = self.look_at_state(index)
        {
            self.wrong.get_or_insert(wrong);
            return;
        }
        if from == to {
            return;
        }
        let process = &mut self.processes[index];
        let Some(reign) = &mut process.reign else {
            return;
        };
        let Ok(snapshot) = ready(reign.path.snapshot()) else {
            return;
        };
        let at = snapshot.version;
        if reign.balance(at, from).is_none() {
            return; // not opened yet
        }
        let id = self.next;
        self.next += 1;
        let mut writes = BTreeMap::new();
        for (number, change) in [(from, -amount), (to, amount)] {
            let balance = reign.balance(at, number).unwrap_or_default() + change;
            // Some are too large for one packet.
            let width = if kind == 0 { 2_000 } else { 1 };
            writes.insert(account(number), format!("{balance:<width$}").into_bytes());
        }
        writes.insert(marker(id), format!("{from} {to} {amount}").into_bytes());
        let reads = vec![(account(from.min(to)), at), (account(from.max(to)), at)];
        reign.stage(id, vec![intent(id, reads, writes)]);
        process.hand_over(outside);
    }
}

pub fn add(sum: &mut CommitCounts, more: CommitCounts) {
    sum.fast += more.fast;
    sum.at_backups += more.at_backups;
    sum.after_refusal += more.after_refusal;
}

impl Driver<Cluster> for Bank {
    fn begin(&mut self, outside: &mut Outside<'_, Cluster>) {
        for session in 0..self.setting.sessions {
            outside.wake_at(SimTime::from_millis(150 + session), session);
        }
        outside.wake_at(SimTime::from_micros(100), LOOK);
    }

    fn wake(&mut self, outside: &mut Outside<'_, Cluster>, key: u64) {
        self.round(outside);
        if key == LOOK {
            let is_over = outside.now() > self.setting.until;
            let open = |process: &Process| {
                process
                    .reign
                    .as_ref()
                    .is_some_and(|reign| !reign.groups.is_empty())
            };
            if is_over && !self.processes.iter().any(open) {
                self.judge(outside);
            }
            if !self.is_judged {
                outside.wake_at(outside.now() + LOOK_EVERY, LOOK);
            }
            return;
        }
        if outside.now() < self.setting.until {
            self.transfer(outside);
            let think = outside.random().below(2 * self.setting.think.0 + 1);
            outside.wake_at(outside.now() + Nanos(think), key);
        }
    }

    fn reply(
        &mut self,
        outside: &mut Outside<'_, Cluster>,
        node: NodeId,
        id: RequestId,
        body: ClientAnswer,
    ) {
        if let Some(process) = self
            .processes
            .iter_mut()
            .find(|process| process.client == node)
        {
            process.primary.answered(id, &body);
        }
        self.round(outside);
    }

    fn crashed(&mut self, _: &mut Outside<'_, Cluster>, node: NodeId) {
        let setting = self.setting;
        for process in &mut self.processes {
            if process.server != node && process.client != node {
                continue;
            }
            // The process is one: all that it knew is gone.
            let open = process.reign.take().map(|reign| reign.groups);
            let open = open.unwrap_or_default().into_iter();
            self.unknown.extend(open.flat_map(|(_, ids)| ids));
            add(&mut self.earlier, process.primary.counts());
            *process = Process::new(&setting, process.server.0);
        }
    }

    fn restarted(&mut self, _: &mut Outside<'_, Cluster>, node: NodeId) {
        let setting = self.setting;
        let of_node = |process: &&mut Process| process.client == node || process.server == node;
        if let Some(process) = self.processes.iter_mut().find(of_node) {
            *process = Process::new(&setting, process.server.0);
        }
    }
}

impl Bank {
    /// The last look, at whoever is primary when all is quiet.
    fn judge(&mut self, outside: &Outside<'_, Cluster>) {
        let defect = self.setting.defect;
        self.set_clocks(outside.now());
        let at_rest = self.processes.iter().position(|process| {
            let master = outside.core(process.server).and_then(|node| node.server());
            master.is_some_and(|server| server.serves().is_some() && server.holds_lease())
                && process
                    .reign
                    .as_ref()
                    .is_some_and(|reign| reign.may_read(defect))
        });
        let Some(index) = at_rest else {
            return;
        };
        match self.look_at_state(index) {
            Ok(Some(_)) => self.is_judged = true,
            Ok(None) => {}
            Err(wrong) => {
                self.wrong.get_or_insert(wrong);
                self.is_judged = true;
            }
        }
    }
}
