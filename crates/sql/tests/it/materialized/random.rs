//! Random schemas, queries and transactions of several sessions that take turns at every read of
//! the store: in one snapshot, what a view answers is what the base plan answers.

use manxdb_fixtures::history::Random;
use manxdb_views::mutants::Mutants;

use crate::isolation::stage::{Progress, Stage, rows_of};

/// Sessions on the stage.
const ACTORS: usize = 4;
/// Values of the key.
const OWNERS: u64 = 3;
/// Rows there may be.
const IDS: u64 = 8;

/// What all runs came to.
#[derive(Default)]
struct Counted {
    reads: usize,
    hits: u64,
    refilled: u64,
    wrong: Option<String>,
}

/// A view with the query that it answers, without its key's value, and what makes the base plan
/// answer it.
struct Asked {
    definition: String,
    query: String,
}

fn asked(random: &mut Random) -> Asked {
    if random.percent(15) {
        return asked_of_unions(random);
    }
    if random.percent(60) {
        return asked_of_joins(random);
    }
    let condition = [
        "",
        " AND kind > 1",
        " AND kind IN (0, 2)",
        " AND name IS NOT NULL",
    ];
    let condition = condition[pick(random, condition.len())];
    let shapes = [
        ("id, kind, name", " ORDER BY id"),
        ("id, price", " ORDER BY kind DESC, id LIMIT 3"),
        (
            "id, CONCAT(name, '!')",
            " ORDER BY price, id LIMIT 2 OFFSET 1",
        ),
        ("DISTINCT kind", ""),
        ("COUNT(*), COUNT(name), COUNT(DISTINCT name)", ""),
        (
            "kind, COUNT(*), SUM(price), AVG(price + kind)",
            " GROUP BY kind",
        ),
        (
            "kind, MIN(price), MAX(id)",
            " GROUP BY kind HAVING COUNT(*) > 1 ORDER BY 1",
        ),
        ("SUM(kind), MAX(price), MIN(made)", ""),
    ];
    let (list, rest) = shapes[pick(random, shapes.len())];
    Asked {
        definition: format!("SELECT {list} FROM item WHERE owner = ?{condition}{rest}"),
        query: format!("SELECT {list} FROM item WHERE owner = KEY{condition}EXTRA{rest}"),
    }
}

fn asked_of_joins(random: &mut Random) -> Asked {
    let froms = [
        "item JOIN tag ON tag.item_id = item.id",
        "item LEFT JOIN tag ON tag.item_id = item.id AND tag.word <> 'a'",
        "item JOIN item AS parent ON parent.id = item.kind",
        "item LEFT JOIN item AS parent ON parent.id = item.kind",
        "item JOIN tag ON tag.item_id = item.id LEFT JOIN item AS parent ON parent.id = item.kind",
        "tag JOIN item ON tag.item_id = item.id JOIN tag AS twin ON twin.item_id = item.id",
    ];
    let from = froms[pick(random, froms.len())];
    let other = if from.contains("parent") {
        "parent.id"
    } else {
        "tag.id"
    };
    let conditions = match pick(random, 4) {
        0 => format!(" AND ({other} IS NULL OR item.kind > 1)"),
        1 => format!(" AND {other} > 1"),
        _ => String::new(),
    };
    let shapes = [
        (format!("item.id, {other}"), ""),
        (format!("COUNT(*), COUNT({other}), MAX({other})"), ""),
        (
            format!("item.kind, COUNT(*), SUM({other}), MIN(item.price)"),
            " GROUP BY item.kind",
        ),
        ("DISTINCT item.kind".to_string(), ""),
    ];
    let (list, rest) = &shapes[pick(random, shapes.len())];
    Asked {
        definition: format!("SELECT {list} FROM {from} WHERE item.owner = ?{conditions}{rest}"),
        query: format!("SELECT {list} FROM {from} WHERE item.owner = KEY{conditions}EXTRA{rest}"),
    }
}

