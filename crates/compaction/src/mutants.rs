//! Defects to plant, so that tests can show that they would be found.

/// A planted defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// A write to etcd is taken whoever leads.
    WritesWhoeverLeads,
}
