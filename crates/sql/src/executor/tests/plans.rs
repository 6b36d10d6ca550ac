//! Plans: which keys and orders they use, what they count, and the rows a modification reads.

use super::shop::shop;
use super::world::World;
use crate::types::Value;

#[test]
fn plans_use_keys_and_orders() {
    let world = shop();
    for (sql, part) in [
        (
            "SELECT * FROM users WHERE id = 1",
            "Single-row index lookup on users using PRIMARY",
        ),
        (
            "SELECT * FROM users WHERE name = 'x'",
            "Single-row index lookup on users using i_name",
        ),
        (
            "SELECT * FROM users WHERE team = 1",
            "Index lookup on users using i_team_age",
        ),
        (
            "SELECT * FROM users WHERE team = 1 AND age > 3",
            "Index range scan on users using i_team_age",
        ),
        (
            "SELECT * FROM users WHERE id IN (1, 2)",
            "Index range scan on users using PRIMARY",
        ),
        (
            "SELECT * FROM users ORDER BY id DESC LIMIT 1",
            "Table scan on users (reverse)",
        ),
        (
            "SELECT * FROM users u JOIN teams t ON t.id = u.team",
            "Single-row index lookup on t using PRIMARY",
        ),
        ("SELECT COUNT(*) FROM orders", "Table scan on orders"),
        (
            "SELECT who FROM adults WHERE id = 2",
            "Single-row index lookup on users using PRIMARY",
        ),
        ("SELECT MAX(id) FROM orders", "Limit: 1 row(s)"),
        (
            "SELECT * FROM users WHERE id = 1 OR id = 3",
            "Index range scan on users using PRIMARY",
        ),
        (
            "SELECT * FROM pairs WHERE (a, b) IN ((1,2),(2,1))",
            "Index range scan on pairs using PRIMARY",
        ),
        (
            "SELECT * FROM users WHERE id IN (SELECT user_id FROM orders WHERE id = 12)",
            "Single-row index lookup on users using PRIMARY",
        ),
    ] {
        let tree = world.tree(sql);
        assert!(tree.contains(part), "{sql}\n{tree}");
    }
    let tree = world.tree("SELECT * FROM users WHERE team = 1 ORDER BY age DESC LIMIT 1");
    assert!(!tree.contains("Sort"), "{tree}");
}

#[test]
fn short_rows_are_counted_themselves_and_long_ones_by_an_index() {
    let mut world = World::new();
    world.table("short", "id int!, n int", "id", &["n"]);
    world.table(
        "long",
        "id int!, n int, a text, b text, c text",
        "id",
        &["n"],
    );
    let tree = world.tree("SELECT COUNT(*) FROM short");
    assert!(tree.contains("Table scan on short"), "{tree}");
    let tree = world.tree("SELECT COUNT(*) FROM long");
    assert!(
        tree.contains("Covering index scan on long using i_n"),
        "{tree}"
    );
}

#[test]
fn a_long_list_is_looked_up_and_never_reads_the_whole_table() {
    let world = shop();
    let list = |values: usize| vec!["?"; values].join(",");
    for values in [2, 51, 1_000] {
        let sql = format!("SELECT * FROM orders WHERE user_id IN ({})", list(values));
        let tree = world.tree(&sql);
        assert!(
            tree.contains("Index range scan on orders using i_user_id"),
            "{values}: {tree}"
        );
    }
}

#[test]
fn of_two_keys_the_one_that_bounds_more_columns_is_read() {
    let mut world = World::new();
    let indexes = ["user", "user,comment", "user,story"];
    let columns = "id int!, user int, comment int, story int";
    world.table("votes", columns, "id", &indexes);
    for (condition, index) in [
        ("story IN (1,2,3)", "i_user_story"),
        ("story = 4 AND comment IS NULL", "i_user_story"),
        ("comment IS NULL", "i_user_comment"),
    ] {
        let sql = format!("SELECT * FROM votes WHERE user = 1 AND {condition}");
        let tree = world.tree(&sql);
        assert!(tree.contains(&format!("using {index} ")), "{tree}");
    }
}

