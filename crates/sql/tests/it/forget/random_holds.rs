//! Random holds, retention, grace and requests, as days go by, against a naive oracle that keeps rows in maps.
//! Planted defects must be found by it.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_fixtures::sql::{Client, TestHost, connect};
use manxdb_sql::error::SqlResult;
use manxdb_sql::session::Instance;
use manxdb_sql::statement::ownership_mutants::{OwnershipMutant, plant};
use proptest::prelude::*;

use super::holds::audited;

const SCHEMA: &str = "CREATE DATABASE d; USE d;
    CREATE DATA_SUBJECT TABLE users (id INT PRIMARY KEY, name VARCHAR(20));
    CREATE TABLE orders (id INT PRIMARY KEY, user_id INT NOT NULL OWNED_BY users (id), note TEXT);
    CREATE TABLE invoices (id INT PRIMARY KEY, order_id INT NOT NULL OWNED_BY orders (id), paid DATE, total VARCHAR(9),
        RETAIN FOR 10 YEAR AFTER paid);
    CREATE TABLE votes (id INT PRIMARY KEY, user_id INT NOT NULL OWNED_BY users (id), what VARCHAR(9))";

const TABLES: [&str; 4] = ["users", "orders", "invoices", "votes"];
const USERS: i64 = 3;

/// What is done. Users are 1 to [`USERS`]; a table is its number in [`TABLES`].
#[derive(Debug, Clone)]
enum Deed {
    Join(i64),
    Vote(i64),
    Hold(i64, Option<usize>),
    Release(i64, Option<usize>),
    Forget(i64),
    ForgetIn(i64, i64),
    Undo(i64),
    /// Days go by.
    Pass(i64),
    /// The server goes on with what is due.
    Resume,
}

#[derive(Debug, Clone)]
struct Random {
    /// Owners of orders.
    orders: Vec<i64>,
    /// Of an order, by its number, paid so many days after the third of February 2014.
    invoices: Vec<(usize, Option<i64>)>,
    deeds: Vec<Deed>,
    batch: u32,
}

fn random() -> impl Strategy<Value = Random> {
    let user = || 1..=USERS;
    let table = || prop::option::weighted(0.7, 0..TABLES.len());
    let deed = prop_oneof![
        1 => user().prop_map(Deed::Join),
        2 => user().prop_map(Deed::Vote),
        3 => (user(), table()).prop_map(|(user, table)| Deed::Hold(user, table)),
        3 => (user(), table()).prop_map(|(user, table)| Deed::Release(user, table)),
        3 => user().prop_map(Deed::Forget),
        3 => (user(), 0..6_i64).prop_map(|(user, days)| Deed::ForgetIn(user, days)),
        3 => user().prop_map(Deed::Undo),
        3 => (1..4_i64).prop_map(Deed::Pass),
        3 => Just(Deed::Resume),
    ];
    // What is seldom met by chance.
    let released = (user(), 0..TABLES.len()).prop_map(|(user, table)| {
        vec![
            Deed::Vote(user),
            Deed::Hold(user, Some(table)),
            Deed::Forget(user),
            Deed::Release(user, None),
        ]
    });
    let undone = (user(), 0..3_i64, 0..4_i64).prop_map(|(user, days, passed)| {
        vec![
            Deed::ForgetIn(user, days),
            Deed::Pass(passed),
            Deed::Undo(user),
        ]
    });
    let deeds = prop_oneof![
        6 => deed.prop_map(|deed| vec![deed]),
        1 => released,
        1 => undone,
    ];
    let paid = prop::option::weighted(0.8, 0..12_i64);
    (
        prop::collection::vec(user(), 1..6),
        prop::collection::vec((0..6_usize, paid), 0..6),
        prop::collection::vec(deeds, 3..12),
        prop_oneof![Just(100_000_u32), 1..3_u32],
    )
        .prop_map(|(orders, invoices, deeds, batch)| Random {
            invoices: invoices
                .into_iter()
                .map(|(order, paid)| (order % orders.len(), paid))
                .collect(),
            orders,
            deeds: deeds.into_iter().flatten().collect(),
            batch,
        })
}

/// What is known of a person beside the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    None,
    /// It may be undone before that day.
    Grace {
        due: i64,
    },
    /// Some rows are put off, until that day or a release.
    PutOff {
        due: Option<i64>,
    },
}

/// Rows in maps. Days are counted from the third of February 2024.
#[derive(Debug, Default)]
struct Oracle {
    users: BTreeSet<i64>,
    orders: BTreeMap<i64, i64>,
    invoices: BTreeMap<i64, (i64, Option<i64>)>,
    votes: BTreeMap<i64, i64>,
    holds: Vec<(i64, Option<usize>)>,
    requests: BTreeMap<i64, Request>,
    forgotten: BTreeSet<i64>,
    today: i64,
}

