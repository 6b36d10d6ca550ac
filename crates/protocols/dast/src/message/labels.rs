//! What messages cost, what they are called and which transaction they are about.

use manxdb_core::{Message, Weight};
use manxdb_vr::GroupMessage;

use super::DastMessage;
use crate::ledger::{Entry, Ledger};

fn is_small(message: &GroupMessage<Ledger, Entry>) -> bool {
    matches!(
        message,
        GroupMessage::Commit { .. } | GroupMessage::PrepareOk { .. }
    )
}

impl Message for DastMessage {
    fn weight(&self) -> Weight {
        let pieces = match self {
            Self::PrepareIrt { planned, .. }
            | Self::PrepareCrt { planned, .. }
            | Self::PrepareRegion { planned, .. }
            | Self::Order { planned, .. }
            | Self::Place { planned, .. } => planned.steps(),
            Self::Stream(part) if !part.entries.is_empty() => {
                let steps = part.entries.iter().map(|entry| entry.planned.steps());
                steps.fold(0, u32::saturating_add)
            }
            Self::Kept { streams } => {
                let entries = streams.iter().flat_map(|stream| &stream.entries);
                let steps = entries.map(|entry| entry.planned.steps());
                steps.fold(0, u32::saturating_add)
            }
            Self::Submit { .. } => 1,
            Self::Report(_)
            | Self::Cut(_)
            | Self::Floor { .. }
            | Self::Settle { .. }
            | Self::Progress { .. }
            | Self::Bound { .. }
            | Self::Has { .. }
            | Self::AskKept
            | Self::Fences { .. }
            | Self::Fence { .. }
            | Self::Stream(_) => return Weight::Report,
            Self::Group(message) if is_small(message) => return Weight::Report,
            _ => 0,
        };
        Weight::Call { pieces }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Submit { .. } => "Submit",
            Self::Outcome { .. } => "Outcome",
            Self::PrepareIrt { .. } => "PrepareIrt",
            Self::AckIrt { .. } => "AckIrt",
            Self::Confirm { .. } => "Confirm",
            Self::Inputs { .. } => "Inputs",
            Self::Output(_) => "Output",
            Self::AskOutput { .. } => "AskOutput",
            Self::Report(_) => "Report",
            Self::Cut(_) => "Cut",
            Self::Lead { .. } => "Lead",
            Self::Hello { .. } => "Hello",
            Self::PrepareCrt { .. } => "PrepareCrt",
            Self::Floor { .. } => "Floor",
            Self::Settle { .. } => "Settle",
            Self::PrepareRegion { .. } => "PrepareRegion",
            Self::Order { .. } => "Order",
            Self::Place { .. } => "Place",
            Self::Bound { .. } => "Bound",
            Self::Fences { .. } => "Fences",
            Self::Refused { .. } => "Refused",
            Self::Fence { .. } => "Fence",
            Self::Stream(_) => "Stream",
            Self::StreamFrom { .. } => "StreamFrom",
            Self::Assigned { .. } => "Assigned",
            Self::Decided { .. } => "Decided",
            Self::AskDecision { .. } => "AskDecision",
            Self::Executed { .. } => "Executed",
            Self::Forget { .. } => "Forget",
            Self::Progress { .. } => "Progress",
            Self::Has { .. } => "Has",
            Self::AskKept => "AskKept",
            Self::Kept { .. } => "Kept",
            Self::Group(_) => "Group",
            Self::Freeze { .. } => "Freeze",
            Self::Frozen { .. } => "Frozen",
            Self::Close { .. } => "Close",
            Self::Closed { .. } => "Closed",
            Self::Join { .. } => "Join",
            Self::Out { .. } => "Out",
            Self::Admit { .. } => "Admit",
            Self::Admitted { .. } => "Admitted",
            Self::Fetch { .. } => "Fetch",
            Self::State(_) => "State",
            Self::Joined { .. } => "Joined",
            Self::Live { .. } => "Live",
        }
    }

    fn txn(&self) -> Option<u64> {
        let id = match self {
            Self::Submit { call, .. } => call.id,
            Self::Output(output) => output.id,
            Self::PrepareIrt { planned, .. }
            | Self::PrepareCrt { planned, .. }
            | Self::PrepareRegion { planned, .. }
            | Self::Order { planned, .. }
            | Self::Place { planned, .. } => planned.id(),
            Self::Stream(part) => part.entries.first()?.planned.id(),
            Self::Outcome { id, .. }
            | Self::AckIrt { id, .. }
            | Self::Confirm { id }
            | Self::Inputs { id, .. }
            | Self::AskOutput { id }
            | Self::Floor { id, .. }
            | Self::Settle { id, .. }
            | Self::Assigned { id, .. }
            | Self::Decided { id, .. }
            | Self::AskDecision { id, .. }
            | Self::Executed { id, .. }
            | Self::Refused { id, .. }
            | Self::Forget { id } => *id,
            _ => return None,
        };
        Some(id.for_traces())
    }
}
