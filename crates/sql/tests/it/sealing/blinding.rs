//! Keys of owned tables are blinded: what files hold of them, and that answers are as without.

use std::sync::Arc;

use manxdb_fixtures::sql::{Client, connect, instance_on, instance_sealed};
use manxdb_sql::session::Instance;
use manxdb_sql::statement::ownership_mutants::{OwnershipMutant, plant};
use manxdb_storage::{Engine, MemoryEngine};
use manxdb_vault::MemoryDisk;

use super::{CANARY, NEW, OLD, World, durable, found_in, stored};

/// Keys of all kinds over personal columns. Text is in collations whose keys are the text itself, numbers
/// are eight bytes that spell the canary: what lies plain is found.
const SCHEMA: &str = "CREATE DATABASE d; USE d;
    CREATE DATA_SUBJECT TABLE people (nick VARCHAR(40) COLLATE utf8mb4_0900_bin PRIMARY KEY,
        mail VARBINARY(60) UNIQUE, name VARCHAR(40) COLLATE utf8mb4_0900_bin, town VARCHAR(40),
        born BIGINT UNSIGNED PERSONAL, visits INT NOT NULL,
        KEY by_name (name, visits), KEY (born), KEY by_town (town));
    CREATE TABLE posts (id INT PRIMARY KEY, who VARCHAR(40) COLLATE utf8mb4_0900_bin NOT NULL
            OWNED_BY people (nick),
        token VARBINARY(30), body TEXT COLLATE utf8mb4_0900_bin, UNIQUE (who, token), KEY (body(12)));
    CREATE TABLE notes (post_id INT NOT NULL OWNED_BY posts (id), note VARCHAR(40) COLLATE utf8mb4_0900_bin,
        KEY (note, post_id));
    CREATE TABLE tags (id INT PRIMARY KEY, tag VARBINARY(40), KEY (tag))";

/// Rows of two people, and of nobody.
fn fill(client: &mut Client) {
    let born = u64::from_be_bytes(*b"canary-1");
    for (nick, visits) in [("canary-ann", 1), ("canary-bob", 2)] {
        client.run(&format!(
            "INSERT INTO people VALUES ('{nick}', 'canary-mail-{nick}', 'canary-name-{nick}', 'Cork', {born}, {visits})"
        ));
        client.run(&format!(
            "INSERT INTO posts VALUES ({visits}, '{nick}', 'canary-{visits}', 'canary-body-{nick}');
            INSERT INTO notes VALUES ({visits}, 'canary-note-{nick}')"
        ));
    }
    client.run("INSERT INTO tags VALUES (1, 'plain-tag')");
    client.run("UPDATE people SET name = CONCAT(name, '!'), visits = visits + 1");
}

/// As [`plain_keys`], without what was dropped.
fn plain_keys_in_use(instance: &Arc<Instance>, engine: &dyn Engine) -> usize {
    while instance.collect_garbage().expect("memory can be written") {}
    plain_keys(engine)
}

/// Keys that are stored with personal values in them.
fn plain_keys(engine: &dyn Engine) -> usize {
    let keys = stored(engine).into_iter().map(|(key, _)| key);
    let has = |key: &Vec<u8>| key.windows(CANARY.len()).any(|at| at == CANARY);
    keys.filter(has).count()
}

#[test]
fn no_file_holds_a_personal_value_of_a_key_before_forget_and_after() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let engine = durable(&data);
    let instance = instance_sealed(engine.clone(), Arc::new(MemoryDisk::default()), OLD);
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    fill(&mut client);
    assert_eq!(found_in(&data, CANARY), 0, "before FORGET");
    assert!(found_in(&data, b"plain-tag") > 1, "plain values are seen");
    assert_eq!(
        client.rows("SELECT p.nick FROM people p JOIN posts ON posts.who = p.nick JOIN notes ON post_id = posts.id WHERE mail = 'canary-mail-canary-bob'"),
        [["canary-bob"]]
    );
    client.run("GDPR FORGET people 'canary-ann'");
    assert_eq!(
        client.rows("SELECT note FROM notes"),
        [["canary-note-canary-bob"]]
    );
    assert_eq!(client.error("GDPR FORGET people 'canary-ann'").code, 51004);
    drop((client, instance, engine));
    assert_eq!(found_in(&data, CANARY), 0, "after FORGET");
}

