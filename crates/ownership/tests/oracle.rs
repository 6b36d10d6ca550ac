//! The graph against a naive oracle, over random schemas; and the refusals, one by one.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};

use manxdb_ownership::{
    Annotation, ColumnShape, Edge, EdgeKind, Link, Origin, OwnershipGraph, OwnershipRefusal, Rule,
    RuleAction, RuleEvent, RuleSubject, Severity, TableName, TableShape, check, report, resolve,
};
use proptest::prelude::*;

const KINDS: [EdgeKind; 4] = [
    EdgeKind::OwnedBy,
    EdgeKind::Owns,
    EdgeKind::AccessedBy,
    EdgeKind::Accesses,
];

fn name(table: &str) -> TableName {
    TableName::new("d", table)
}

fn column(name: &str) -> ColumnShape {
    ColumnShape {
        name: name.to_string(),
        is_nullable: name != "id",
        is_generated: false,
        is_text: false,
    }
}

/// A table with an id and a column for each of `links`: target and annotation.
fn table(named: &str, is_subject: bool, links: &[(&str, Annotation)]) -> TableShape {
    let mut columns = vec![column("id")];
    columns.extend((0..links.len()).map(|at| column(&format!("c{at}"))));
    TableShape {
        name: name(named),
        is_subject,
        unowned_allowed: false,
        columns,
        primary_key: vec![0],
        links: links
            .iter()
            .enumerate()
            .map(|(at, (target, annotation))| Link {
                columns: vec![at + 1],
                target: name(target),
                target_columns: vec!["id".to_string()],
                annotation: *annotation,
                edge: None,
                is_new: true,
            })
            .collect(),
        rules: Vec::new(),
    }
}

const OWNED_BY: Annotation = Annotation::Edge(EdgeKind::OwnedBy);
const OWNS: Annotation = Annotation::Edge(EdgeKind::Owns);
const ACCESSED_BY: Annotation = Annotation::Edge(EdgeKind::AccessedBy);

/// Adds a table as CREATE TABLE does.
fn create(
    tables: &mut Vec<TableShape>,
    mut made: TableShape,
) -> Result<Vec<Option<Edge>>, OwnershipRefusal> {
    let edges = resolve(&OwnershipGraph::new(tables.clone()), &made)?;
    for (link, edge) in made.links.iter_mut().zip(&edges) {
        link.edge = *edge;
        link.is_new = false;
    }
    let named = made.name.clone();
    tables.push(made);
    let checked = check(&OwnershipGraph::new(tables.clone()), &named, false);
    if checked.is_err() {
        tables.pop();
    }
    checked.map(|()| edges)
}

fn shop() -> Vec<TableShape> {
    let mut tables = Vec::new();
    for made in [
        table("users", true, &[]),
        table("stories", false, &[("users", OWNED_BY)]),
        table("taggings", false, &[("stories", Annotation::References)]),
    ] {
        create(&mut tables, made).unwrap();
    }
    tables
}

#[test]
fn a_lone_reference_to_an_owned_table_is_an_owner_and_says_that_it_is_inferred() {
    let tables = shop();
    let graph = OwnershipGraph::new(tables);
    let chains = graph.owner_chains(&name("taggings"));
    let shown: Vec<String> = chains.found.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["taggings.c0 -> stories.c0 -> users"]);
    assert_eq!(chains.found[0].origin(), Origin::Inferred);
}

#[test]
fn two_candidates_are_refused_by_their_columns() {
    let mut tables = shop();
    let links = [
        ("users", Annotation::References),
        ("stories", Annotation::References),
    ];
    let refused = create(&mut tables, table("votes", false, &links)).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("votes.c0 or votes.c1"), "{text}");
    let links = [("users", OWNED_BY), ("stories", Annotation::References)];
    let edges = create(&mut tables, table("votes", false, &links)).unwrap();
    assert!(edges[0].is_some() && edges[1].is_none());
}

#[test]
fn nothing_is_inferred_of_people_of_own_rows_and_of_what_is_marked_only() {
    let mut tables = shop();
    let plain = Annotation::References;
    for made in [
        table("invitations", true, &[("users", plain)]),
        table("tree", false, &[("tree", plain)]),
        table("logs", false, &[("users", Annotation::ReferencesOnly)]),
        table("tags", false, &[("nowhere", plain)]),
    ] {
        let edges = create(&mut tables, made).unwrap();
        assert_eq!(edges, [None]);
    }
}

