//! Defects to plant, so that tests can show that they would be found.

/// A planted defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// etcd accepts a write whether its author leads or not.
    WritesWhoeverLeads,
}
