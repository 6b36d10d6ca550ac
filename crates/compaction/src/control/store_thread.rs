//! Threads that execute a control plane's requests to its store: one writes and campaigns; over
//! etcd another one renews the lease, which must not wait for a write.
//!
//! A failed request gets no answer: the core sends it again.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use manxdb_core::NodeId;
use manxdb_core::last_failure::LastFailure;
use manxdb_jobs::contender::Word;
use manxdb_jobs::election::{FromStore, ToStore, Why};
use manxdb_jobs::{Contender, Record, Term};
use parking_lot::Mutex;

use crate::actor::Handle;
use crate::control::journal;
use crate::control::store::etcd::Renewer;
use crate::control::store::{Campaign, Store, StoreError};

/// The store, for the core.
pub(super) const STORE: NodeId = NodeId(u32::MAX);

/// How long a control plane that ends waits until its lease is revoked.
const RESIGNING: Duration = Duration::from_secs(3);

/// Where a core's words to its store go.
pub(super) struct StoreQueue {
    words: Sender<ToStore>,
    renewals: Option<Sender<ToStore>>,
}

/// The other end of it.
pub(super) struct StoreQueueEnd {
    words: Receiver<ToStore>,
    /// Renewals of the lease, if the store has one.
    renewals: Option<(Renewer, Receiver<ToStore>)>,
}

impl StoreQueue {
    /// The two ends of a queue; renewals have a channel of their own if `renewer` is given.
    #[must_use]
    pub(super) fn queue(renewer: Option<Renewer>) -> (Self, StoreQueueEnd) {
        let (words, queue_end) = channel();
        let (renewals, renewed) = channel();
        let queue = Self {
            words,
            renewals: renewer.is_some().then_some(renewals),
        };
        let queue_end = StoreQueueEnd {
            words: queue_end,
            renewals: renewer.map(|renewer| (renewer, renewed)),
        };
        (queue, queue_end)
    }

    /// Sends a request to the store. It is lost if the threads have ended.
    pub(super) fn ask(&self, word: ToStore) {
        journal::of_store(&word);
        let _ = match (&word, &self.renewals) {
            (ToStore::Renew { .. }, Some(renewals)) => renewals.send(word),
            _ => self.words.send(word),
        };
    }
}

/// The threads around a store.
pub(super) struct StoreThreads {
    resigned: Mutex<Receiver<()>>,
}

impl StoreThreads {
    /// Starts them; they end with the core.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(super) fn start(
        store: Store,
        queue_end: StoreQueueEnd,
        core: &Handle<Contender>,
    ) -> std::io::Result<Self> {
        let (resigns, resigned) = channel();
        if let Some((mut renewer, renewals)) = queue_end.renewals {
            let core = core.clone();
            std::thread::Builder::new()
                .name("control-lease".to_owned())
                .spawn(move || renew(&mut renewer, &renewals, &core))?;
        }
        let mut writer = Writer {
            store,
            words: queue_end.words,
            next: None,
            core: core.clone(),
            resigns,
            campaign: LastFailure::default(),
        };
        std::thread::Builder::new()
            .name("control-store".to_owned())
            .spawn(move || writer.run())?;
        let resigned = Mutex::new(resigned);
        Ok(Self { resigned })
    }

    /// Waits until a lease is given back, but not for ever.
    pub(super) fn wait_until_resigned(&self) {
        let _ = self.resigned.lock().recv_timeout(RESIGNING); // it runs out by itself
    }
}

fn tell(core: &Handle<Contender>, word: FromStore) {
    core.hear(STORE, Word::FromStore(word));
}

fn renew(renewer: &mut Renewer, renewals: &Receiver<ToStore>, core: &Handle<Contender>) {
    while let Ok(mut word) = renewals.recv() {
        // Only the last one counts: it lasts the longest.
        while let Ok(newer) = renewals.try_recv() {
            word = newer;
        }
        let ToStore::Renew { number, term } = word else {
            continue; // nothing else comes this way
        };
        match renewer.renew(term) {
            Ok(true) => tell(core, FromStore::Renewed { number, term }),
            Ok(false) => tell(core, FromStore::Deposed { term }),
            Err(error) => {
                tracing::warn!(%error, "the lease could not be renewed; it is tried again");
            }
        }
    }
}

