//! A witness: keeps requests of one round trip until they are synced.

use std::collections::BTreeMap;

use manxdb_core::{Digest, NodeId};

use crate::ids::{Member, View};
use crate::message::CurpMessage;
use crate::node::{CurpTimer, Outbox, heartbeat};
use crate::options::Options;
use crate::table::{SlotTable, WitnessTable};
use crate::wire::{Datagram, Op, Status};

/// Views served at the same time: the one in use, and those that are being tried.
const VIEWS_MAX: usize = 8;

#[derive(Debug)]
struct OfView {
    table: SlotTable,
    record_token: u64,
    gc_token: u64,
}

/// A witness of any number of views. It forgets everything when it stops: then it is a witness of
/// none, and says so.
pub struct Witness {
    me: Member,
    options: Options,
    views: BTreeMap<View, OfView>,
    heartbeats: u64,
    /// Datagrams that were refused for what is in them.
    refused: u64,
}

impl Witness {
    pub(crate) fn new(me: Member, options: Options) -> Self {
        Self {
            me,
            options,
            views: BTreeMap::new(),
            heartbeats: 0,
            refused: 0,
        }
    }

    pub(crate) fn start(&mut self, out: &mut impl Outbox) {
        self.heartbeat(out);
    }

    fn heartbeat(&mut self, out: &mut impl Outbox) {
        self.heartbeats += 1;
        heartbeat(&self.options, self.heartbeats, self.me.life, None, out);
    }

    pub(crate) fn on_timer(&mut self, timer: &CurpTimer, out: &mut impl Outbox) {
        if *timer == CurpTimer::Heartbeat {
            self.heartbeat(out);
        }
    }

    pub(crate) fn on_message(&mut self, from: NodeId, body: CurpMessage, out: &mut impl Outbox) {
        match body {
            CurpMessage::Datagram(datagram) if datagram.asks => {
                let answer = self.answer(&datagram);
                out.send(from, CurpMessage::Datagram(answer));
            }
            CurpMessage::StartWitness {
                to,
                view,
                record_token,
                gc_token,
            } if to == self.me.life && self.has_room(view) => {
                self.serve(view, record_token, gc_token);
                let life = self.me.life;
                out.send(from, CurpMessage::WitnessStarted { life, view });
            }
            CurpMessage::EndWitness { keep } => self.views.retain(|view, _| *view >= keep),
            CurpMessage::Freeze(view) => {
                if let Some(of_view) = self.views.get_mut(&view) {
                    of_view.table.freeze();
                    assert!(of_view.table.is_frozen(), "it is read after it has stopped");
                    let records = of_view.table.records();
                    let life = self.me.life;
                    let frozen = CurpMessage::Frozen {
                        view,
                        life,
                        records,
                    };
                    out.send(from, frozen);
                }
            }
            CurpMessage::Fetch { view, entry } => {
                let of_view = self.views.get(&view);
                if let Some(record) = of_view.and_then(|of_view| of_view.table.find(&entry)) {
                    out.send(from, CurpMessage::Fetched { view, record });
                }
            }
            _ => {}
        }
    }

    /// Whether it serves a view, or can.
    fn has_room(&self, view: View) -> bool {
        self.views.len() < VIEWS_MAX || self.views.contains_key(&view)
    }

    /// Begins to serve a view; asked again it changes nothing.
    fn serve(&mut self, view: View, record_token: u64, gc_token: u64) {
        let (sets, ways) = self.options.table;
        assert!(
            self.views.len() < VIEWS_MAX || self.views.contains_key(&view),
            "there is room for the view"
        );
        self.views.entry(view).or_insert_with(|| {
            let table = SlotTable::new(sets, ways);
            #[cfg(feature = "mutants")]
            let table = table.with_mutant(self.options.mutant);
            OfView {
                table,
                record_token,
                gc_token,
            }
        });
    }

    /// What it does with a datagram.
    fn answer(&mut self, asked: &Datagram) -> Datagram {
        let Some(of_view) = self.views.get_mut(&asked.view) else {
            return asked.answer(Status::WrongLife, Vec::new());
        };
        assert!(asked.asks, "answers are not answered");
        let token = match asked.op {
            Op::Gc => of_view.gc_token,
            Op::Record | Op::Probe => of_view.record_token,
        };
        if asked.token != token {
            self.refused += 1;
            return asked.answer(Status::Bad, Vec::new());
        }
        let (status, entries) = match (asked.op, &asked.request) {
            (Op::Record, Some(request)) => {
                let status = of_view.table.record(&asked.hashes, asked.rpc, request);
                (status, Vec::new())
            }
            (Op::Gc, _) if of_view.table.is_frozen() => (Status::Frozen, Vec::new()),
            (Op::Gc, _) => (Status::GcOk, of_view.table.collect(&asked.entries)),
            (Op::Probe, _) if of_view.table.is_frozen() => (Status::Frozen, Vec::new()),
            (Op::Probe, _) if of_view.table.is_clean(&asked.hashes) => (Status::Clean, Vec::new()),
            (Op::Probe, _) => (Status::Dirty, Vec::new()),
            (Op::Record, None) => (Status::Bad, Vec::new()),
        };
        assert!(status != Status::None, "an answer says something");
        assert!(
            entries.is_empty() || status == Status::GcOk,
            "reports come with a collection"
        );
        self.refused += u64::from(status == Status::Bad);
        asked.answer(status, entries)
    }

    /// Records of a view.
    #[must_use]
    pub fn records(&self, view: View) -> usize {
        let of_view = self.views.get(&view);
        of_view.map_or(0, |of_view| of_view.table.records().len())
    }

    /// Datagrams refused for what is in them.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if self.views.len() > VIEWS_MAX {
            return Err(format!("{} views at a witness", self.views.len()));
        }
        self.views.values().try_for_each(|of_view| {
            if of_view.record_token == of_view.gc_token {
                return Err("clients could collect what they did not sync".to_owned());
            }
            of_view.table.check()
        })
    }

    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        for (view, of_view) in &self.views {
            digest.number(view.epoch.0).number(view.wlv.0.into());
            digest.number(of_view.table.records().len() as u64);
        }
        digest.value()
    }
}
