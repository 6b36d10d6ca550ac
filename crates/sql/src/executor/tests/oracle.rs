//! Planned execution against the plainest one: the cross product of the tables, every condition
//! evaluated by selecting from the product without any key, order or limit left to the planner.

use std::fmt::Write as _;

use super::world::World;

/// A small generator: the test needs many cases, not good randomness.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

fn world(dice: &mut Dice, keyed: bool) -> World {
    let mut world = World::new();
    let (primary, indexes): (&str, &[&str]) = if keyed {
        ("id", &["n", "t,n", "+u"])
    } else {
        ("", &[])
    };
    for table in ["a", "b", "c"] {
        world.table(table, "id int!, n int, t text, u int", primary, indexes);
    }
    for table in ["a", "b", "c"] {
        let mut rows = String::new();
        for id in 1..=6_usize {
            let n = dice.pick(&["NULL", "1", "2", "3", "4"]);
            let t = dice.pick(&["NULL", "'x'", "'X'", "'y'", "'zz'"]);
            let u = dice.pick(&["NULL", "1"]);
            let u = if u == "NULL" {
                "NULL".to_string()
            } else {
                (id * 2).to_string()
            };
            write!(rows, "{}({id},{n},{t},{u})", if id > 1 { "," } else { "" }).unwrap();
        }
        world.fill(table, &rows);
    }
    world
}

fn column(dice: &mut Dice, tables: &[&str]) -> String {
    format!("{}.{}", dice.pick(tables), dice.pick(&["id", "n", "u"]))
}

fn condition(dice: &mut Dice, tables: &[&str], depth: usize) -> String {
    let number = |dice: &mut Dice| {
        dice.pick(&["0", "1", "2", "3", "4", "2.5", "'3'", "NULL"])
            .to_string()
    };
    let left = column(dice, tables);
    match dice.roll(if depth > 0 { 13 } else { 9 }) {
        0 | 1 => {
            let op = dice.pick(&["=", "<", "<=", ">", ">=", "<>", "<=>"]);
            format!("{left} {op} {}", number(dice))
        }
        2 | 3 => {
            let op = dice.pick(&["=", "=", "<", ">="]);
            format!("{left} {op} {}", column(dice, tables))
        }
        4 => format!("{left} IN ({}, {})", number(dice), number(dice)),
        5 => format!("{left} BETWEEN {} AND {}", number(dice), number(dice)),
        6 => format!("{left} IS {}NULL", dice.pick(&["", "NOT "])),
        7 => format!(
            "{}.t = {}",
            dice.pick(tables),
            dice.pick(&["'x'", "'Y'", "'zz'"])
        ),
        8 => format!("{}.t = {}.t", dice.pick(tables), dice.pick(tables)),
        9 => format!(
            "({} OR {})",
            condition(dice, tables, depth - 1),
            condition(dice, tables, depth - 1)
        ),
        10 => format!("NOT ({})", condition(dice, tables, depth - 1)),
        11 => {
            let not = dice.pick(&["", "NOT "]);
            let inner = condition(dice, &["s"], 0);
            format!("{not}EXISTS (SELECT 1 FROM c s WHERE s.n = {left} AND {inner})")
        }
        _ => {
            let not = dice.pick(&["", "NOT "]);
            let inner = condition(dice, &["s"], 0);
            format!("{left} {not}IN (SELECT s.n FROM b s WHERE {inner})")
        }
    }
}

fn conditions(dice: &mut Dice, tables: &[&str]) -> String {
    let count = 1 + dice.roll(3);
    let all: Vec<String> = (0..count).map(|_| condition(dice, tables, 1)).collect();
    all.join(" AND ")
}

