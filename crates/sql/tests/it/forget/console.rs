//! What the console shows of people and of certificates, and to whom.

use std::sync::Arc;

use manxdb_fixtures::sql::{connect, instance, instance_on};
use manxdb_sql::session::{Instance, PersonTree, TreeRow};
use manxdb_storage::{Direction, Durability, Engine, KeyRange, MemoryEngine, Version, WriteBatch};

use super::fill;

const ROOT: &str = "root@%";

fn tree(instance: &Arc<Instance>, id: &str) -> PersonTree {
    let tree = instance.person_tree(ROOT, "d.users", id);
    tree.expect("the person is there")
}

/// A row and what is below, a line each.
fn lines(row: &TreeRow, depth: usize, all: &mut Vec<String>) {
    let key = row.key.as_deref().unwrap_or("?");
    all.push(format!("{}{key}", "  ".repeat(depth)));
    for link in &row.links {
        let owned = if link.is_owned { "" } else { " access" };
        let line = format!("{} {} x{}{owned}", link.table, link.link, link.rows);
        all.push(format!("{}{line}", "  ".repeat(depth + 1)));
        for row in &link.shown {
            lines(row, depth + 2, all);
        }
    }
}

#[test]
fn a_tree_has_each_row_below_the_one_through_which_it_is_the_persons() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    fill(&mut client);
    client.run("CREATE TABLE seen (id INT PRIMARY KEY, user_id INT ACCESSED_BY users (id)); INSERT INTO seen VALUES (5, 1)");
    client.run("DELETE FROM tags WHERE post_id > 2; DELETE FROM posts WHERE id > 3");
    let tree = tree(&instance, "1");
    let mut found = Vec::new();
    lines(&tree.person, 0, &mut found);
    // Tags have no primary key.
    let expected = "id = 1
  d.posts posts.user_id OWNED_BY users x3
    id = 1
      d.tags tags.post_id OWNED_BY posts x2
        ?
        ?
    id = 2
      d.tags tags.post_id OWNED_BY posts x2
        ?
        ?
    id = 3
  d.shares shares.user_id OWNED_BY users x2
    id = 1
      d.files shares.file_id OWNS files x1
        id = 1
          d.lines lines.file_id OWNED_BY files x1
            id = 1
    id = 2
      d.files shares.file_id OWNS files x1
        id = 2
          d.lines lines.file_id OWNED_BY files x1
            id = 2
  d.seen seen.user_id ACCESSED_BY users x1 access
    id = 5";
    assert_eq!(found.join("\n"), expected);
    let counted = tree.tables.iter().map(|table| table.owned + table.accessed);
    assert_eq!(
        counted.sum::<u64>(),
        found
            .iter()
            .filter(|line| line.contains('=') || line.ends_with('?'))
            .count() as u64
    );
    // No value but keys is in it.
    assert!(!format!("{tree:?}").contains("\"a\""), "{tree:?}");
}

#[test]
fn of_many_rows_some_are_shown_and_all_are_counted() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    fill(&mut client);
    let rows: Vec<String> = (100..400).map(|id| format!("({id}, 1)")).collect();
    client.run(&format!("INSERT INTO posts VALUES {}", rows.join(", ")));
    let tree = tree(&instance, "1");
    let posts = tree
        .person
        .links
        .iter()
        .find(|link| link.table == "d.posts");
    let posts = posts.expect("posts");
    // Twelve of them have tags, which are shown with all that leads to them.
    assert_eq!((posts.rows, posts.shown.len()), (312, 20));
    let with_tags = posts.shown.iter().filter(|row| !row.links.is_empty());
    assert_eq!(with_tags.count(), 12);
}