impl Oracle {
    fn request(&self, user: i64) -> Request {
        self.requests.get(&user).copied().unwrap_or(Request::None)
    }

    fn is_held_whole(&self, user: i64) -> bool {
        self.holds.contains(&(user, None))
    }

    fn is_held(&self, user: i64, table: usize) -> bool {
        self.is_held_whole(user) || self.holds.contains(&(user, Some(table)))
    }

    /// All that may go of a person goes.
    fn erase(&mut self, user: i64) {
        let mut due: Option<i64> = None;
        let mut orders_kept = BTreeSet::new();
        let own: Vec<i64> = self
            .orders
            .iter()
            .filter(|(_, whose)| **whose == user)
            .map(|(id, _)| *id)
            .collect();
        let invoices_held = self.is_held(user, 2);
        let today = self.today;
        self.invoices.retain(|_, (order, paid)| {
            if !own.contains(order) {
                return true;
            }
            let is_kept = match paid {
                _ if invoices_held => true,
                None => true,
                // Ten years later it is the same day of February 2024.
                Some(day) if *day > today => {
                    due = Some(due.map_or(*day, |first| first.min(*day)));
                    true
                }
                Some(_) => false,
            };
            if is_kept {
                orders_kept.insert(*order);
            }
            is_kept
        });
        let orders_held = self.is_held(user, 1);
        self.orders
            .retain(|id, whose| *whose != user || orders_held || orders_kept.contains(id));
        let votes_held = self.is_held(user, 3);
        self.votes.retain(|_, whose| *whose != user || votes_held);
        let has_rows = self
            .orders
            .values()
            .chain(self.votes.values())
            .any(|whose| *whose == user);
        if has_rows || self.is_held(user, 0) {
            self.requests.insert(user, Request::PutOff { due });
        } else {
            self.users.remove(&user);
            self.requests.insert(user, Request::None);
            self.forgotten.insert(user);
        }
    }

    /// The code of the error that a deed ends with, 0: none.
    fn does(&mut self, deed: &Deed, next_vote: i64) -> u16 {
        match deed {
            Deed::Join(user) => {
                assert!(self.users.insert(*user), "who is there does not join");
                0
            }
            Deed::Vote(user) => {
                let is_there = self.users.contains(user);
                if self.request(*user) != Request::None
                    || !is_there && self.forgotten.contains(user)
                {
                    return 51002;
                }
                if !is_there {
                    return 1452;
                }
                self.votes.insert(next_vote, *user);
                0
            }
            Deed::Hold(user, table) => {
                if !self.users.contains(user) {
                    return 51004;
                }
                self.holds.push((*user, *table));
                0
            }
            Deed::Release(user, table) => {
                let before = self.holds.len();
                self.holds
                    .retain(|(held, on)| held != user || table.is_some() && on != table);
                if self.holds.len() == before {
                    return 51008;
                }
                if matches!(self.request(*user), Request::PutOff { .. }) {
                    self.erase(*user);
                }
                0
            }
            Deed::Forget(user) | Deed::ForgetIn(user, _) if !self.users.contains(user) => 51004,
            Deed::Forget(user) if self.is_held_whole(*user) => 51008,
            Deed::Forget(user) => {
                self.erase(*user);
                0
            }
            Deed::ForgetIn(user, days) => {
                if self.request(*user) != Request::None || self.is_held_whole(*user) {
                    return 51008;
                }
                let due = self.today + days;
                self.requests.insert(*user, Request::Grace { due });
                0
            }
            Deed::Undo(user) => match self.request(*user) {
                Request::Grace { due } if due > self.today => {
                    self.requests.insert(*user, Request::None);
                    0
                }
                _ => 51008,
            },
            Deed::Pass(days) => {
                self.today += days;
                0
            }
            Deed::Resume => {
                for user in 1..=USERS {
                    let due = match self.request(user) {
                        Request::Grace { due } => Some(due),
                        Request::PutOff { due } => due,
                        Request::None => None,
                    };
                    if due.is_some_and(|due| due <= self.today) {
                        self.erase(user);
                    }
                }
                0
            }
        }
    }

    /// As [`shown`] shows it.
    fn shown(&self) -> Vec<String> {
        let users = self.users.iter().map(|id| format!("users {id} user"));
        let orders = self
            .orders
            .iter()
            .map(|(id, user)| format!("orders {id} {user} note"));
        let invoices = self
            .invoices
            .iter()
            .map(|(id, (order, _))| format!("invoices {id} {order} total"));
        let votes = self
            .votes
            .iter()
            .map(|(id, user)| format!("votes {id} {user} what"));
        let rows = users.chain(orders).chain(invoices).chain(votes);
        rows.chain([format!("{} holds", self.holds.len())])
            .collect()
    }
}

