//! What is explored: who runs which transactions, who may die, and how finely memory is cut.

use manxdb_fabric::{Address, Operation, ServerId, WORD, WORD_LENGTH};
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{Block, Isolation, Layout, Log, Session, Stamp, ThreadId, Vector};

use crate::model::memory::{Memory, Seams};

/// Records, of which each transaction reads one or both.
pub const RECORDS: usize = 2;
/// What is in each of them at first.
pub const AT_FIRST: u64 = 5;

/// A transaction of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MembershipDeed {
    /// Takes so much from the first record and adds it to the second.
    Move(u64),
    /// Adds one to a record.
    RaiseMax(usize),
    /// Writes into the second record what is in the first.
    Copy,
    /// Writes 0 into this record if the other one is not 0.
    Leave(usize),
    /// Reads both.
    Look,
}

impl MembershipDeed {
    pub fn reads(self) -> &'static [usize] {
        match self {
            Self::RaiseMax(0) => &[0],
            Self::RaiseMax(_) => &[1],
            _ => &[0, 1],
        }
    }

    /// Which record becomes what, after these values.
    pub fn writes(self, values: &[u64]) -> Vec<(usize, u64)> {
        match (self, values) {
            (Self::Move(amount), [from, to]) => {
                vec![(0, from.wrapping_sub(amount)), (1, to + amount)]
            }
            (Self::RaiseMax(record), [value]) => vec![(record, value + 1)],
            (Self::Copy, [from, _]) => vec![(1, *from)],
            (Self::Leave(record), both) if both[1 - record] != 0 => vec![(record, 0)],
            _ => Vec::new(),
        }
    }
}

/// How finely memory is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// Of a record: head, labels, all values. Lines of the vector and logs are whole.
    Coarse,
    /// Of a record: head, labels, each value. Lines of the vector and logs are of two pieces.
    Fine,
    /// Of the first record, the only one that is written there: each word. The rest as before.
    Words,
}

/// A state space.
#[derive(Debug, Clone)]
pub struct Case {
    /// The transactions of each client, one after another.
    pub clients: Vec<Vec<MembershipDeed>>,
    pub isolation: Isolation,
    pub grain: Grain,
    /// Clients that may die.
    pub mortals: Vec<usize>,
    /// As many deaths there are: each is followed by a client that goes on for the dead one, and
    /// may die over it while another is left.
    pub deaths: usize,
    /// Places where each thread logs.
    pub logs: usize,
    /// Of an ordered write, the word comes last.
    pub keeps_order: bool,
    pub mutant: Option<Mutant>,
    pub seams: Seams,
}

impl Case {
    pub fn new(clients: &[&[MembershipDeed]], isolation: Isolation, grain: Grain) -> Self {
        let mut case = Self {
            clients: clients.iter().map(|deeds| deeds.to_vec()).collect(),
            isolation,
            grain,
            mortals: Vec::new(),
            deaths: 0,
            logs: 1,
            keeps_order: true,
            mutant: None,
            seams: Seams(Vec::new()),
        };
        case.seams = case.seams();
        case
    }

    /// Some of the clients may die, in all so many times.
    pub fn mortal(mut self, mortals: &[usize], deaths: usize) -> Self {
        self.mortals = mortals.to_vec();
        self.deaths = deaths;
        self.seams = self.seams();
        self
    }

    pub fn with_logs(mut self, logs: usize) -> Self {
        self.logs = logs;
        self.seams = self.seams();
        self
    }

    pub fn with(mut self, mutant: Mutant) -> Self {
        self.mutant = Some(mutant);
        self
    }

    pub fn without_order(mut self) -> Self {
        self.keeps_order = false;
        self
    }

    /// Clients, those who go on for the dead, and who has written before all of them.
    fn threads(&self) -> u16 {
        u16::try_from(self.clients.len() + self.deaths + 1).unwrap()
    }

    pub fn thread(number: usize) -> ThreadId {
        ThreadId::new(u16::try_from(number).unwrap()).unwrap()
    }

    /// The version that every record has at first.
    pub fn first(&self) -> Stamp {
        Stamp {
            thread: Self::thread(self.clients.len() + self.deaths),
            sequence: 1,
        }
    }

