//! Views over joins.

use super::{counts, fresh, sorted};

#[test]
fn joins_follow_the_changes_of_each_table() {
    let (_instance, mut client) = fresh();
    client.run("CREATE TABLE tag (id INT PRIMARY KEY, item_id INT, word VARCHAR(9), KEY by_item (item_id))");
    client.run("CREATE MATERIALIZED VIEW inner_join AS SELECT item.id, word FROM item JOIN tag ON tag.item_id = item.id WHERE owner = ?");
    client.run("CREATE MATERIALIZED VIEW left_join AS SELECT kind, COUNT(*), COUNT(tag.id) FROM item LEFT JOIN tag ON tag.item_id = item.id AND tag.word <> 'no' WHERE owner = ? GROUP BY kind");
    client.run("INSERT INTO item VALUES (1, 7, 1, 1, 'a', NULL), (2, 7, 1, 1, 'b', NULL), (3, 8, 1, 1, 'c', NULL)");
    let inner = "SELECT item.id, word FROM item JOIN tag ON tag.item_id = item.id WHERE owner = 7";
    let left = "SELECT kind, COUNT(*), COUNT(tag.id) FROM item LEFT JOIN tag ON tag.item_id = item.id AND tag.word <> 'no' WHERE owner = 7 GROUP BY kind";
    let mut steps = 0;
    for text in [
        "SELECT 1",
        "INSERT INTO tag VALUES (1, 1, 'x'), (2, 1, 'no'), (3, 3, 'y')",
        "INSERT INTO tag VALUES (4, 1, 'z'), (5, 2, 'z')",
        "UPDATE tag SET item_id = 2 WHERE id = 1",
        "UPDATE tag SET word = 'yes' WHERE word = 'no'",
        "BEGIN; UPDATE item SET id = 9 WHERE id = 1; UPDATE tag SET item_id = 9 WHERE item_id = 1; COMMIT",
        "UPDATE item SET owner = 7",
        "DELETE FROM tag WHERE item_id = 9",
        "DELETE FROM item",
    ] {
        client.run(text);
        let extra = " AND item.id = item.id";
        assert_eq!(
            sorted(&mut client, inner),
            sorted(&mut client, &format!("{inner}{extra}")),
            "{text}"
        );
        let base = left.replace(" GROUP", &format!("{extra} GROUP"));
        assert_eq!(
            sorted(&mut client, left),
            sorted(&mut client, &base),
            "{text}"
        );
        steps += 1;
    }
    assert_eq!(
        counts(&mut client, "inner_join"),
        (steps - 1, 1),
        "it was filled once"
    );
    assert_eq!(
        counts(&mut client, "left_join"),
        (steps - 1, 1),
        "it was filled once"
    );
}

/// The tables that the notifications of Lobsters join, as the site has them.
const LOBSTERS: &str = "CREATE TABLE stories (id INT PRIMARY KEY, user_id INT NOT NULL, title VARCHAR(20)); \
    CREATE TABLE comments (id INT PRIMARY KEY, created_at DATETIME NOT NULL, story_id INT NOT NULL, \
        user_id INT NOT NULL, parent_comment_id INT, upvotes INT NOT NULL, downvotes INT NOT NULL, \
        is_deleted INT, is_moderated INT, KEY comments_story_id (story_id)); \
    CREATE TABLE read_ribbons (id INT PRIMARY KEY, is_following INT, updated_at DATETIME NOT NULL, \
        user_id INT, story_id INT, KEY read_ribbons_user_id (user_id), \
        KEY read_ribbons_story_id (story_id))";

const NOTIFICATIONS: &str = "SELECT read_ribbons.user_id, COUNT(*) AS notifications FROM read_ribbons \
    INNER JOIN stories ON stories.id = read_ribbons.story_id \
    INNER JOIN comments ON comments.story_id = read_ribbons.story_id \
    LEFT JOIN comments AS parent_comments ON parent_comments.id = comments.parent_comment_id \
    WHERE read_ribbons.is_following = 1 \
    AND comments.user_id <> read_ribbons.user_id \
    AND comments.is_deleted = 0 AND comments.is_moderated = 0 \
    AND comments.upvotes - comments.downvotes >= 0 \
    AND read_ribbons.updated_at < comments.created_at \
    AND ((parent_comments.user_id = read_ribbons.user_id \
    AND parent_comments.upvotes - parent_comments.downvotes >= 0) \
    OR (parent_comments.id IS NULL AND stories.user_id = read_ribbons.user_id)) \
    GROUP BY read_ribbons.user_id HAVING read_ribbons.user_id = ?";