#[test]
fn keys_that_are_not_blinded_are_found() {
    plant(Some(OwnershipMutant::PlainKey));
    let world = World::new();
    let mut client = world.client(OLD);
    client.run(SCHEMA);
    fill(&mut client);
    plant(None);
    assert!(plain_keys(world.engine.as_ref()) > 0);
}

#[test]
fn an_ordered_key_is_plain_and_compliance_says_so() {
    let world = World::new();
    let mut client = world.client(OLD);
    client.run(SCHEMA);
    fill(&mut client);
    assert_eq!(plain_keys(world.engine.as_ref()), 0);
    client.run("CREATE INDEX in_order ON people (name) ORDERED; ALTER TABLE notes ADD KEY k (note) ORDERED");
    assert_eq!(plain_keys(world.engine.as_ref()), 4);
    let found = format!("{:?}", client.rows("EXPLAIN COMPLIANCE FOR people"));
    for said in [
        "key PRIMARY: nick blinded",
        "the primary key is personal (nick)",
        "key mail: mail blinded",
        "key by_name: name blinded",
        "key born: born blinded",
        "key in_order is ORDERED: files show values of name",
        "PERSONAL: born",
    ] {
        assert!(found.contains(said), "{said} in {found}");
    }
    assert!(!found.contains("FORCE"), "{found}");
    // In its order without sorting; the blinded one is of no use, and EXPLAIN says so.
    let explained =
        |client: &mut Client, sql: &str| format!("{:?}", client.rows(&format!("EXPLAIN {sql}")));
    let ordered = explained(
        &mut client,
        "SELECT nick FROM people WHERE name > 'b' ORDER BY name LIMIT 5",
    );
    assert!(
        ordered.contains("in_order") && !ordered.contains("filesort"),
        "{ordered}"
    );
    client.run("DROP INDEX in_order ON people");
    let plan = explained(
        &mut client,
        "SELECT nick FROM people WHERE name > 'b' ORDER BY name LIMIT 5",
    );
    assert!(
        plan.contains("Blinded, no range or order: by_name"),
        "{plan}"
    );
    assert!(
        plan.contains("\"ALL\"") && plan.contains("filesort"),
        "{plan}"
    );
    let equal = explained(
        &mut client,
        "SELECT * FROM people WHERE name = 'b' AND visits > 1",
    );
    assert!(
        equal.contains("by_name") && equal.contains("range"),
        "{equal}"
    );
    let unique = explained(&mut client, "SELECT * FROM people WHERE nick = 'b'");
    assert!(unique.contains("const"), "{unique}");
}

#[test]
fn unique_values_stay_unique_and_references_hold() {
    let world = World::new();
    let mut client = world.client(OLD);
    client.run(SCHEMA);
    fill(&mut client);
    let error = client.error("INSERT INTO people VALUES ('canary-ann', 'x', '', '', 1, 1)");
    assert_eq!(error.code, 1062);
    assert!(error.message.contains("canary-ann"), "{}", error.message);
    let taken = "UPDATE people SET mail = 'canary-mail-canary-ann' WHERE nick = 'canary-bob'";
    assert_eq!(client.error(taken).code, 1062);
    assert_eq!(
        client
            .error("INSERT INTO posts VALUES (9, 'nobody', '', '')")
            .code,
        1452
    );
    assert_eq!(
        client
            .error("DELETE FROM people WHERE nick = 'canary-ann'")
            .code,
        1451
    );
    client.run("CREATE TABLE moods (id INT PRIMARY KEY, who VARCHAR(40) COLLATE utf8mb4_0900_bin,
        FOREIGN KEY (who) OWNED_BY people (nick) ON UPDATE CASCADE ON DELETE CASCADE);
        INSERT INTO moods VALUES (1, 'canary-bob'), (2, 'canary-ann'); DELETE FROM notes; DELETE FROM posts;
        UPDATE people SET nick = 'canary-cy' WHERE nick = 'canary-bob'");
    assert_eq!(
        client.rows("SELECT id, who FROM moods ORDER BY id"),
        [["1", "canary-cy"], ["2", "canary-ann"]]
    );
    client.run("DELETE FROM people WHERE nick = 'canary-cy'");
    assert_eq!(client.rows("SELECT id FROM moods"), [["2"]]);
    client.run("INSERT INTO people VALUES ('a', NULL, NULL, 'cORK', NULL, 1), ('b', NULL, NULL, NULL, NULL, 1)");
    assert_eq!(
        client
            .rows("SELECT nick FROM people WHERE born IS NULL ORDER BY nick")
            .len(),
        2
    );
    assert_eq!(
        client
            .rows("SELECT nick FROM people WHERE town = 'cork'")
            .len(),
        2,
        "its collation"
    );
}

