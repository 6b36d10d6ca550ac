//! What happened, counted.

use std::collections::BTreeMap;
use std::fmt;

use crate::topology::LinkClass;

/// Messages sent, by how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByClass {
    /// To the sender itself.
    pub own: u64,
    /// Inside a region.
    pub lan: u64,
    /// Between regions.
    pub wan: u64,
}

impl ByClass {
    fn add(&mut self, class: LinkClass) {
        match class {
            LinkClass::Own => self.own += 1,
            LinkClass::Lan => self.lan += 1,
            LinkClass::Wan => self.wan += 1,
        }
    }

    /// All of them.
    pub fn sum(&self) -> u64 {
        self.own + self.lan + self.wan
    }
}

/// Counts of one run.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    /// Events taken from the queue.
    pub events: u64,
    /// Requests that arrived at a node.
    pub requests: u64,
    /// Replies given.
    pub replies: u64,
    /// Sent messages, per label in the order of first use. A label is searched for by its
    /// address first: there are a few dozen, and they are constants.
    messages: Vec<(&'static str, ByClass)>,
    /// What went wrong, by name: faults that took effect, and what they did to messages and
    /// records.
    trouble: BTreeMap<&'static str, u64>,
}

impl Counters {
    /// A message is sent.
    pub(crate) fn message(&mut self, label: &'static str, class: LinkClass) {
        let same = |known: &(&'static str, ByClass)| std::ptr::eq(known.0, label);
        let index = self.messages.iter().position(same);
        let index = index.unwrap_or_else(|| self.index_by_text(label));
        self.messages[index].1.add(class);
    }

    fn index_by_text(&mut self, label: &'static str) -> usize {
        let index = self.messages.iter().position(|known| known.0 == label);
        index.unwrap_or_else(|| {
            self.messages.push((label, ByClass::default()));
            self.messages.len() - 1
        })
    }

    /// Something went wrong.
    pub(crate) fn trouble(&mut self, name: &'static str, count: u64) {
        if count > 0 {
            *self.trouble.entry(name).or_default() += count;
        }
    }

    /// Messages sent, by label.
    pub fn messages(&self) -> BTreeMap<&'static str, ByClass> {
        self.messages.iter().copied().collect()
    }

    /// Messages sent with a label.
    pub fn sent(&self, label: &str) -> ByClass {
        let found = self.messages.iter().find(|known| known.0 == label);
        found.map_or(ByClass::default(), |known| known.1)
    }

    /// Messages sent.
    pub fn sent_in_all(&self) -> ByClass {
        let mut all = ByClass::default();
        for (_, count) in &self.messages {
            all.own += count.own;
            all.lan += count.lan;
            all.wan += count.wan;
        }
        all
    }

    /// What went wrong, by name.
    pub fn troubles(&self) -> &BTreeMap<&'static str, u64> {
        &self.trouble
    }

    /// Adds the troubles of another run.
    pub fn add_troubles(&mut self, other: &Counters) {
        for (name, count) in &other.trouble {
            self.trouble(name, *count);
        }
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} events", self.events)?;
        for (label, count) in self.messages() {
            let ByClass { own, lan, wan } = count;
            writeln!(
                formatter,
                "{label:<24} own {own:>9} lan {lan:>9} wan {wan:>9}"
            )?;
        }
        for (name, count) in &self.trouble {
            writeln!(formatter, "{name:<24} {count:>13}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_by_the_text_of_their_label() {
        let mut counters = Counters::default();
        let other: &'static str = Box::leak("ping".to_string().into_boxed_str());
        counters.message("ping", LinkClass::Lan);
        counters.message(other, LinkClass::Wan);
        counters.message("pong", LinkClass::Own);
        let (own, lan, wan) = (0, 1, 1);
        assert_eq!(counters.sent("ping"), ByClass { own, lan, wan });
        assert_eq!(counters.sent_in_all().sum(), 3);
        assert_eq!(counters.sent("nothing").sum(), 0);
    }
}