#[test]
fn rows_of_values_are_points_on_the_longest_key_and_unique_keys_come_first() {
    let mut world = World::new();
    let columns = "w int!, d int!, o int!, c int!, note int";
    world.table("orders", columns, "w,d,o", &["w,d,c,o"]);
    world.table(
        "lines",
        "w int!, d int!, o int!, n int!, i int",
        "w,d,o,n",
        &["w,i", "i"],
    );
    for (condition, scan) in [
        (
            "(w, d, o) IN ((?, ?, ?), (?, ?, ?), (?, ?, ?))",
            "Index range scan on orders using PRIMARY  (rows=3)",
        ),
        (
            "(o, w, d) IN ((5, 1, 1), (6, 1, 2))",
            "Index range scan on orders using PRIMARY  (rows=2)",
        ),
        (
            "w = 1 AND (d, o) IN ((1, 5), (2, 6))",
            "Index range scan on orders using PRIMARY  (rows=2)",
        ),
        (
            "d = 1 AND (w, o) IN ((1, 5), (1, 6))",
            "Index range scan on orders using PRIMARY  (rows=2)",
        ),
        (
            "(w = 1 AND d = 1 AND o = 5) OR (w = 1 AND d = 2 AND o IN (6, 7))",
            "Index range scan on orders using PRIMARY  (rows=3)",
        ),
        (
            "(w, d, c, o, note) IN ((1, 1, 7, 5, 0), (1, 2, 8, 6, 0))",
            "Index range scan on orders using PRIMARY  (rows=2)",
        ),
        (
            "(w, d, o) = (1, 1, 5)",
            "Single-row index lookup on orders using PRIMARY  (rows=1)",
        ),
        (
            "(w, d, c) IN ((1, 1, 7), (1, 2, 8)) AND note > 0",
            "Index range scan on orders using i_w_d_c_o  (rows=8)",
        ),
    ] {
        let tree = world.tree(&format!("SELECT * FROM orders WHERE {condition}"));
        assert!(tree.contains(scan), "{condition}\n{tree}");
    }
    let tree = world.tree("SELECT * FROM lines WHERE (w, d, o) IN ((1, 1, 5), (1, 2, 6))");
    assert!(tree.contains("using PRIMARY  (rows=8)"), "{tree}");
}

#[test]
fn a_limit_in_an_index_order_stops_early_instead_of_sorting_all_that_is_null() {
    let mut world = World::new();
    let columns = "id int!, merged int, expired int!, hotness int!";
    world.table("stories", columns, "id", &["merged", "hotness"]);
    let tree = world.tree(
        "SELECT * FROM stories WHERE merged IS NULL AND expired = 0 ORDER BY hotness LIMIT 51",
    );
    assert!(tree.contains("using i_hotness"), "{tree}");
    assert!(!tree.contains("Sort"), "{tree}");
    let newest = world.tree(
        "SELECT * FROM stories WHERE merged IS NULL AND expired = 0 ORDER BY id DESC LIMIT 51",
    );
    assert!(
        newest.contains("Table scan on stories (reverse)"),
        "{newest}"
    );
}

#[test]
fn explain_analyze_counts_rows_and_loops() {
    let world = shop();
    let sql = "SELECT u.name, t.title FROM users u JOIN teams t ON t.id = u.team";
    let plan = world.plan(sql).unwrap();
    let analysis = crate::executor::Analysis::default();
    world.run_plan(&plan, &[], Some(&analysis)).unwrap();
    let rows = crate::explain::explain(&plan, crate::explain::ExplainFormat::Tree, Some(&analysis));
    let Value::Text(text) = &rows[0][0] else {
        panic!("no text")
    };
    assert!(text.contains("rows=4.000 loops=1"), "{text}");
    assert!(text.contains("loops=4"), "{text}");
}

#[test]
fn modification_scans_carry_row_keys() {
    let world = shop();
    let query = world.query("SELECT 1 FROM users u JOIN teams t ON t.id = u.team WHERE u.id = 1");
    let sqlparser::ast::SetExpr::Select(select) = *query.body else {
        panic!("no select")
    };
    let plan = crate::binder::plan_modify(
        &world.bind_context(None),
        &select.from,
        select.selection.as_ref(),
        &[],
        None,
    )
    .unwrap();
    let (rows, _) = world.run_plan(&plan.plan, &[], None).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].len(), 4 + 1 + 2 + 1);
    assert_eq!(plan.tables[1].offset, 5);
    assert!(matches!(rows[0][4], Value::Bytes(_)) && matches!(rows[0][7], Value::Bytes(_)));
    assert_eq!(rows[0][6], Value::Text("red".into()));
}

#[test]
fn what_the_branches_of_an_or_share_joins_and_what_they_say_of_one_table_leads_to_its_index() {
    let mut world = World::new();
    world.table("people", "id int!, city int", "id", &[]);
    world.table(
        "visits",
        "id int!, person int!, kind int",
        "id",
        &["person"],
    );
    let tree = world.tree(
        "SELECT * FROM visits v, people p
         WHERE p.id = 3 AND p.id = v.person AND v.kind = 1
         OR p.id = 7 AND v.kind = 1 AND v.person = 7 AND p.id = v.person",
    );
    let wanted = ["on p using PRIMARY  (rows=2)", "on v using i_person"];
    for wanted in wanted {
        assert!(tree.contains(wanted), "{wanted}\n{tree}");
    }
    // Nothing is said of one table in every branch.
    let tree = world
        .tree("SELECT * FROM visits v, people p WHERE p.id = 3 AND v.kind = 1 OR v.person = 7");
    assert!(!tree.contains("using"), "{tree}");
}