/// All rows, read and opened, and how many holds there are.
fn shown(client: &mut Client) -> SqlResult<Vec<String>> {
    let mut all = Vec::new();
    for (table, columns) in [
        ("users", "id, name"),
        ("orders", "id, user_id, note"),
        ("invoices", "id, order_id, total"),
        ("votes", "id, user_id, what"),
    ] {
        let query = format!("SELECT {columns} FROM d.{table} ORDER BY id");
        // Where it fails the error is what is looked for.
        let rows = client.try_rows(&query)?;
        all.extend(rows.iter().map(|row| format!("{table} {}", row.join(" "))));
    }
    all.push(format!("{} holds", client.rows("SHOW GDPR HOLDS").len()));
    Ok(all)
}

fn on(table: Option<usize>) -> String {
    table.map_or(String::new(), |table| format!(" ON {}", TABLES[table]))
}

fn perform(
    deed: &Deed,
    next_vote: i64,
    client: &mut Client,
    instance: &Arc<Instance>,
    host: &TestHost,
) -> u16 {
    let statement = match deed {
        Deed::Join(user) => format!("INSERT INTO users VALUES ({user}, 'user')"),
        Deed::Vote(user) => format!("INSERT INTO votes VALUES ({next_vote}, {user}, 'what')"),
        Deed::Hold(user, table) => format!("GDPR HOLD users {user}{} REASON 'case'", on(*table)),
        Deed::Release(user, table) => format!("GDPR RELEASE users {user}{}", on(*table)),
        Deed::Forget(user) => format!("GDPR FORGET users {user}"),
        Deed::ForgetIn(user, days) => format!("GDPR FORGET users {user} GRACE {days} DAY"),
        Deed::Undo(user) => format!("GDPR UNDO users {user}"),
        Deed::Pass(days) => {
            host.pass_days(*days);
            return 0;
        }
        Deed::Resume => {
            let resumed = instance.resume_requests();
            return resumed.err().map_or(0, |error| error.code);
        }
    };
    client
        .try_run(&statement)
        .err()
        .map_or(0, |error| error.code)
}

fn run(random: &Random) -> Result<(), String> {
    let (instance, host) = audited();
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    client.run(&format!("SET gdpr_batch_rows = {}", random.batch));
    let mut oracle = Oracle::default();
    for user in 1..=USERS {
        client.run(&format!("INSERT INTO users VALUES ({user}, 'user')"));
        oracle.users.insert(user);
    }
    for (user, id) in random.orders.iter().zip(1..) {
        client.run(&format!("INSERT INTO orders VALUES ({id}, {user}, 'note')"));
        oracle.orders.insert(id, *user);
    }
    for ((order, paid), id) in random.invoices.iter().zip(1..) {
        let order = i64::try_from(order + 1).expect("few orders");
        let day = paid.map_or("NULL".to_string(), |day| {
            format!("DATE '2014-02-03' + INTERVAL {day} DAY")
        });
        client.run(&format!(
            "INSERT INTO invoices VALUES ({id}, {order}, {day}, 'total')"
        ));
        oracle.invoices.insert(id, (order, *paid));
    }
    for (deed, number) in random.deeds.iter().zip(1..) {
        if matches!(deed, Deed::Join(user) if oracle.users.contains(user)) {
            continue;
        }
        let code = perform(deed, number, &mut client, &instance, &host);
        let expected = oracle.does(deed, number);
        if code != expected {
            return Err(format!(
                "{number}: {deed:?}: {code}, not {expected}: {oracle:?}"
            ));
        }
        let found = shown(&mut client).map_err(|error| format!("{number}: {deed:?}: {error}"))?;
        if found != oracle.shown() {
            return Err(format!("{number}: {deed:?}: {found:?}: {oracle:?}"));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(12)
    })]

    #[test]
    fn what_is_put_off_and_what_goes_is_what_a_naive_oracle_says(random in random()) {
        prop_assert_eq!(run(&random), Ok(()));
    }
}

/// Cases that are tried for each defect.
const TRIES: usize = 60;

#[test]
fn the_oracle_finds_defects_of_holds_retention_and_grace() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    for mutant in [
        OwnershipMutant::IgnoredHold,
        OwnershipMutant::KeptAfterRelease,
        OwnershipMutant::UndoneTooLate,
        OwnershipMutant::IgnoredRetention,
        OwnershipMutant::RetentionOfADayLess,
        OwnershipMutant::KeptUnderErasedKey,
    ] {
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        plant(Some(mutant));
        let found = (0..TRIES)
            .any(|_| run(&random().new_tree(&mut runner).expect("a value").current()).is_err());
        plant(None);
        assert!(found, "{mutant:?} is not found");
    }
}