struct Writer {
    store: Store,
    words: Receiver<ToStore>,
    /// Taken out of the queue too early.
    next: Option<ToStore>,
    core: Handle<Contender>,
    resigns: Sender<()>,
    /// Why this control plane was not elected at its last campaign.
    campaign: LastFailure,
}

impl Writer {
    fn run(&mut self) {
        while let Some(word) = self.next.take().or_else(|| self.words.recv().ok()) {
            match word {
                ToStore::Campaign { number } => self.campaign(number),
                ToStore::Write {
                    term,
                    first,
                    records,
                } => self.write(term, first, records.to_vec()),
                ToStore::Resign { term, why } => self.resign(term, why),
                ToStore::Renew { .. } => {} // of a lease that nobody has
            }
        }
    }

    /// Writes records with all that wait behind them.
    fn write(&mut self, term: Term, first: u64, mut records: Vec<Record>) {
        while self.next.is_none()
            && let Ok(word) = self.words.try_recv()
        {
            self.next = join(term, first, &mut records, word);
        }
        match self.store.write(term, first, &records) {
            Ok(through) => tell(&self.core, FromStore::Written { term, through }),
            Err(StoreError::Deposed(term)) => tell(&self.core, FromStore::Deposed { term }),
            Err(error) => {
                tracing::error!(%error, "the control plane cannot write; it tries again");
            }
        }
    }

    fn campaign(&mut self, mut number: u64) {
        // Only the last one counts: a store that did not answer for long has left many.
        while self.next.is_none()
            && let Ok(word) = self.words.try_recv()
        {
            match word {
                ToStore::Campaign { number: newer } => number = newer,
                other => self.next = Some(other),
            }
        }
        let Store::Etcd(etcd) = &mut self.store else {
            return; // whoever is alone leads
        };
        match etcd.campaign() {
            Ok(Campaign::Elected(term, durable)) => {
                let jobs = durable.jobs.len();
                tracing::info!(term = term.0, jobs, "this control plane leads");
                self.campaign.succeeded();
                let durable = durable.into();
                let elected = FromStore::Elected {
                    number,
                    term,
                    durable,
                };
                tell(&self.core, elected);
            }
            Ok(Campaign::Taken(leader)) => {
                self.not_elected(format_args!("{leader} leads; this control plane stands by"));
                tell(&self.core, FromStore::Taken { number, leader });
            }
            Err(error) => self.not_elected(format_args!("nobody knows who leads: {error}")),
        }
    }

    fn not_elected(&mut self, why: std::fmt::Arguments<'_>) {
        if let Some(news) = self.campaign.failed(why) {
            tracing::warn!("{news}");
        }
    }

    fn resign(&mut self, term: Term, why: Why) {
        if let Store::Etcd(etcd) = &mut self.store {
            etcd.resign(term);
        }
        if why == Why::Ends {
            let _ = self.resigns.send(()); // nobody waits
        }
    }
}

/// Puts a word's records behind others that they follow; else the word.
fn join(term: Term, first: u64, records: &mut Vec<Record>, word: ToStore) -> Option<ToStore> {
    let ToStore::Write {
        term: its,
        first: from,
        records: more,
    } = &word
    else {
        return Some(word);
    };
    let known = (first + records.len() as u64).checked_sub(*from);
    match known.and_then(|known| usize::try_from(known).ok()) {
        Some(known) if *its == term && *from >= first => {
            records.extend(more.iter().skip(known).cloned());
            None
        }
        _ => Some(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manxdb_jobs::WorkerId;

    fn records(from: u64, to: u64) -> Vec<Record> {
        let banned = |number| Record::Banned {
            worker: WorkerId(number),
        };
        (from..to).map(banned).collect()
    }

    fn write(term: u64, from: u64, to: u64) -> ToStore {
        ToStore::Write {
            term: Term(term),
            first: from,
            records: records(from, to).into(),
        }
    }

    #[test]
    fn records_that_wait_are_joined_once_each_and_in_order() {
        let mut all = records(3, 6);
        for word in [write(1, 6, 8), write(1, 3, 8), write(1, 7, 10)] {
            assert!(join(Term(1), 3, &mut all, word).is_none());
        }
        assert_eq!(all, records(3, 10));
        for word in [write(1, 11, 12), write(2, 10, 12), write(1, 1, 12)] {
            assert!(join(Term(1), 3, &mut all, word).is_some());
        }
        assert_eq!(all, records(3, 10));
    }
}
