//! A witness: keeps requests of one round trip until they are synced.

use manxdb_core::NodeId;

use crate::carrier::{MemoryCarrier, ViewTokens, WitnessCarrier};
use crate::ids::{Member, View};
use crate::message::{CurpMessage, Shown};
use crate::node::{CurpTimer, Outbox, heartbeat};
use crate::options::Options;

/// A witness of any number of views, in whatever carries it. One whose carrier is a process's memory
/// forgets everything when it stops: then it is a witness of none, and says so.
pub struct Witness {
    me: Member,
    options: Options,
    carrier: Box<dyn WitnessCarrier>,
    heartbeats: u64,
}

impl Witness {
    pub(crate) fn new(me: Member, options: Options) -> Self {
        let carrier = MemoryCarrier::new(options.table);
        #[cfg(feature = "mutants")]
        let carrier = carrier.with_mutant(options.mutant);
        Self::on(me, options, Box::new(carrier))
    }

    pub(crate) fn on(me: Member, options: Options, carrier: Box<dyn WitnessCarrier>) -> Self {
        Self {
            me,
            options,
            carrier,
            heartbeats: 0,
        }
    }

    pub(crate) fn start(&mut self, out: &mut impl Outbox) {
        self.heartbeat(out);
    }

    fn heartbeat(&mut self, out: &mut impl Outbox) {
        self.heartbeats += 1;
        let names = (self.heartbeats, self.me.life);
        heartbeat(&self.options, names, Shown::default(), out);
    }

    pub(crate) fn on_timer(&mut self, timer: &CurpTimer, out: &mut impl Outbox) {
        if *timer == CurpTimer::Heartbeat {
            self.heartbeat(out);
        }
    }

    pub(crate) fn on_message(&mut self, from: NodeId, body: CurpMessage, out: &mut impl Outbox) {
        let life = self.me.life;
        match body {
            CurpMessage::Datagram(datagram) if datagram.asks => {
                if let Some(answer) = self.carrier.answer(&datagram) {
                    out.send(from, CurpMessage::Datagram(answer));
                }
            }
            CurpMessage::StartWitness {
                to,
                view,
                in_use,
                record_token: record,
                gc_token: gc,
            } if to == life => {
                self.carrier.give_up(in_use, view);
                self.serve(from, view, ViewTokens { record, gc }, out);
            }
            CurpMessage::EndWitness { keep } => self.carrier.end(keep),
            CurpMessage::Freeze(view) => {
                if let Some(records) = self.carrier.freeze(view) {
                    let frozen = CurpMessage::Frozen {
                        view,
                        life,
                        records,
                    };
                    out.send(from, frozen);
                }
            }
            CurpMessage::Fetch { view, entry } => {
                if let Some(record) = self.carrier.find(view, &entry) {
                    out.send(from, CurpMessage::Fetched { view, record });
                }
            }
            _ => {}
        }
    }

    fn serve(&mut self, from: NodeId, view: View, tokens: ViewTokens, out: &mut impl Outbox) {
        if self.carrier.serve(view, tokens) {
            let life = self.me.life;
            out.send(from, CurpMessage::WitnessStarted { life, view });
        }
    }

    /// Records of a view.
    #[must_use]
    pub fn records(&self, view: View) -> usize {
        self.carrier.records(view)
    }

    /// What carries it.
    #[must_use]
    pub fn carrier(&self) -> &'static str {
        self.carrier.name()
    }

    /// Datagrams refused for what is in them.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.carrier.refused()
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.carrier.check()
    }

    pub(crate) fn digest(&self) -> u64 {
        self.carrier.digest()
    }
}
