//! IN against the comparisons it stands for: long lists and subqueries are looked up in a set,
//! and must answer as if every value had been compared.

use super::world::World;

/// Lists long enough to be hashed, of one kind and of several, with and without NULL.
const LISTS: [&str; 9] = [
    "1, 2, 3, 4, 5, 6, 7, 8, 9, 10",
    "1, 2, NULL, 4, 5, 6, 7, 8, 9, 10",
    "0.5, 1.0, 1.50, 2.5, 100, 1e0 + 3, 7, 8, 9",
    "1.00, 1.50, 2.5, 3, 4, 5, 6, 7, 8",
    "'x', 'Y', 'zz', 'ä', 'b', 'c', 'd', 'e', 'X '",
    "'1', 'x', '2.50', 'zz', NULL, 'c', 'd', 'e', 'f'",
    "1, '2', 'x', 3.0, 4e0, NULL, '2024-01-05', 8, 9",
    "'2024-01-05', '2024-1-6', '2024-02-01 00:00:00', '1', '2', '3', '4', '5', '6'",
    "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
];

fn world() -> World {
    let mut world = World::new();
    let columns = "id int!, n int, t text, d decimal, f double, day date, at datetime";
    world.table("v", columns, "id", &[]);
    world.fill(
        "v",
        "(1,1,'x',1.00,1,'2024-01-05','2024-01-05 00:00:00'),\
         (2,2,'X',2.50,2.5,'2024-01-06','2024-01-06 10:00:00'),\
         (3,NULL,NULL,NULL,NULL,NULL,NULL),\
         (4,11,'q',100.00,100,'2024-02-01','2024-02-01 00:00:00'),\
         (5,0,'',0.00,0,'2023-01-01','2023-01-01 00:00:00'),\
         (6,4,'Zz',1.50,4,'2024-01-05','2024-01-05 00:00:01')",
    );
    world
}

/// Shows `condition` for every row.
fn shown(world: &World, condition: &str) -> String {
    world.shown(&format!("SELECT id, {condition} FROM v ORDER BY id"), &[])
}

#[test]
fn a_long_list_answers_as_its_comparisons() {
    let world = world();
    let mut answered = 0;
    for list in LISTS {
        for column in ["n", "t", "d", "f", "day", "at"] {
            let equal: Vec<String> = list
                .split(", ")
                .map(|item| format!("{column} = {item}"))
                .collect();
            let expected = shown(&world, &format!("({})", equal.join(" OR ")));
            // A text that is no date is refused beside one, either way.
            answered += usize::from(!expected.starts_with("error"));
            let found = shown(&world, &format!("{column} IN ({list})"));
            assert_eq!(found, expected, "{column} IN ({list})");
            let expected = shown(&world, &format!("NOT ({})", equal.join(" OR ")));
            let found = shown(&world, &format!("{column} NOT IN ({list})"));
            assert_eq!(found, expected, "{column} NOT IN ({list})");
        }
    }
    assert!(answered > 40, "{answered} answers");
}

#[test]
fn a_subquery_answers_as_its_comparisons() {
    let world = world();
    for list in LISTS {
        let selects: Vec<String> = list
            .split(", ")
            .map(|item| format!("SELECT {item} AS item"))
            .collect();
        let union = selects.join(" UNION ALL ");
        for column in ["n", "t", "d", "f", "day", "at"] {
            // ANY with two operators is IN, but goes through every row.
            let any = format!(
                "SELECT v.id, (SELECT MAX({column} = u.item) FROM ({union}) u) = 1 \
                 OR IF((SELECT SUM(({column} = u.item) IS NULL) FROM ({union}) u) > 0, NULL, 0) \
                 FROM v ORDER BY v.id"
            );
            let expected = world.shown(&any, &[]);
            assert!(
                !expected.starts_with("error"),
                "{column} {list}: {expected}"
            );
            let found = shown(&world, &format!("{column} IN ({union})"));
            assert_eq!(found, expected, "{column} IN ({union})");
        }
    }
}

#[test]
fn rows_of_several_columns_are_unknown_only_where_a_null_decides() {
    let world = world();
    let pairs = "SELECT 1 a, 'x' b UNION ALL SELECT 2, NULL UNION ALL SELECT 2, NULL \
                 UNION ALL SELECT 3, 'c' UNION ALL SELECT 4, 'd' UNION ALL SELECT 5, 'e' \
                 UNION ALL SELECT NULL, 'q' UNION ALL SELECT 7, 'g' UNION ALL SELECT 8, 'h'";
    assert_eq!(
        shown(&world, &format!("(n, t) IN ({pairs})")),
        "1|1 / 2|NULL / 3|NULL / 4|NULL / 5|0 / 6|0"
    );
    assert_eq!(
        shown(&world, "(n, t) IN (SELECT n, t FROM v WHERE id > 9)"),
        "1|0 / 2|0 / 3|0 / 4|0 / 5|0 / 6|0"
    );
    assert_eq!(
        shown(&world, "n IN (SELECT n FROM v WHERE id > 9)"),
        "1|0 / 2|0 / 3|0 / 4|0 / 5|0 / 6|0"
    );
}