#[test]
fn a_shared_file_is_owned_through_its_shares() {
    let mut tables = shop();
    create(&mut tables, table("files", false, &[])).unwrap();
    let parts = table("parts", false, &[("files", OWNED_BY)]);
    let refused = create(&mut tables, parts.clone()).unwrap_err();
    assert!(
        matches!(refused, OwnershipRefusal::TargetNotOwned { .. }),
        "{refused}"
    );
    create(
        &mut tables,
        table("shares", false, &[("files", OWNS), ("users", OWNED_BY)]),
    )
    .unwrap();
    create(&mut tables, parts).unwrap();
    let graph = OwnershipGraph::new(tables);
    let chains = graph.owner_chains(&name("parts"));
    assert_eq!(
        chains.found[0].to_string(),
        "parts.c0 -> files <- shares.c0, shares.c1 -> users"
    );
    assert!(chains.found[0].is_optional());
}

#[test]
fn a_cycle_is_refused_with_its_columns() {
    let mut tables = vec![table("users", true, &[])];
    create(&mut tables, table("a", false, &[("users", OWNED_BY)])).unwrap();
    create(&mut tables, table("b", false, &[("a", OWNED_BY)])).unwrap();
    let refused = create(
        &mut tables,
        table("c", false, &[("b", OWNED_BY), ("a", OWNS)]),
    )
    .unwrap_err();
    let text = refused.to_string();
    for column in ["c.c0", "c.c1", "b.c0"] {
        assert!(
            matches!(refused, OwnershipRefusal::Cycle { .. }) && text.contains(column),
            "{text}"
        );
    }
    let own = create(&mut tables, table("d", false, &[("d", OWNED_BY)])).unwrap_err();
    assert!(matches!(own, OwnershipRefusal::OwnTable { .. }));
    create(
        &mut tables,
        table("e", false, &[("users", OWNED_BY), ("e", ACCESSED_BY)]),
    )
    .unwrap();
}

#[test]
fn owners_that_others_need_cannot_be_taken() {
    let mut tables = shop();
    tables[1].links.clear();
    let graph = OwnershipGraph::new(tables);
    let refused = check(&graph, &name("stories"), false).unwrap_err();
    assert!(refused.to_string().contains("taggings.c0"), "{refused}");
    assert_eq!(check(&graph, &name("stories"), true), Ok(()));
    let report = report(&graph, graph.table(&name("taggings")).unwrap());
    assert_eq!(report.findings[0].severity, Severity::Error);
}

#[test]
fn a_rule_clears_no_key_nothing_that_is_not_null_and_no_other_owner() {
    let rule = |column: &str, event| Rule {
        event,
        subject: RuleSubject {
            table: None,
            column: "c0".to_string(),
        },
        action: RuleAction::Anonymise(vec![column.to_string()]),
    };
    let refusal = |rule: Rule| {
        let mut tables = shop();
        let mut made = table(
            "messages",
            false,
            &[("users", OWNED_BY), ("users", OWNED_BY)],
        );
        made.columns.push(ColumnShape {
            is_nullable: false,
            ..column("body")
        });
        made.rules.push(rule);
        create(&mut tables, made).map(drop)
    };
    assert_eq!(refusal(rule("c0", RuleEvent::Del)), Ok(()));
    assert_eq!(refusal(rule("body", RuleEvent::Get)), Ok(()));
    for column in ["id", "body", "c1", "nothing"] {
        let text = refusal(rule(column, RuleEvent::Del))
            .unwrap_err()
            .to_string();
        assert!(text.contains(&format!("messages.{column}")), "{text}");
    }
    let mut stranger = rule("c0", RuleEvent::Del);
    stranger.subject.column = "body".to_string();
    assert!(matches!(
        refusal(stranger),
        Err(OwnershipRefusal::RuleSubject { .. })
    ));
}

#[test]
fn a_link_must_lead_to_the_whole_primary_key() {
    let mut tables = shop();
    let mut made = table("votes", false, &[("users", OWNED_BY)]);
    made.links[0].target_columns = vec!["email".to_string()];
    let refused = create(&mut tables, made).unwrap_err();
    assert!(matches!(refused, OwnershipRefusal::NotPrimaryKey { .. }));
    let mut people = table("people", true, &[]);
    people.primary_key.clear();
    let refused = create(&mut tables, people).unwrap_err();
    assert!(matches!(refused, OwnershipRefusal::NoPrimaryKey { .. }));
}

/// Tables numbered from 0: whether each is a subject, and links (from, to, kind).
#[derive(Debug, Clone)]
struct Random {
    subjects: Vec<bool>,
    links: Vec<(usize, usize, usize)>,
}

fn random() -> impl Strategy<Value = Random> {
    (2_usize..7).prop_flat_map(|tables| {
        let links = prop::collection::vec((0..tables, 0..tables, 0..4_usize), 0..12);
        (prop::collection::vec(any::<bool>(), tables), links)
            .prop_map(|(subjects, links)| Random { subjects, links })
    })
}

