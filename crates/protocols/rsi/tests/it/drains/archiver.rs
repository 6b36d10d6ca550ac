//! Processes that write what is committed to disk: one at a time, with a place like any client.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use manxdb_core::Nanos;
use manxdb_fabric::{Address, Operation, OperationOutcome};
use manxdb_rsi::{Batch, Drain, Drained, Layout, Once, Progress, Snapshot, Survey};

use crate::drains::disk::{Checkpoint, Disk};
use crate::simulated_rack::bank::{Notes, Teller};
use crate::simulated_rack::client_handle::ClientHandle;

/// Records that are copied at once.
const PIECE: usize = 120;

/// What log archivers and the story share.
#[derive(Clone)]
pub struct Cellar {
    pub disk: Rc<RefCell<Disk>>,
    /// The next one that asks is to end.
    pub is_over: Rc<Cell<bool>>,
    /// Longest pause between two batches.
    pub pause: Rc<Cell<u64>>,
    /// How long one sleeps that has a place, before it does anything.
    pub asleep: Rc<Cell<u64>>,
    /// It syncs one in so many times.
    pub sync_one_in: Rc<Cell<u64>>,
}

impl Cellar {
    pub fn new(formation: u64, base: Snapshot) -> Self {
        Self {
            disk: Rc::new(RefCell::new(Disk::new(formation, base))),
            is_over: Rc::default(),
            pause: Rc::new(Cell::new(100_000)),
            asleep: Rc::default(),
            sync_one_in: Rc::new(Cell::new(2)),
        }
    }
}

struct LogArchiver {
    teller: Teller,
    cellar: Cellar,
    progress: Progress,
    /// All of this is synced.
    synced: Snapshot,
    /// Of the next batch.
    number: u64,
    copy: Option<Copying>,
}

/// A copy that is not complete.
struct Copying {
    checkpoint: Checkpoint,
    left: Vec<(Address, Layout)>,
    /// What is to be synced first, when all is copied.
    needs: Option<Snapshot>,
}

/// Writes to disk until it is told to end.
pub async fn keep(handle: ClientHandle, notes: Notes, cellar: Cellar) {
    let teller = Teller::join(handle, &notes).await;
    let batches = cellar.disk.borrow_mut().mend();
    let length = cellar.disk.borrow().length();
    cellar.disk.borrow_mut().sync(length);
    let base = cellar.disk.borrow().base.clone();
    let last = batches.last();
    let written = last.map_or(base, |batch| batch.cut.clone());
    let progress = Progress::new(written.clone()).with(teller.handle.mutant);
    let mut archiver = LogArchiver {
        teller,
        number: last.map_or(0, |batch| batch.number + 1),
        synced: written,
        progress,
        copy: None,
        cellar,
    };
    let sleep = archiver.cellar.asleep.get();
    archiver.teller.handle.sleep(Nanos(sleep)).await;
    while !archiver.cellar.is_over.get() {
        archiver = archiver.round().await;
        let pause = 1 + archiver.cellar.pause.get();
        let pause = archiver.teller.handle.random.below(pause);
        archiver.teller.handle.sleep(Nanos(pause)).await;
    }
    archiver.teller.leave().await;
}

impl LogArchiver {
    async fn round(mut self) -> Self {
        let (handle, map) = (&self.teller.handle, &self.teller.map);
        let logs = handle.plan.logs(map);
        let drain = Drain::new(handle.plan.vector, logs, &self.progress);
        match handle.run_by(map, drain.with(handle.mutant)).await {
            Ok(Some(Drained::Batch { cut, entries })) => {
                let batch = Batch {
                    formation: self.cellar.disk.borrow().formation,
                    number: self.number,
                    cut,
                    entries,
                };
                self.write(batch).await;
            }
            Ok(Some(Drained::Gap { cut, lost })) => {
                let mut disk = self.cellar.disk.borrow_mut();
                assert!(disk.has_failed, "{lost} is in no log and in no file");
                disk.gap(self.number);
                self.number += 1;
                self.synced = cut.clone(); // by the checkpoint that is to come
                self.progress.lost(cut);
                self.copy = None;
            }
            Ok(None) => {}
            Err(_) => return self.go_on().await,
        }
        let one_in = self.cellar.sync_one_in.get();
        if self.teller.handle.random.below(one_in) == 0 {
            let length = self.cellar.disk.borrow().length();
            self.teller.handle.sleep(Nanos(50_000)).await;
            self.cellar.disk.borrow_mut().sync(length);
            self.synced = self.progress.written().clone();
        }
        let (handle, map) = (&self.teller.handle, &self.teller.map);
        let publish = handle.plan.kept.unwrap();
        let synced = self.progress.synced(&self.synced);
        let publish = publish.publish(self.progress.written(), synced);
        let said = handle.run_by(map, Once::new(vec![publish])).await;
        if said != [OperationOutcome::Written] {
            return self.go_on().await;
        }
        self.copy().await
    }

    /// It may die over it.
    async fn write(&mut self, batch: Batch) {
        let bytes = batch.encode();
        let random = &mut self.teller.handle.random;
        let half = usize::try_from(random.below(bytes.len() as u64)).unwrap();
        self.cellar.disk.borrow_mut().append(&bytes[..half]);
        self.teller.handle.sleep(Nanos(5_000)).await;
        self.cellar.disk.borrow_mut().append(&bytes[half..]);
        self.cellar.disk.borrow_mut().batches += 1;
        self.progress.wrote(batch.cut);
        self.number += 1;
    }

    async fn go_on(mut self) -> Self {
        self.teller = self.teller.go_on(None).await.0;
        self
    }

    /// Goes on with a copy of all memory, some records at a time.
    async fn copy(mut self) -> Self {
        let copy = self.copy.take();
        let mut copy = copy.unwrap_or_else(|| Copying {
            checkpoint: Checkpoint {
                first: self.progress.written().clone(),
                number: self.number,
                records: BTreeMap::new(),
            },
            left: self.teller.handle.plan.records(),
            needs: None,
        });
        let (handle, map) = (&self.teller.handle, &self.teller.map);
        if let Some(needs) = &copy.needs {
            if self.synced.includes(needs) {
                let mut disk = self.cellar.disk.borrow_mut();
                disk.checkpoint = Some(copy.checkpoint);
                disk.completed += 1;
                disk.closed += u64::from(self.progress.has_gap());
                self.progress.closed();
            } else {
                self.copy = Some(copy);
            }
            return self;
        }
        if copy.left.is_empty() {
            let (plan, logs) = (&handle.plan, handle.plan.logs(map));
            let survey = Survey::new(plan.vector, plan.kept.unwrap(), logs);
            match handle.run_by(map, survey.with(handle.mutant)).await {
                Ok(needs) => copy.needs = Some(needs),
                Err(_) => return self.go_on().await,
            }
        } else {
            let piece = copy.left.split_off(copy.left.len().saturating_sub(PIECE));
            let read = |(at, layout): &(Address, Layout)| Operation::Read {
                at: *at,
                bytes: layout.bytes() as u64,
            };
            let reads = Once::new(piece.iter().map(read).collect());
            let copies = handle.run_by(map, reads).await;
            for ((at, _), outcome) in piece.into_iter().zip(copies) {
                let OperationOutcome::Read(bytes) = outcome else {
                    return self.go_on().await; // from the beginning
                };
                copy.checkpoint.records.insert(at, bytes);
            }
        }
        self.copy = Some(copy);
        self
    }
}
