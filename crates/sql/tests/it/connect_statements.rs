//! Every statement clients send on connect is answered as the golden file says.

use manxdb_fixtures::sql::{Answer, Client, connect, instance};

fn answer(client: &mut Client, statement: &str) -> String {
    match client.try_run(statement) {
        Err(error) => format!(
            "ERROR {} ({}): {}\n",
            error.code, error.sqlstate, error.message
        ),
        Ok(answers) => match answers.last() {
            Some(Answer::Rows(names, rows)) => {
                let mut text = format!("{}\n", names.join(" | "));
                for row in rows {
                    let values: Vec<String> = row
                        .iter()
                        .map(|value| value.as_deref().unwrap_or("NULL").replace('\n', "\\n"))
                        .collect();
                    text.push_str(&format!("  {}\n", values.join(" | ")));
                }
                text
            }
            _ => "OK\n".to_string(),
        },
    }
}

#[test]
fn what_clients_send_first_is_answered_as_written_down() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE app");
    client.run("USE app");
    client.run("CREATE TABLE users (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20))");
    let home = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where the crate is");
    let path = format!("{home}/tests/golden/connect.txt");
    let wanted = std::fs::read_to_string(&path).expect("the golden file");
    let mut got = String::new();
    for line in wanted.lines() {
        if line.starts_with('#') {
            got.push_str(&format!("{line}\n"));
        } else if let Some(statement) = line.strip_prefix("> ") {
            got.push_str(&format!("{line}\n{}", answer(&mut client, statement)));
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &got).expect("the golden file is written");
        return;
    }
    assert_eq!(got, wanted, "UPDATE_GOLDEN=1 rewrites the file");
}

/// drizzle-kit asks in small letters and looks the answer up in capitals, as MySQL 8.0 gives it.
#[test]
fn columns_of_information_schema_are_called_in_capitals() {
    let mut client = connect(&instance(), "root");
    let mut names = |text: &str| match client.run(text) {
        Answer::Rows(names, _) => names,
        Answer::Done(..) => panic!("no rows: {text}"),
    };
    assert_eq!(
        names(
            "SELECT table_name, k.Column_name, ordinal_position AS place, upper(table_name)
             FROM information_schema.table_constraints AS t
             LEFT JOIN information_schema.key_column_usage AS k
             USING (constraint_name, table_schema, table_name)"
        ),
        ["TABLE_NAME", "COLUMN_NAME", "place", "upper(table_name)"]
    );
}

#[test]
fn the_collation_of_the_handshake_is_the_sessions() {
    let instance = manxdb_fixtures::sql::instance();
    let shown = |id| {
        let mut client =
            manxdb_fixtures::sql::connect_with_collation(&instance, "root", id).unwrap();
        client.rows(
            "SELECT @@character_set_client, @@character_set_connection, \
             @@character_set_results, @@collation_connection",
        )[0]
        .join(" ")
    };
    assert_eq!(shown(46), "utf8mb4 utf8mb4 utf8mb4 utf8mb4_bin");
    assert_eq!(shown(45), "utf8mb4 utf8mb4 utf8mb4 utf8mb4_general_ci");
    assert_eq!(shown(8), "latin1 latin1 latin1 latin1_swedish_ci");
    // What the server has by itself stays as it is, also for ids that nobody knows.
    let default = "utf8mb4 utf8mb4 utf8mb4 utf8mb4_0900_ai_ci";
    for id in [0, 255, 7, 60_000] {
        assert_eq!(shown(id), default, "{id}");
    }
    let mut root = manxdb_fixtures::sql::connect(&instance, "root");
    root.run("SET GLOBAL character_set_client = latin1");
    root.run("SET GLOBAL collation_connection = utf8mb4_bin");
    assert_eq!(shown(60_000), "latin1 utf8mb4 utf8mb4 utf8mb4_bin");
    // Nothing can be written in a set whose characters have two bytes at least.
    let refused = manxdb_fixtures::sql::connect_with_collation(&instance, "root", 35);
    assert_eq!(refused.err().map(|error| error.code), Some(1231));
}