impl Random {
    fn graph(&self) -> OwnershipGraph {
        let tables = self.subjects.iter().enumerate().map(|(at, is_subject)| {
            let links: Vec<(String, Annotation)> = self
                .links
                .iter()
                .filter(|(from, ..)| *from == at)
                .map(|(_, to, kind)| (format!("t{to}"), Annotation::Edge(KINDS[*kind])))
                .collect();
            let links: Vec<(&str, Annotation)> = links
                .iter()
                .map(|(target, a)| (target.as_str(), *a))
                .collect();
            let mut table = table(&format!("t{at}"), *is_subject, &links);
            for link in &mut table.links {
                let Annotation::Edge(kind) = link.annotation else {
                    continue;
                };
                link.edge = Some(Edge {
                    kind,
                    origin: Origin::Explicit,
                });
            }
            table
        });
        OwnershipGraph::new(tables)
    }

    /// Where owners of a table come from, by a look at each link.
    fn sources(&self, table: usize) -> Vec<usize> {
        self.links
            .iter()
            .filter_map(|(from, to, kind)| match KINDS[*kind] {
                EdgeKind::OwnedBy if *from == table => Some(*to),
                EdgeKind::Owns if *to == table => Some(*from),
                _ => None,
            })
            .collect()
    }

    /// Transitive closure, by repetition.
    fn reach(&self) -> BTreeMap<usize, BTreeSet<usize>> {
        let tables = 0..self.subjects.len();
        let mut reach: BTreeMap<usize, BTreeSet<usize>> = tables
            .map(|at| (at, self.sources(at).into_iter().collect()))
            .collect();
        for _ in 0..=self.subjects.len() {
            let before = reach.clone();
            for set in reach.values_mut() {
                let more: Vec<usize> = set.iter().flat_map(|at| before[at].clone()).collect();
                set.extend(more);
            }
        }
        reach
    }

    /// Paths to subjects, counted by recursion; only without cycles.
    fn paths(&self, table: usize) -> usize {
        let own = usize::from(self.subjects[table]);
        own + self
            .sources(table)
            .into_iter()
            .map(|on| self.paths(on))
            .sum::<usize>()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_graph_agrees_with_a_naive_oracle(random in random()) {
        let graph = random.graph();
        let reach = random.reach();
        let cyclic = reach.iter().any(|(at, reached)| reached.contains(at));
        for at in 0..random.subjects.len() {
            let named = name(&format!("T{at}"));
            let is_owned = random.subjects[at] || !random.sources(at).is_empty();
            prop_assert_eq!(graph.is_owned(&named), is_owned);
            prop_assert_eq!(graph.cycle_through(&named).is_some(), reach[&at].contains(&at));
            for other in 0..random.subjects.len() {
                let depends = at == other || reach[&at].contains(&other);
                prop_assert_eq!(graph.depends_on(&named, &name(&format!("t{other}"))), depends);
            }
            if cyclic {
                continue;
            }
            let chains = graph.owner_chains(&named);
            let to_people = chains
                .found
                .iter()
                .filter(|chain| matches!(chain.end, manxdb_ownership::ChainEnd::Subject(_)))
                .count();
            if !chains.is_cut {
                prop_assert_eq!(to_people, random.paths(at));
            }
            for chain in &chains.found {
                let mut on = named.clone();
                for hop in &chain.hops {
                    prop_assert_eq!(&hop.from, &on);
                    prop_assert!(graph.owner_hops(&on).contains(hop));
                    on = hop.to.clone();
                }
            }
        }
    }

    /// Whatever is let in, one table after the other, has no cycle and no owner that is nobody.
    #[test]
    fn what_is_let_in_leads_to_people(random in random()) {
        let mut tables = Vec::new();
        for (at, is_subject) in random.subjects.iter().enumerate() {
            let links: Vec<(String, Annotation)> = random
                .links
                .iter()
                .filter(|(from, to, _)| *from == at && *to <= at)
                .map(|(_, to, kind)| (format!("t{to}"), Annotation::Edge(KINDS[*kind])))
                .collect();
            let links: Vec<(&str, Annotation)> =
                links.iter().map(|(target, a)| (target.as_str(), *a)).collect();
            let _ = create(&mut tables, table(&format!("t{at}"), *is_subject, &links));
        }
        let missing: BTreeSet<String> = (0..random.subjects.len())
            .map(|at| format!("t{at}"))
            .filter(|named| !tables.iter().any(|table| table.name == name(named)))
            .collect();
        let graph = OwnershipGraph::new(tables.clone());
        for table in &tables {
            prop_assert!(graph.cycle_through(&table.name).is_none());
            for chain in graph.owner_chains(&table.name).found {
                match chain.end {
                    manxdb_ownership::ChainEnd::Subject(_) => {}
                    manxdb_ownership::ChainEnd::Missing(end) => {
                        prop_assert!(missing.contains(&end.name));
                    }
                    manxdb_ownership::ChainEnd::Unowned(end) => {
                        prop_assert!(false, "{} is nobody's", end);
                    }
                }
            }
        }
    }
}
