//! What a manager says of itself, for people.

use super::Manager;

impl Manager {
    /// Where it stands, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        let ledger = self.ledger();
        let lead = self.lead.as_ref().map(|lead| {
            format!(
                "told {:?}, untold {:?}, waiting {:?}, regions {:?}, {:?}, {} effects, ahead {:?}",
                lead.clocks.told(),
                lead.untold,
                lead.waiting,
                lead.regions,
                lead.changing,
                lead.effects.len(),
                lead.ahead
            )
        });
        format!(
            "manager of region {}: view {} {:?}, {} committed, members {:?}, reserved {:?}, {:?}, {} open {:?}, lead {lead:?}",
            self.region.0,
            self.group.view(),
            self.group.status(),
            self.group.committed(),
            ledger.members,
            ledger.reserved,
            ledger.fences,
            ledger.crts.len(),
            ledger
                .crts
                .iter()
                .map(|(id, crt)| (id, crt.home.0, crt.at, crt.decision))
                .filter(|(_, _, _, decision)| decision.is_none())
                .map(|open| {
                    let lead = self.lead.as_ref();
                    (open, lead.and_then(|lead| lead.crossing.get(open.0)))
                })
                .collect::<Vec<_>>(),
        )
    }
}