    pub fn vector(&self) -> Vector {
        Vector::new(address(0), self.threads()).unwrap()
    }

    /// Words of a value.
    fn value_words(&self) -> usize {
        if self.grain == Grain::Words { 2 } else { 1 }
    }

    pub fn layout(&self) -> Layout {
        Layout::new(2, self.value_words() * WORD_LENGTH).unwrap()
    }

    pub fn value(&self, number: u64) -> Vec<u8> {
        number.to_le_bytes().repeat(self.value_words())
    }

    /// Where a record is.
    pub fn record(&self, record: usize) -> Address {
        let before = self.vector().bytes() + (record * self.layout().bytes()) as u64;
        address(before)
    }

    /// Bytes of a log: those of an entry with both records.
    fn log_bytes(&self) -> u64 {
        let words = 6 + usize::from(self.threads()) + RECORDS * (9 + self.value_words());
        (words * WORD_LENGTH) as u64
    }

    pub fn log(&self, thread: ThreadId) -> Log {
        let first = usize::from(thread.number()) * self.logs;
        let before = self.record(RECORDS).offset;
        let place = |number: usize| address(before + number as u64 * self.log_bytes());
        let places = (first..first + self.logs).map(place).collect();
        Log::new(places, self.log_bytes(), 1).unwrap()
    }

    /// Bytes of all memory. Those who go on for the dead only read: they need no logs.
    fn bytes(&self) -> u64 {
        let logs = (self.clients.len() * self.logs) as u64;
        self.record(RECORDS).offset + logs * self.log_bytes()
    }

    pub fn session(&self, number: usize) -> Session {
        let thread = Self::thread(number);
        let mut session = Session::new(thread, self.vector(), 0).unwrap();
        if number < self.clients.len() {
            session = session.with_log(self.log(thread));
        }
        session.mutant = self.mutant;
        session
    }

    /// Memory with records that somebody has written.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory(vec![0; usize::try_from(self.bytes() / WORD).unwrap()]);
        let (stamp, layout) = (self.first(), self.layout());
        let block = Block::empty(layout, 0).with(stamp, Some(&self.value(AT_FIRST)));
        let write = |record| Operation::WriteThenSet {
            at: self.record(record).plus(WORD),
            bytes: block.clone().into_body(),
            word_at: self.record(record).offset,
            word: manxdb_rsi::Head::Free(stamp).word(),
        };
        let mut operations: Vec<Operation> = (0..RECORDS).map(write).collect();
        let mut seen = manxdb_rsi::Snapshot::empty(self.threads());
        seen.add(stamp);
        operations.push(self.vector().publish(stamp, &seen));
        memory.run(&self.seams, operations);
        memory
    }

    fn seams(&self) -> Seams {
        let is_fine = self.grain != Grain::Coarse;
        let mut seams = Vec::new();
        let mut cut = |offset: u64| seams.push(usize::try_from(offset / WORD).unwrap());
        let lines = u64::from(self.threads());
        let line = self.vector().bytes() / lines;
        for number in 0..lines {
            cut(number * line);
            if is_fine {
                cut((number + 1) * line - WORD);
            }
        }
        for record in 0..RECORDS {
            let (head, end) = (self.record(record).offset, self.record(record + 1).offset);
            let value = (self.value_words() * WORD_LENGTH) as u64;
            cut(head);
            cut(head + WORD);
            cut(end - 2 * value);
            if is_fine {
                cut(end - value);
            }
            if self.grain == Grain::Words && record == 0 {
                for word in (head..end).step_by(WORD_LENGTH) {
                    cut(word);
                }
            }
        }
        let logs = self.record(RECORDS).offset;
        let bytes = self.log_bytes();
        for number in 0..(self.clients.len() * self.logs) as u64 {
            cut(logs + number * bytes);
            if is_fine {
                cut(logs + number * bytes + bytes / 2 / WORD * WORD);
            }
        }
        seams.sort_unstable();
        seams.dedup();
        Seams(seams)
    }
}

fn address(offset: u64) -> Address {
    let server = ServerId(0);
    Address { server, offset }
}
