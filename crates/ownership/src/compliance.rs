//! What `EXPLAIN COMPLIANCE` says of a table: whose its rows are, and what is wrong or doubtful with that.

use std::fmt;

use crate::graph::{Chain, ChainEnd, Chains, OwnershipGraph};
use crate::idle_rules;
use crate::shape::{Annotation, EdgeKind, Link, Origin, TableShape};

/// Chains of one table above which each row has many owners to ask.
const CHAINS_MANY: usize = 5;
/// Parts of names of columns that hold what a person is known by; `_` and `-` are left out of a name.
const PERSONAL: [&str; 13] = [
    "email",
    "password",
    "passwd",
    "firstname",
    "lastname",
    "middlename",
    "fullname",
    "surname",
    "username",
    "gender",
    "phone",
    "birth",
    "ipaddress",
];

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Note,
    /// Probably not what is wanted.
    Warning,
    /// Data of people that would not be found or could not be erased.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// Something to know of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is, and the way out.
    pub message: String,
}

/// A table's standing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableReport {
    /// `data subject`, `owned`, `data subject, owned`, `accessed` or `unowned`.
    pub kind: &'static str,
    /// Each chain as text, with where it comes from.
    pub chains: Vec<(String, Origin)>,
    /// Findings, the worst first.
    pub findings: Vec<Finding>,
}

/// The report on `table`, which `graph` holds.
#[must_use]
pub fn report(graph: &OwnershipGraph, table: &TableShape) -> TableReport {
    let chains = graph.owner_chains(&table.name);
    let mut findings = Findings::default();
    findings.of_chains(table, &chains);
    findings.of_links(graph, table);
    findings.of_access(graph, table, &chains);
    findings.of_people(graph, table);
    for rule in &table.rules {
        if let Some(why) = idle_rules::why_idle(graph, table, rule) {
            findings.add(Severity::Error, format!("{rule} is not in force: {why}"));
        }
    }
    let mut found = findings.found;
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    TableReport {
        kind: kind(graph, table),
        chains: chains
            .found
            .iter()
            .map(|c| (c.to_string(), c.origin()))
            .collect(),
        findings: found,
    }
}

fn kind(graph: &OwnershipGraph, table: &TableShape) -> &'static str {
    let owned = !graph.owner_hops(&table.name).is_empty();
    match (table.is_subject, owned) {
        (true, true) => "data subject, owned",
        (true, false) => "data subject",
        (false, true) => "owned",
        (false, false) if graph.is_accessed(&table.name) => "accessed",
        (false, false) => "unowned",
    }
}

#[derive(Default)]
struct Findings {
    found: Vec<Finding>,
}

impl Findings {
    fn add(&mut self, severity: Severity, message: String) {
        self.found.push(Finding { severity, message });
    }

    fn of_chains(&mut self, table: &TableShape, chains: &Chains) {
        for chain in &chains.found {
            match &chain.end {
                ChainEnd::Subject(_) => {}
                ChainEnd::Missing(end) => {
                    let text = format!("{chain}: table '{end}' is not there");
                    self.add(Severity::Error, text);
                }
                ChainEnd::Unowned(end) => {
                    let text = format!("{chain}: rows of '{end}' are no person's");
                    self.add(Severity::Error, text);
                }
            }
        }
        let many = chains.found.len();
        if chains.is_cut || many > CHAINS_MANY {
            let more = if chains.is_cut { "more than " } else { "" };
            let text = format!(
                "a row may be owned through {more}{many} chains: each change of owners asks them all"
            );
            self.add(Severity::Warning, text);
        }
        let optional = many > 0 && chains.found.iter().all(Chain::is_optional);
        if optional && !table.is_subject && !table.unowned_allowed {
            let text = "a row may have no owner: columns of every chain may be NULL or lead through rows \
                        that come later; make one NOT NULL, or say UNOWNED ALLOWED";
            self.add(Severity::Warning, text.to_string());
        }
        let repeated = |chain: &&Chain| {
            let owns = |hop: &&crate::graph::Hop| hop.edge.kind == EdgeKind::Owns;
            chain.hops.iter().filter(owns).count() > 1
        };
        if let Some(chain) = chains.found.iter().find(repeated) {
            let text = format!("{chain}: OWNS after OWNS multiplies the owners of a row");
            self.add(Severity::Warning, text);
        }
    }

