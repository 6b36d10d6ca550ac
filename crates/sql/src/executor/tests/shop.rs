//! A shop of a few rows, and what queries show of it.

use super::world::World;

pub(super) fn shop() -> World {
    let mut world = World::new();
    world.table(
        "users",
        "id int!, name text, age int, team int",
        "id",
        &["+name", "team,age"],
    );
    world.fill(
        "users",
        "(1,'Ann',30,1),(2,'Bob',25,1),(3,'Cleo',NULL,2),(4,'Dan',41,NULL)",
    );
    world.table("teams", "id int!, title text", "id", &[]);
    world.fill("teams", "(1,'red'),(2,'blue'),(3,'green')");
    world.table(
        "orders",
        "id int!, user_id int, total decimal, at datetime",
        "id",
        &["user_id"],
    );
    world.fill(
        "orders",
        "(10,1,9.50,'2024-01-01 10:00:00'),(11,1,20.00,'2024-01-02 11:00:00'),(12,2,5.25,'2024-01-03 12:00:00'),(13,NULL,1.00,NULL)",
    );
    world.table("pairs", "a int!, b int!, note text", "a,b", &[]);
    world.fill("pairs", "(1,1,'x'),(1,2,'y'),(2,1,'z'),(2,2,NULL)");
    world.view(
        "adults",
        "SELECT id, name AS who, age FROM users WHERE age >= 18",
    );
    world.view(
        "team_sizes",
        "SELECT team, COUNT(*) AS size FROM users GROUP BY team",
    );
    world
}

/// Each case is a query and what it shows.
pub(super) fn check(cases: &[(&str, &str)]) {
    let world = shop();
    let mut wrong = Vec::new();
    for (sql, expected) in cases {
        let shown = world.shown(sql, &[]);
        if shown != *expected {
            let message = match world.plan(sql).err().map(|e| e.message) {
                Some(message) => message,
                None => world.tree(sql),
            };
            wrong.push(format!(
                "{sql}\n  gives    {shown}\n  expected {expected}\n{message}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