#[test]
fn who_may_see_people_sees_keys_only_of_tables_it_may_read() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    fill(&mut client);
    client.run(
        "CREATE USER dpo, eve, half; GRANT GDPR ON d.* TO dpo, half; GRANT SELECT ON d.posts TO half;
         GRANT SELECT, DELETE ON d.* TO eve; CREATE DATABASE e; CREATE DATA_SUBJECT TABLE e.people (id INT PRIMARY KEY)",
    );
    let of = |account: &str| instance.person_tree(&format!("{account}@%"), "d.users", "1");
    for nobody in ["eve", "mallory"] {
        let error = of(nobody).expect_err("it may not");
        assert_eq!(error.code, 1044, "{nobody}: {error}");
        let identity = format!("{nobody}@%");
        assert_eq!(
            instance
                .certificates(&identity)
                .expect_err("it may not")
                .code,
            1044
        );
        assert_eq!(
            instance
                .certificate(&identity, 1)
                .expect_err("it may not")
                .code,
            1044
        );
        assert_eq!(
            instance
                .kinds_of_people(&identity)
                .expect_err("it may not")
                .code,
            1044
        );
    }
    assert_eq!(
        instance.kinds_of_people("dpo@%").expect("some"),
        ["d.users"]
    );
    assert_eq!(
        instance.kinds_of_people(ROOT).expect("all"),
        ["d.users", "e.people"]
    );
    let (all, without, half) = (tree(&instance, "1"), of("dpo"), of("half"));
    let (without, half) = (without.expect("counts"), half.expect("counts"));
    let rows = |tree: &PersonTree| -> Vec<(String, u64)> {
        let tables = tree.tables.iter();
        tables
            .map(|table| (table.name.clone(), table.owned))
            .collect()
    };
    assert_eq!(rows(&without), rows(&all));
    assert_eq!(rows(&half), rows(&all));
    assert!(!format!("{without:?}").contains("id ="), "{without:?}");
    assert!(format!("{half:?}").contains("id = 12"));
    assert_eq!(half.person.key, None);
    let other = instance.person_tree("dpo@%", "e.people", "1");
    let error = other.expect_err("it may not see that database");
    assert!(
        error.code == 51004 && error.message.ends_with("are: d.users"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_shown_is_said() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    fill(&mut client);
    client.run("CREATE DATA_SUBJECT TABLE firms (land CHAR(2), id INT, PRIMARY KEY (land, id)); INSERT INTO firms VALUES ('de', 7)");
    client.run("GDPR FORGET users 2");
    let error = |kind: &str, id: &str| {
        let error = instance.person_tree(ROOT, kind, id).expect_err("nobody");
        assert_eq!(error.code, 51004, "{kind} {id}: {error}");
        error.message
    };
    assert!(error("d.posts", "1").contains("those that you may see are: d.firms, d.users"));
    assert!(error("d", "1").contains("'d' is no table of people"));
    assert!(error("d.users", "70").contains("no row with the key 70"));
    assert!(error("d.users", "x").contains("can have the key x"));
    assert!(error("d.users", "1.4").contains("can have the key 1.4"));
    assert!(error("d.users", "1 OR 1=1").contains("can have the key"));
    assert!(error("d.users", " ").contains("its primary key: id"));
    assert!(error("d.users", "2").contains("it was forgotten by request 1"));
    assert!(error("d.firms", "de").contains("its primary key: land, id"));
    let firm = instance
        .person_tree(ROOT, "d.firms", "de, 7")
        .expect("a firm");
    assert_eq!(firm.person.key.as_deref(), Some("land = de, id = 7"));
}

#[test]
fn certificates_are_listed_with_what_is_wrong_with_them() {
    let engine = Arc::new(MemoryEngine::new());
    let instance = instance_on(engine.clone());
    let mut client = connect(&instance, "root");
    assert!(instance.certificates(ROOT).expect("none").is_empty());
    fill(&mut client);
    client.run("CREATE USER dpo; CREATE DATABASE e; GRANT GDPR ON e.* TO dpo");
    client.run("GDPR FORGET users 1 REASON 'ticket'; GDPR FORGET users 2 GRACE 3 DAY");
    let listed = instance.certificates(ROOT).expect("two");
    let told: Vec<_> = listed
        .iter()
        .map(|one| {
            (
                one.request,
                one.kind.as_str(),
                one.done.is_some(),
                one.problems.len(),
            )
        })
        .collect();
    assert_eq!(told, [(2, "d.users", false, 0), (1, "d.users", true, 0)]);
    let text = instance.certificate(ROOT, 1).expect("a certificate");
    assert_eq!(
        manxdb_ownership::proof::verify(&text, None).problems,
        [""; 0]
    );
    assert!(
        !format!("{listed:?}").contains("ticket"),
        "reasons may name people"
    );
    assert!(instance.certificates("dpo@%").expect("its own").is_empty());
    for request in [1, 9] {
        let other = instance.certificate("dpo@%", request);
        assert_eq!(other.expect_err("not its own").code, 51004);
    }
    // A record that is changed behind the server's back.
    let at = engine.latest().expect("a version");
    let range = KeyRange::prefix(&[0x02, 0x14]);
    let mut cursor = engine
        .scan(&range, at, Direction::Forward)
        .expect("records");
    let entry = cursor.next().expect("a record").expect("a record");
    let (key, mut record) = (entry.key.to_vec(), entry.value.to_vec());
    drop(cursor);
    let place = record.windows(6).position(|bytes| bytes == b"ticket");
    record[place.expect("its reason")] ^= 1;
    let writes = vec![(Version(at.0 + 1), key, Some(record))];
    let written = engine.write(&WriteBatch { writes }, Durability::Sync);
    written.expect("a record is damaged");
    drop((client, instance));
    let instance = instance_on(engine);
    let listed = instance.certificates(ROOT).expect("two");
    let damaged = &listed
        .iter()
        .find(|one| one.request == 1)
        .expect("it is listed")
        .problems;
    assert!(
        damaged
            .iter()
            .any(|problem| problem.contains("audit record 1 was changed")),
        "{damaged:?}"
    );
}