/// A query over keyed tables and its twin, whose FROM hides the tables from every optimisation.
fn query(dice: &mut Dice) -> (String, bool) {
    let tables = ["a", "b", "c"];
    let count = 1 + dice.roll(3);
    let mut from = "a".to_string();
    for (at, table) in tables.iter().enumerate().take(count).skip(1) {
        let on = conditions(dice, &tables[..=at]);
        let join = dice.pick(&["JOIN", "LEFT JOIN", "LEFT JOIN"]);
        write!(from, " {join} {table} ON {on}").unwrap();
    }
    let tables = &tables[..count];
    let filter = conditions(dice, tables);
    let ids: Vec<String> = tables.iter().map(|t| format!("{t}.id")).collect();
    let ids = ids.join(", ");
    match dice.roll(4) {
        0 => {
            let key = column(dice, tables);
            let other = column(dice, tables);
            let sql = format!(
                "SELECT {key} k, COUNT(*), COUNT({other}), MIN({other}), SUM({other}) FROM {from} \
                 WHERE {filter} GROUP BY {key}"
            );
            (sql, false)
        }
        1 => {
            let key = column(dice, tables);
            let direction = dice.pick(&["", " DESC"]);
            let limit = 1 + dice.roll(5);
            let ties: Vec<String> = tables
                .iter()
                .map(|t| format!("{t}.id{direction}"))
                .collect();
            let sql = format!(
                "SELECT {ids}, {key} FROM {from} WHERE {filter} ORDER BY {key}{direction}, {} LIMIT {limit}",
                ties.join(", ")
            );
            (sql, true)
        }
        2 => {
            let key = column(dice, tables);
            let call = dice.pick(&["MIN", "MAX"]);
            (
                format!("SELECT {call}({key}) FROM {from} WHERE {filter}"),
                true,
            )
        }
        _ => (format!("SELECT {ids} FROM {from} WHERE {filter}"), false),
    }
}

fn answer(world: &World, sql: &str, ordered: bool) -> String {
    let shown = world.shown(sql, &[]);
    if ordered {
        return shown;
    }
    let mut rows: Vec<&str> = shown.split(" / ").collect();
    rows.sort_unstable();
    rows.join(" / ")
}

#[test]
fn keys_and_join_order_never_change_the_answer() {
    for seed in 0..12 {
        let keyed = world(&mut Dice(seed), true);
        let plain = world(&mut Dice(seed), false);
        let mut dice = Dice(seed * 7919 + 1);
        for _ in 0..150 {
            let (sql, ordered) = query(&mut dice);
            let (with, without) = (answer(&keyed, &sql, ordered), answer(&plain, &sql, ordered));
            assert_eq!(
                with,
                without,
                "seed {seed}: {sql}\nwith keys:\n{}\nwithout:\n{}",
                keyed.tree(&sql),
                plain.tree(&sql)
            );
        }
    }
}

/// The product of the tables with the condition as a value beside each row: no pushing down, no
/// keys, no semi-joins.
fn naive(world: &World, tables: &[&str], condition: &str) -> String {
    let ids: Vec<String> = tables.iter().map(|t| format!("{t}.id")).collect();
    let sql = format!(
        "SELECT {}, ({condition}) FROM {}",
        ids.join(", "),
        tables.join(", ")
    );
    let shown = world.shown(&sql, &[]);
    let mut kept: Vec<&str> = shown
        .split(" / ")
        .filter_map(|row| row.strip_suffix("|1"))
        .collect();
    kept.sort_unstable();
    kept.join(" / ")
}

#[test]
fn inner_joins_are_the_filtered_product() {
    for seed in 100..112 {
        let keyed = world(&mut Dice(seed), true);
        let mut dice = Dice(seed * 7919 + 1);
        for _ in 0..100 {
            let tables = &["a", "b", "c"][..=dice.roll(3)];
            let filter = conditions(&mut dice, tables);
            let ids: Vec<String> = tables.iter().map(|t| format!("{t}.id")).collect();
            let sql = format!(
                "SELECT {} FROM {} WHERE {filter}",
                ids.join(", "),
                tables.join(", ")
            );
            let planned = answer(&keyed, &sql, false);
            let expected = naive(&keyed, tables, &filter);
            assert_eq!(
                planned,
                expected,
                "seed {seed}: {sql}\n{}",
                keyed.tree(&sql)
            );
        }
    }
}
