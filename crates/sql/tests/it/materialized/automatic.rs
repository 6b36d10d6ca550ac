//! `views_auto`: templates are counted, and views come and go by what they save and cost.

use manxdb_fixtures::sql::Client;

use super::{counts, fresh, sorted};

const QUERY: &str = "SELECT kind, COUNT(*) FROM item WHERE owner = 1 GROUP BY kind";

fn fill(client: &mut Client) {
    for id in 0..60 {
        let owner = id % 3;
        client.run(&format!(
            "INSERT INTO item VALUES ({id}, {owner}, {id} % 4, 1, 'n', NULL)"
        ));
    }
}

#[test]
fn templates_are_listed_with_what_a_view_would_save_and_cost() {
    let (instance, mut client) = fresh();
    fill(&mut client);
    client.rows(QUERY);
    assert!(
        client.rows("SHOW VIEW CANDIDATES").is_empty(),
        "off by default"
    );
    assert_eq!(client.value("SELECT @@views_auto"), "OFF");
    client.run("SET GLOBAL views_auto = 'advise'");
    for owner in [0, 1, 2, 0] {
        client.rows(&QUERY.replace("= 1", &format!("= {owner}")));
    }
    client.rows("SELECT id FROM item WHERE owner IN (1, 2) AND kind > 1 ORDER BY id LIMIT 3");
    client.rows("SELECT id FROM item WHERE owner = 1 AND made < NOW()");
    client.run("UPDATE item SET price = 2 WHERE owner = 1");
    let shown = client.rows("SHOW VIEW CANDIDATES");
    let queries: Vec<&str> = shown.iter().map(|row| row[2].as_str()).collect();
    assert_eq!(
        queries,
        [
            "SELECT kind, COUNT(*) FROM item WHERE owner = ? GROUP BY kind",
            "SELECT id FROM item WHERE owner IN (?) AND kind > 1 ORDER BY id LIMIT 3",
        ]
    );
    let first = &shown[0];
    let figure = |at: usize| first[at].parse::<u64>().unwrap();
    assert_eq!((first[0].as_str(), first[1].as_str()), ("d", "NULL"));
    assert_eq!((figure(3), figure(6), figure(7)), (4, 20, 20));
    assert!(figure(4) >= 20 && figure(5) == 4 * figure(4), "{first:?}");
    assert_eq!(instance.judge_views().unwrap(), 0, "advice is not followed");
    assert!(client.rows("SHOW VIEW CANDIDATES FROM mysql").is_empty());
    assert_eq!(client.error("SET GLOBAL views_auto = 'perhaps'").code, 1231);
}

#[test]
fn a_view_comes_when_it_saves_twice_its_cost_and_goes_when_it_does_not_pay() {
    let (instance, mut client) = fresh();
    fill(&mut client);
    client.run("SET GLOBAL views_auto = 'on'");
    for _ in 0..12 {
        client.rows(QUERY);
    }
    assert_eq!(instance.judge_views().unwrap(), 1);
    let views = client.rows("SHOW MATERIALIZED VIEWS");
    let name = views[0][1].clone();
    assert!(
        name.starts_with("auto_") && views[0][2] == "usable",
        "{views:?}"
    );
    assert_eq!(client.rows("SHOW VIEW CANDIDATES")[0][1], name);
    let base = QUERY.replace("= 1", "= 1 AND id = id");
    for round in 0..5 {
        assert_eq!(sorted(&mut client, QUERY), sorted(&mut client, &base));
        client.run(&format!("DELETE FROM item WHERE id = {round}"));
    }
    assert_eq!(counts(&mut client, &name), (4, 1));
    assert_eq!(instance.judge_views().unwrap(), 0, "it pays");
    for round in 0..40 {
        client.run(&format!("UPDATE item SET kind = {round} WHERE owner < 3"));
    }
    client.rows(QUERY);
    assert_eq!(instance.judge_views().unwrap(), 1);
    assert!(client.rows("SHOW MATERIALIZED VIEWS").is_empty());
    assert_eq!(sorted(&mut client, QUERY), sorted(&mut client, &base));
    // One that was made by hand stays, whatever it costs.
    client.run("CREATE MATERIALIZED VIEW own AS SELECT id, kind FROM item WHERE owner = ?");
    client.rows("SELECT id, kind FROM item WHERE owner = 1");
    client.run("UPDATE item SET kind = 1");
    assert_eq!(instance.judge_views().unwrap(), 0);
    client.run("SET GLOBAL views_auto = 'off'");
    assert_eq!(client.rows("SHOW MATERIALIZED VIEWS").len(), 1);
}