    fn of_links(&mut self, graph: &OwnershipGraph, table: &TableShape) {
        for link in &table.links {
            let columns = table.columns_named(&link.columns);
            let target = &link.target;
            match (link.annotation, link.edge) {
                (Annotation::Edge(kind), None) => {
                    let text = format!(
                        "{columns} {} '{target}' was kept by an earlier release without a meaning: \
                         ALTER TABLE `{}` ADD {} (…) `{target}` (…)",
                        kind.word(),
                        table.name,
                        kind.word()
                    );
                    self.add(Severity::Error, text);
                }
                (Annotation::References, None) if is_of_people(graph, table, link) => {
                    let text = format!(
                        "{columns} refers to '{target}', whose rows are people's, and means nothing: \
                         say OWNED_BY, ACCESSED_BY or REFERENCES ONLY"
                    );
                    self.add(Severity::Warning, text);
                }
                (Annotation::ReferencesOnly, None)
                    if is_of_people(graph, table, link) && !is_edge_too(table, link) =>
                {
                    let text = format!(
                        "{columns} names a row of '{target}': it goes on naming it after FORGET"
                    );
                    self.add(Severity::Note, text);
                }
                _ => {}
            }
        }
    }

    /// Rows that others keep, and what they go on saying of who left.
    fn of_access(&mut self, graph: &OwnershipGraph, table: &TableShape, chains: &Chains) {
        let direct: Vec<&Link> = table
            .links
            .iter()
            .filter(|link| link.edge.is_some_and(|edge| !edge.kind.leads_to_target()))
            .collect();
        let owners = graph.owner_hops(&table.name).len();
        for link in direct {
            let Some(edge) = link.edge else { continue };
            let is_kept = owners > 1 || !edge.kind.gives_ownership();
            let is_named = |rule: &&crate::rule::Rule| {
                let at = table.position(&rule.subject.column);
                rule.event == crate::rule::RuleEvent::Del
                    && rule.subject.table.is_none()
                    && at.is_some_and(|at| link.columns.contains(&at))
            };
            if is_kept && !table.rules.iter().any(|rule| is_named(&rule)) {
                let text = format!(
                    "{}: no ON DEL rule says what a row that others keep shows of a person who left",
                    table.columns_named(&link.columns)
                );
                self.add(Severity::Note, text);
            }
        }
        let inferred = |chain: &&Chain| {
            chain
                .hops
                .first()
                .is_some_and(|hop| hop.edge.origin == Origin::Inferred)
        };
        if let Some(chain) = chains.found.iter().find(inferred) {
            let text = format!("{chain}: inferred from the only REFERENCES; OWNED_BY would say so");
            self.add(Severity::Note, text);
        }
    }

    fn of_people(&mut self, graph: &OwnershipGraph, table: &TableShape) {
        let personal: Vec<&str> = table
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .filter(|name| is_personal(name))
            .collect();
        if !graph.is_owned(&table.name) && !personal.is_empty() {
            let text = format!(
                "nobody owns these rows, and they seem to hold what a person is known by: {}",
                personal.join(", ")
            );
            self.add(Severity::Warning, text);
        }
        let natural = table
            .primary_key
            .iter()
            .filter_map(|at| table.columns.get(*at));
        let natural: Vec<&str> = natural
            .filter(|column| column.is_text && (table.is_subject || is_personal(&column.name)))
            .map(|column| column.name.as_str())
            .collect();
        if graph.is_owned(&table.name) && !natural.is_empty() {
            let text = format!(
                "the primary key ({}) is what a person is called: it stays readable in keys; use a number",
                natural.join(", ")
            );
            self.add(Severity::Error, text);
        }
    }
}

/// Whether the link leads to rows of people, other than of its own table.
fn is_of_people(graph: &OwnershipGraph, table: &TableShape, link: &Link) -> bool {
    link.target != table.name && graph.is_owned(&link.target)
}

/// Whether another link over the same columns says what they mean.
fn is_edge_too(table: &TableShape, link: &Link) -> bool {
    let mut links = table.links.iter();
    links.any(|other| other.edge.is_some() && other.columns == link.columns)
}

fn is_personal(name: &str) -> bool {
    let name: String = name
        .chars()
        .filter(|letter| !matches!(letter, '_' | '-'))
        .flat_map(char::to_lowercase)
        .collect();
    PERSONAL.iter().any(|part| name.contains(part))
}
