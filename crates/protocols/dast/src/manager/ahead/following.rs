//! Streams from other regions: followed from where this region's replicas are.

use std::collections::BTreeMap;

use manxdb_core::{LocalTime, NodeId};

use crate::manager::Manager;
use crate::manager::stream::{Incoming, Taken};
use crate::message::{DastMessage, Heard, StreamPart};
use crate::timestamp::Timestamp;
use crate::topology::RegionId;
use crate::wanted::Out;

impl Manager {
    /// A replica says what it has. Once all have, the streams are followed from where the one that
    /// has least is: what lies before that has been told to all.
    pub(in crate::manager) fn on_heard(&mut self, from: NodeId, heard: &Heard, out: &mut Out) {
        let Some(lead) = &mut self.lead else {
            return;
        };
        let Some(ahead) = &mut lead.ahead else {
            return;
        };
        ahead.heard.insert(from, heard.bound);
        let told = lead.clocks.told();
        let beyond = heard.placed.iter().filter(|at| **at > told);
        lead.waiting.extend(beyond.copied());
        self.follow_streams(out);
    }

    /// Begins to follow the streams, if all that take part have said from where on.
    pub(in crate::manager) fn follow_streams(&mut self, out: &mut Out) {
        if self.copies.as_ref().is_some_and(|it| !it.are_complete()) {
            return;
        }
        let live = &self.group.state().members.live;
        let Some(ahead) = self.lead.as_mut().and_then(|lead| lead.ahead.as_mut()) else {
            return;
        };
        if !ahead.incoming.is_empty() {
            return;
        }
        let heard = live.iter().map(|node| ahead.heard.get(node).copied());
        let Some(least) = heard.min().flatten() else {
            return;
        };
        let regions = ahead.outgoing.keys();
        #[allow(unused_mut)] // planted defects change it
        let mut incoming: BTreeMap<RegionId, Incoming> =
            regions.map(|it| (*it, Incoming::new(least))).collect();
        #[cfg(feature = "mutants")]
        if self.shared.options.mutant == Some(crate::mutants::Mutant::GapAccepted) {
            incoming.values_mut().for_each(Incoming::accept_gaps);
        }
        assert!(
            incoming.len() == ahead.outgoing.len(),
            "A3: every other region has a stream"
        );
        let mut kept = Vec::new();
        for (region, stream) in &mut incoming {
            let copies = self.copies.as_ref();
            let part = copies.and_then(|copies| copies.part_since(*region, least));
            if let Some(Taken::Entries(entries)) = part.map(|part| stream.take(part)) {
                kept.extend(entries);
            }
        }
        ahead.incoming = incoming;
        for entry in kept {
            self.tell_place(&entry.planned, entry.at, out);
        }
        if self.copies.is_some() {
            self.tell_bound_if_awaited(out);
        }
        self.ask_for_streams(out);
    }

    /// Asks for what has been asked for and has not come.
    pub(in crate::manager) fn ask_for_streams(&mut self, out: &mut Out) {
        let ahead = self.lead.as_ref().and_then(|lead| lead.ahead.as_ref());
        let streams = ahead.into_iter().flat_map(|ahead| &ahead.incoming);
        for (region, stream) in streams {
            if let Some(since) = stream.asked() {
                self.ask_for_stream(*region, since, out);
            }
        }
    }

    /// All managers of the region are asked; the one that leads answers.
    pub(in crate::manager) fn ask_for_stream(&self, of: RegionId, since: Timestamp, out: &mut Out) {
        let region = self.region;
        for manager in self.shared.topology.managers(of) {
            out.send(manager, DastMessage::StreamFrom { region, since });
        }
    }

    pub(in crate::manager) fn on_stream(
        &mut self,
        now: LocalTime,
        part: StreamPart,
        out: &mut Out,
    ) {
        let slack = self.shared.options.lead_slack().as_micros();
        let slack = i64::try_from(slack).unwrap_or(i64::MAX);
        let interval = self.shared.options.report_every.as_micros();
        let region = part.region;
        self.note_epoch_of(region, part.epoch);
        let is_followed = self.speaks_with(region);
        let Some(lead) = &mut self.lead else {
            return;
        };
        let reading = lead.clocks.reading(now);
        lead.regions.insert(region, (part.closed, part.position));
        let Some(ahead) = lead.ahead.as_mut().filter(|_| is_followed) else {
            return;
        };
        if let Some(stream) = ahead.outgoing.get_mut(&region)
            && let Some(delay) = part.delay
        {
            stream.learn(delay, slack);
        }
        let Some(stream) = ahead.incoming.get_mut(&region) else {
            return;
        };
        stream.saw(reading, part.sent, interval);
        match stream.take(part) {
            Taken::Entries(entries) => {
                for entry in entries {
                    self.tell_place(&entry.planned, entry.at, out);
                }
                self.tell_bound_if_awaited(out);
            }
            Taken::Gap => {
                let since = stream.mark();
                self.ask_for_stream(region, since, out);
            }
            Taken::Waiting => {}
        }
    }
}