#[test]
fn the_notifications_of_lobsters_are_held_once_an_index_leads_to_answers() {
    let (_instance, mut client) = fresh();
    client.run(LOBSTERS);
    let create = format!("CREATE MATERIALIZED VIEW notifications AS {NOTIFICATIONS}");
    let error = client.error(&create);
    assert_eq!(error.code, 1235);
    assert!(
        error
            .message
            .contains("index on comments (parent_comment_id"),
        "{}",
        error.message
    );
    client.run("ALTER TABLE comments ADD INDEX by_parent (parent_comment_id)");
    client.run(&create);
    client.run("INSERT INTO stories VALUES (1, 1, 's'), (2, 2, 't')");
    client.run("INSERT INTO read_ribbons VALUES (1, 1, '2024-01-01', 1, 1), (2, 1, '2024-01-01', 2, 1), (3, 0, '2024-01-01', 1, 2)");
    let look = |client: &mut manxdb_fixtures::sql::Client, user: i64| {
        let viewed = client.rows(&NOTIFICATIONS.replace('?', &user.to_string()));
        let base = NOTIFICATIONS.replace('?', &format!("{user} AND COUNT(*) = COUNT(*)"));
        let base = base.replace("WHERE ", "WHERE stories.id = stories.id AND ");
        assert_eq!(viewed, client.rows(&base));
        viewed
    };
    for user in 1..3 {
        assert!(look(&mut client, user).is_empty());
    }
    for text in [
        "INSERT INTO comments VALUES (1, '2024-01-02', 1, 2, NULL, 1, 0, 0, 0)",
        "INSERT INTO comments VALUES (2, '2024-01-03', 1, 1, 1, 1, 0, 0, 0), (3, '2024-01-03', 1, 3, 2, 1, 0, 0, 0)",
        "UPDATE comments SET downvotes = 5 WHERE id = 1",
        "UPDATE comments SET upvotes = 9 WHERE id = 1",
        "UPDATE comments SET user_id = 3 WHERE id = 2",
        "UPDATE read_ribbons SET is_following = 1 WHERE id = 3",
        "UPDATE comments SET story_id = 2",
        "UPDATE read_ribbons SET updated_at = '2024-01-03' WHERE user_id = 1",
        "DELETE FROM comments WHERE id = 2",
        "UPDATE stories SET user_id = 3",
        "DELETE FROM read_ribbons",
    ] {
        client.run(text);
        for user in 1..3 {
            look(&mut client, user);
        }
    }
    assert_eq!(
        counts(&mut client, "notifications"),
        (22, 2),
        "each key was filled once"
    );
}

#[test]
fn a_fill_goes_by_the_sizes_of_tables_that_they_have_when_the_query_is_planned() {
    let (_instance, mut client) = fresh();
    client.run(LOBSTERS);
    client.run("ALTER TABLE comments ADD INDEX by_parent (parent_comment_id)");
    // By these statistics the ribbons are the most, and stories and comments are hardly there.
    let ribbons: Vec<String> = (1..=40)
        .map(|id| format!("({id}, 1, '2024-01-01', {}, 1)", id % 2))
        .collect();
    client.run(&format!(
        "INSERT INTO read_ribbons VALUES {}",
        ribbons.join(", ")
    ));
    client.run("ANALYZE TABLE stories, comments, read_ribbons");
    client.run(&format!(
        "CREATE MATERIALIZED VIEW notifications AS {NOTIFICATIONS}"
    ));
    let ask = |user: u64| NOTIFICATIONS.replace('?', &user.to_string());
    assert!(client.rows(&ask(1)).is_empty());
    client.run("DELETE FROM read_ribbons WHERE id > 1");
    let (stories, comments): (Vec<String>, Vec<String>) = (1..=200)
        .map(|id| {
            let comment = format!("({id}, '2024-01-02', {id}, 2, NULL, 1, 0, 0, 0)");
            (format!("({id}, 1, 's')"), comment)
        })
        .unzip();
    client.run(&format!(
        "INSERT INTO stories VALUES {}",
        stories.join(", ")
    ));
    client.run(&format!(
        "INSERT INTO comments VALUES {}",
        comments.join(", ")
    ));
    client.run("UPDATE read_ribbons SET user_id = 7");
    client.run("ANALYZE TABLE stories, comments, read_ribbons");
    let touched = |client: &mut manxdb_fixtures::sql::Client| -> u64 {
        client.rows("SHOW MATERIALIZED VIEWS")[0][9]
            .parse()
            .unwrap()
    };
    let before = touched(&mut client);
    assert!(client.rows(&ask(8)).is_empty());
    assert_eq!(counts(&mut client, "notifications").1, 2, "another fill");
    let read = touched(&mut client) - before;
    assert!(
        read <= 4,
        "a fill of no ribbon touches no stories: {read} rows"
    );
}