fn asked_of_unions(random: &mut Random) -> Asked {
    let operator = value(random, &["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]);
    let rest = value(random, &["", " ORDER BY 1, 2 LIMIT 4"]);
    let of = |key: &str, extra: [&str; 2]| {
        format!(
            "SELECT id, kind FROM item WHERE owner {key}{} {operator} \
             SELECT item_id, COUNT(*) FROM tag WHERE item_id {key}{} GROUP BY item_id{rest}",
            extra[0], extra[1]
        )
    };
    Asked {
        definition: of("= ?", ["", ""]),
        query: of("= KEY", ["EXTRA", "TAGS"]),
    }
}

fn pick(random: &mut Random, length: usize) -> usize {
    usize::try_from(random.below(length as u64)).unwrap()
}

fn value(random: &mut Random, values: &[&str]) -> String {
    values[pick(random, values.len())].to_string()
}

fn row(random: &mut Random) -> String {
    format!(
        "{}, {}, {}, {}, {}",
        value(random, &["0", "1", "2", "NULL"]),
        random.below(4),
        value(random, &["1.50", "2.25", "0.01", "NULL"]),
        value(random, &["'a'", "'A'", "'b'", "NULL"]),
        value(random, &["'2024-01-01'", "'2024-01-02 03:04:05'", "NULL"]),
    )
}

fn write(random: &mut Random) -> String {
    let id = random.below(IDS);
    match random.below(14) {
        10 | 11 => {
            let item = value(random, &["0", "1", "2", "3", "4", "5", "NULL"]);
            let word = value(random, &["'a'", "'b'", "NULL"]);
            format!("REPLACE INTO tag VALUES ({id}, {item}, {word})")
        }
        12 => "UPDATE tag SET item_id = item_id + 1 WHERE word = 'b'".to_string(),
        13 => format!("DELETE FROM tag WHERE id = {id}"),
        0..=3 => format!("REPLACE INTO item VALUES ({id}, {})", row(random)),
        4 => format!("UPDATE item SET kind = (kind + 1) % 4 WHERE id = {id}"),
        5 => format!(
            "UPDATE item SET owner = {} WHERE owner = {}",
            random.below(OWNERS),
            random.below(OWNERS)
        ),
        6 => format!("UPDATE item SET id = {} WHERE id = {id}", random.below(IDS)),
        7 => format!(
            "UPDATE item SET price = price + 0.25 WHERE kind = {}",
            random.below(4)
        ),
        8 => format!("DELETE FROM item WHERE id = {id}"),
        _ => format!("DELETE FROM item WHERE owner = {}", random.below(OWNERS)),
    }
}

/// What a session does next.
enum Deed {
    /// Reads by the view and by the base plan in one snapshot.
    Read(String, String),
    Write(Vec<String>),
    Disturb(String),
}

fn deed(random: &mut Random, views: &[Asked]) -> Deed {
    match random.below(20) {
        0 => Deed::Disturb("SET GLOBAL views_memory = 0; SET GLOBAL views_memory = 1000000".into()),
        1 if random.percent(40) => Deed::Disturb(value(
            random,
            &[
                "ALTER TABLE item ADD INDEX by_kind (kind)",
                "ALTER TABLE item DROP INDEX by_kind",
            ],
        )),
        2..=10 => {
            let asked = &views[pick(random, views.len())];
            let one = random.below(OWNERS).to_string();
            let query = if random.percent(25) {
                let other = value(random, &["0", "1", "2", "NULL"]);
                let among = format!("IN ({one}, {other}, {one})");
                asked.query.replace("= KEY", &among)
            } else {
                asked.query.replace("KEY", &one)
            };
            let base = query.replace("EXTRA", " AND item.id = item.id");
            Deed::Read(
                query.replace("EXTRA", "").replace("TAGS", ""),
                base.replace("TAGS", " AND tag.id = tag.id"),
            )
        }
        _ => {
            let count = 1 + random.below(3);
            let mut texts = vec!["BEGIN".to_string()];
            for _ in 0..count {
                texts.push(write(random));
                if random.percent(15) {
                    texts.push("SAVEPOINT s".into());
                    texts.push(write(random));
                    texts.push("ROLLBACK TO s".into());
                }
            }
            texts.push(
                if random.percent(20) {
                    "ROLLBACK"
                } else {
                    "COMMIT"
                }
                .to_string(),
            );
            if count == 1 && random.percent(50) {
                texts = vec![write(random)];
            }
            Deed::Write(texts)
        }
    }
}

/// What a session is about.
#[derive(Default)]
struct Actor {
    script: Vec<String>,
    is_read: bool,
    seen: Vec<Vec<Vec<String>>>,
    running: bool,
}

fn play(seed: u64, mutants: Mutants, counted: &mut Counted) {
    let schema = "CREATE TABLE item (id INT PRIMARY KEY, owner INT, kind INT NOT NULL, \
        price DECIMAL(8,2), name VARCHAR(20), made DATETIME, KEY by_owner (owner), KEY by_parent (kind)); \
        CREATE TABLE tag (id INT PRIMARY KEY, item_id INT, word VARCHAR(9), KEY by_item (item_id))";
    let stage = Stage::new(ACTORS, schema);
    stage.instance.plant_in_views(mutants);
    let mut random = Random::new(seed);
    let views: Vec<Asked> = (0..2).map(|_| asked(&mut random)).collect();
    for (at, view) in views.iter().enumerate() {
        let text = format!("CREATE MATERIALIZED VIEW v{at} AS {}", view.definition);
        stage.finish(0, &text).unwrap();
    }
    stage.seed(seed, 25, 0);
    let mut actors: Vec<Actor> = (0..ACTORS).map(|_| Actor::default()).collect();
    let (mut left, mut stuck) = (60, 0);
    while left > 0
        || actors
            .iter()
            .any(|actor| !actor.script.is_empty() || actor.running)
    {
        let chosen = pick(&mut random, ACTORS);
        stuck += 1;
        assert!(stuck < 2_000, "all sessions wait: seed {seed}");
        let actor = &mut actors[chosen];
        if !actor.running {
            if actor.script.is_empty() {
                if left == 0 {
                    continue;
                }
                left -= 1;
                begin(actor, deed(&mut random, &views), &mut random);
            }
            let text = actor.script.remove(0);
            stage.order(chosen, &text);
            actor.running = true;
        }
        if !stage.can_go_on(chosen) {
            continue;
        }
        stuck = 0;
        match stage.turn(chosen) {
            Progress::Paused | Progress::Waits => {}
            Progress::Answered(answer) => {
                actor.running = false;
                heard(actor, answer, seed, counted);
            }
        }
    }
    let shown = stage.rows(0, "SHOW MATERIALIZED VIEWS");
    for row in shown {
        counted.hits += row[5].parse::<u64>().unwrap();
        counted.refilled += row[7].parse::<u64>().unwrap();
    }
}

fn begin(actor: &mut Actor, deed: Deed, random: &mut Random) {
    actor.seen.clear();
    actor.is_read = matches!(deed, Deed::Read(..));
    actor.script = match deed {
        Deed::Read(viewed, base) => {
            let level = value(
                random,
                &["REPEATABLE READ", "REPEATABLE READ", "SERIALIZABLE"],
            );
            let mut script = vec![
                format!("SET TRANSACTION ISOLATION LEVEL {level}"),
                value(random, &["BEGIN", "START TRANSACTION READ ONLY"]),
            ];
            let both = [viewed, base];
            for at in 0..2 + random.below(3) {
                script.push(both[usize::try_from(at % 2).unwrap()].clone());
            }
            script.push("COMMIT".into());
            script
        }
        Deed::Write(texts) => texts,
        Deed::Disturb(text) => vec![text],
    };
}

fn heard(
    actor: &mut Actor,
    answer: manxdb_sql::error::SqlResult<Vec<manxdb_fixtures::sql::Answer>>,
    seed: u64,
    counted: &mut Counted,
) {
    let answers = match answer {
        Ok(answers) => answers,
        Err(error) => {
            let usual = [1213, 1205, 1062, 1412, 1061, 1091, 1146];
            assert!(
                usual.contains(&error.code),
                "seed {seed}: {} {error}",
                error.code
            );
            if error.code == 1213 || actor.is_read {
                // The transaction is lost.
                actor.script = vec!["ROLLBACK".into()];
                actor.is_read = false;
            }
            return;
        }
    };
    if !actor.is_read {
        return;
    }
    let rows = rows_of(&answers);
    if matches!(answers.last(), Some(manxdb_fixtures::sql::Answer::Rows(..))) {
        let mut rows = rows;
        rows.sort();
        counted.reads += 1;
        if actor.seen.first().is_some_and(|first| *first != rows) && counted.wrong.is_none() {
            counted.wrong = Some(format!("seed {seed}: {:?} and {rows:?}", actor.seen));
        }
        actor.seen.push(rows);
    }
}

fn play_all(seeds: std::ops::Range<u64>, mutants: Mutants) -> Counted {
    let mut counted = Counted::default();
    for seed in seeds {
        play(seed, mutants, &mut counted);
        if counted.wrong.is_some() {
            break;
        }
    }
    counted
}

#[test]
fn in_one_snapshot_a_view_answers_what_the_base_plan_does() {
    let runs = std::env::var("MANXDB_VIEW_RUNS").ok();
    let runs = runs.and_then(|runs| runs.parse().ok()).unwrap_or(40);
    let counted = play_all(0..runs, Mutants::default());
    assert_eq!(counted.wrong, None);
    assert!(
        counted.hits > counted.reads as u64 / 20,
        "{} hits",
        counted.hits
    );
    assert!(counted.refilled > 0, "keys were evicted");
}

#[test]
fn planted_defects_are_found() {
    let defects = [
        Mutants {
            lose_deltas: true,
            ..Mutants::default()
        },
        Mutants {
            skip_later_deltas: true,
            ..Mutants::default()
        },
        Mutants {
            read_newest: true,
            ..Mutants::default()
        },
    ];
    for mutants in defects {
        let counted = play_all(0..200, mutants);
        assert!(counted.wrong.is_some(), "{mutants:?} is not found");
    }
}