#[test]
fn keys_from_before_are_read_as_they_are_until_they_are_made_anew() {
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
    let mut client = connect(&instance_on(Arc::clone(&engine)), "root");
    client.run(SCHEMA);
    fill(&mut client);
    let plain = plain_keys(engine.as_ref());
    assert!(plain > 10, "{plain} plain keys");
    let instance = instance_sealed(Arc::clone(&engine), Arc::new(MemoryDisk::default()), OLD);
    instance.tend_vault().expect("rows are sealed");
    let mut client = connect(&instance, "root");
    client.run("USE d");
    assert_eq!(plain_keys(engine.as_ref()), plain);
    // A key that is made now is blinded, and those there are read plain.
    client.run("CREATE INDEX later ON people (name(8)); ALTER TABLE notes ADD COLUMN more INT");
    // Its entries repeat the primary key, which is plain.
    assert_eq!(plain_keys(engine.as_ref()), plain + 2);
    let reads = [
        "SELECT nick FROM people WHERE name LIKE 'canary-%' ORDER BY name",
        "SELECT name FROM people WHERE nick >= 'canary-b'",
        "SELECT id FROM posts WHERE who = 'canary-ann' AND token = 'canary-1'",
        "SELECT note FROM notes ORDER BY note DESC",
    ];
    let before = reads.map(|sql| client.rows(sql));
    let found = format!("{:?}", client.rows("EXPLAIN COMPLIANCE FOR people"));
    assert!(
        found.contains("key PRIMARY is from before its columns were blinded"),
        "{found}"
    );
    assert!(found.contains("key later: name blinded"), "{found}");
    client.run(
        "ALTER TABLE people FORCE; ALTER TABLE posts ENGINE = InnoDB; ALTER TABLE notes FORCE",
    );
    assert_eq!(plain_keys_in_use(&instance, engine.as_ref()), 0);
    assert_eq!(reads.map(|sql| client.rows(sql)), before);
    let found = format!("{:?}", client.rows("EXPLAIN COMPLIANCE FOR people"));
    assert!(!found.contains("from before"), "{found}");
    client.run(
        "GDPR FORGET people 'canary-ann'; INSERT INTO posts VALUES (7, 'canary-bob', 'x', 'y')",
    );
    assert_eq!(client.value("SELECT COUNT(*) FROM posts"), "2");
}

#[test]
fn what_is_said_by_alter_changes_keys_while_they_serve() {
    let world = World::new();
    let instance = instance_sealed(Arc::clone(&world.engine), world.disk.clone(), OLD);
    let mut client = connect(&instance, "root");
    client.run(
        "CREATE DATABASE d; USE d; CREATE DATA_SUBJECT TABLE users (id INT PRIMARY KEY);
        CREATE TABLE files (name VARBINARY(40) PRIMARY KEY, kind VARBINARY(20), KEY (kind));
        CREATE TABLE logs (id INT PRIMARY KEY, user_id INT, entry VARBINARY(40), KEY (entry));
        INSERT INTO users VALUES (1); INSERT INTO files VALUES ('canary-file', 'canary-kind');
        INSERT INTO logs VALUES (1, 1, 'canary-log')",
    );
    assert_eq!(plain_keys_in_use(&instance, world.engine.as_ref()), 3);
    client.run("ALTER TABLE logs ADD OWNED_BY (user_id) users (id)");
    assert_eq!(plain_keys_in_use(&instance, world.engine.as_ref()), 2);
    // By another table's OWNS.
    client.run("CREATE TABLE shares (user_id INT OWNED_BY users (id), name VARBINARY(40) OWNS files (name))");
    assert_eq!(plain_keys_in_use(&instance, world.engine.as_ref()), 0);
    client.run("INSERT INTO shares VALUES (1, 'canary-file')");
    assert_eq!(
        client
            .error("INSERT INTO shares VALUES (1, 'canary-other')")
            .code,
        1452
    );
    client.run("ALTER TABLE logs DROP INDEX entry, ADD INDEX entry (entry) ORDERED");
    assert_eq!(plain_keys_in_use(&instance, world.engine.as_ref()), 1);
    client.run("ALTER TABLE logs MODIFY entry VARBINARY(40) COMMENT 'PERSONAL'");
    let marked = client.value("SELECT COUNT(*) FROM logs WHERE entry = 'canary-log'");
    assert_eq!(marked, "1");
    client.run("ALTER TABLE logs DROP OWNED_BY (user_id)");
    assert_eq!(
        client.value("SELECT COUNT(*) FROM logs WHERE entry = 'canary-log'"),
        "1"
    );
    client.run("TRUNCATE TABLE logs; INSERT INTO logs VALUES (2, NULL, 'canary-2')");
    client.run("ALTER TABLE files RENAME TO papers; GDPR FORGET users 1");
    assert_eq!(client.value("SELECT COUNT(*) FROM papers"), "0");
}

#[test]
fn a_dump_carries_what_is_said_of_keys() {
    let world = World::new();
    let mut client = world.client(OLD);
    client.run(SCHEMA);
    client.run("CREATE UNIQUE INDEX in_order ON posts (token) ORDERED COMMENT 'x'");
    let show = |client: &mut Client, table: &str| {
        let rows = client.rows(&format!("SHOW CREATE TABLE {table}"));
        rows[0][1].clone()
    };
    let shown = ["people", "posts", "notes"].map(|table| show(&mut client, table));
    assert!(
        shown[0].contains("`born` bigint unsigned DEFAULT NULL /*!99999 PERSONAL */"),
        "{}",
        shown[0]
    );
    assert!(
        shown[1].contains("UNIQUE KEY `in_order` (`token`) /*!99999 ORDERED */ COMMENT 'x'"),
        "{}",
        shown[1]
    );
    client.run("CREATE DATABASE e; USE e");
    for text in &shown {
        client.run(text);
    }
    assert_eq!(
        ["people", "posts", "notes"].map(|table| show(&mut client, table)),
        shown
    );
    client.run("CREATE TABLE like_people LIKE people; INSERT INTO like_people VALUES ('canary-x', 'canary-x', 'canary-x', 'x', 1, 1)");
    client.run("CREATE TEMPORARY TABLE mine LIKE d.notes; INSERT INTO mine VALUES (1, 'x'); INSERT INTO d.people SELECT * FROM e.like_people");
    assert_eq!(
        client.rows("SELECT nick FROM d.people WHERE mail = 'canary-x'"),
        [["canary-x"]]
    );
    assert_eq!(
        client.rows("SELECT nick FROM like_people WHERE nick = 'canary-x'"),
        [["canary-x"]]
    );
}

#[test]
fn without_its_key_a_blinded_key_answers_51005() {
    let world = World::new();
    let mut client = world.client(OLD);
    client.run(SCHEMA);
    fill(&mut client);
    for keys in ["", NEW] {
        let mut client = world.client(keys);
        assert_eq!(
            client.error("SELECT * FROM people WHERE nick = 'x'").code,
            51005
        );
        assert_eq!(
            client
                .error("INSERT INTO posts VALUES (9, 'x', 'x', 'x')")
                .code,
            51005
        );
        assert_eq!(client.rows("SELECT tag FROM tags"), [["plain-tag"]]);
    }
    let mut bare = connect(&instance_on(Arc::clone(&world.engine)), "root");
    assert_eq!(
        bare.error("SELECT * FROM d.people WHERE nick = 'x'").code,
        51005
    );
}

/// Draws of a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        let at = usize::try_from(self.below(texts.len() as u64)).expect("small");
        texts[at]
    }

    fn word(&mut self) -> String {
        let words = [
            "'Ann'", "'ANN'", "'ann '", "'änn'", "'bob'", "'Bobby'", "''", "'a'", "'z z'",
        ];
        self.of(&words).to_string()
    }

    fn nullable(&mut self) -> String {
        if self.below(6) == 0 {
            "NULL".to_string()
        } else {
            self.word()
        }
    }
}

/// A statement about the two tables of [`answers_are_those_of_an_unsealed_server`].
fn drawn(draws: &mut Draws) -> String {
    let (word, other) = (draws.word(), draws.word());
    let number = draws.below(12);
    let column = draws.of(&["name", "mail", "code", "n"]);
    let value = if column == "n" {
        number.to_string()
    } else {
        word.clone()
    };
    // Of values that compare equal either may be the least.
    let least = if column == "name" { "mail" } else { column };
    let condition = match draws.below(9) {
        0 => format!("{column} = {value}"),
        1 => format!("{column} <=> {value}"),
        2 => format!(
            "{column} IN ({value}, {}, NULL)",
            if column == "n" {
                "3".to_string()
            } else {
                other
            }
        ),
        3 => format!("{column} > {value}"),
        4 => format!(
            "{column} BETWEEN {value} AND {}",
            if column == "n" { "9" } else { "'c'" }
        ),
        5 => "name LIKE 'a%'".to_string(),
        6 => format!("name = {word} AND n >= {number}"),
        7 => format!("(name, n) IN (({word}, 3), ({other}, {number}))"),
        _ => format!("mail = {word} OR code = {other}"),
    };
    match draws.below(10) {
        0 => format!(
            "INSERT IGNORE INTO p VALUES ({}, {}, {}, {}, {number})",
            draws.below(40),
            draws.nullable(),
            draws.nullable(),
            draws.nullable()
        ),
        1 => format!(
            "UPDATE p SET {column} = {value} WHERE id = {}",
            draws.below(40)
        ),
        2 => format!("DELETE FROM p WHERE {condition} AND id % 7 = 0"),
        3 => format!("SELECT id, {column} FROM p WHERE {condition} ORDER BY {column}, id"),
        4 => format!(
            "SELECT p.id, c.id FROM p JOIN c ON c.name = p.name WHERE p.{column} = {value} ORDER BY 1, 2"
        ),
        5 => format!("SELECT COUNT(*), MIN({least}), MAX({least}) FROM p WHERE {condition}"),
        6 => format!("SELECT DISTINCT code FROM p WHERE {condition} ORDER BY code DESC LIMIT 3"),
        7 => format!("SELECT n, COUNT(*) FROM p WHERE {condition} GROUP BY n ORDER BY n"),
        8 => format!(
            "REPLACE INTO c VALUES ({word}, {number}, {})",
            draws.nullable()
        ),
        _ => {
            "SELECT c.name, c.id FROM c LEFT JOIN p ON p.code = c.name ORDER BY c.name, c.id, p.id"
                .to_string()
        }
    }
}

#[test]
fn answers_are_those_of_an_unsealed_server() {
    let schema = "CREATE DATABASE d; USE d; SET sql_mode = '';
        CREATE DATA_SUBJECT TABLE p (id INT PERSONAL PRIMARY KEY, name VARCHAR(20),
            mail VARCHAR(20) COLLATE utf8mb4_bin, code VARBINARY(20), n INT PERSONAL,
            KEY (name, n), UNIQUE (mail), KEY (code, name), KEY (n), KEY (name(2)));
        CREATE DATA_SUBJECT TABLE c (name VARCHAR(20), id INT, note VARCHAR(20), PRIMARY KEY (name, id),
            KEY (id, name), KEY (note))";
    let world = World::new();
    let mut sealed = world.client(OLD);
    let plain_engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
    let mut plain = connect(&instance_on(plain_engine), "root");
    sealed.run(schema);
    plain.run(schema);
    let mut draws = Draws(20_261_126);
    let (mut rows, mut refused) = (0, 0);
    for number in 0..1_200 {
        let sql = drawn(&mut draws);
        let (one, other) = (sealed.try_run(&sql), plain.try_run(&sql));
        match (one, other) {
            (Ok(one), Ok(other)) => {
                rows += format!("{other:?}").matches("Some").count();
                assert_eq!(format!("{one:?}"), format!("{other:?}"), "{number}: {sql}");
            }
            (Err(one), Err(other)) => {
                refused += 1;
                assert_eq!(
                    (one.code, one.message),
                    (other.code, other.message),
                    "{number}: {sql}"
                );
            }
            (one, other) => panic!("{number}: {sql}: {one:?} and {other:?}"),
        }
    }
    assert!(
        rows > 1_000 && refused > 0,
        "{rows} values, {refused} refused"
    );
    for table in ["p", "c"] {
        let sql = format!("SELECT * FROM {table} ORDER BY 1, 2");
        assert_eq!(sealed.rows(&sql), plain.rows(&sql));
    }
}
