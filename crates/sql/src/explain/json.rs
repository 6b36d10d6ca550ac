//! EXPLAIN FORMAT=JSON: the rows of the tabular form as a document in MySQL's shape.
//!
//! One `query_block` a SELECT. The first one is the statement's; operands of UNION stand in
//! `union_result`, every other SELECT in `subqueries` with its `select_type`. MySQL's costs are
//! left out: this planner has none.

use serde_json::{Map, Value as Json, json};

use super::table::{
    ACCESS, EXTRA, FILTERED, ID, KEY, KEY_LENGTH, POSSIBLE_KEYS, REF, ROWS, SELECT_TYPE, TABLE,
};
use crate::types::{Row, Value};

/// The document for the rows of one statement.
pub(super) fn document(rows: &[Row]) -> Json {
    let mut operands = Vec::new();
    let mut subqueries = Vec::new();
    for select in rows.chunk_by(|a, b| a.get(ID) == b.get(ID)) {
        let kind = text(select.first(), SELECT_TYPE).unwrap_or_default();
        if matches!(kind, "INSERT" | "REPLACE") {
            operands.push(json!({ "query_block": insert_block(select) }));
        } else if matches!(kind, "SIMPLE" | "PRIMARY" | "UNION" | "UPDATE" | "DELETE") {
            operands.push(json!({ "query_block": block(select) }));
        } else {
            subqueries.push(json!({ "select_type": kind, "query_block": block(select) }));
        }
    }
    let mut root = if operands.len() == 1 {
        operands.remove(0)
    } else {
        json!({ "query_block": { "union_result": { "query_specifications": operands } } })
    };
    if !subqueries.is_empty()
        && let Some(Json::Object(block)) = root.get_mut("query_block")
    {
        block.insert("subqueries".into(), Json::Array(subqueries));
    }
    root
}

/// The table of an INSERT, and the SELECT its rows come from.
fn insert_block(rows: &[Row]) -> Json {
    let (target, source) = rows.split_at(1);
    let mut own = block(target);
    if let Json::Object(own) = &mut own
        && !source.is_empty()
        && let Json::Object(mut from) = block(source)
    {
        from.remove("select_id");
        own.insert("insert_from".into(), Json::Object(from));
    }
    own
}

/// One SELECT: its table, or its tables in the order of the joins.
fn block(select: &[Row]) -> Json {
    let mut block = Map::new();
    if let Some(Value::UInt(id)) = select.first().and_then(|row| row.get(ID)) {
        block.insert("select_id".into(), json!(id));
    }
    let mut tables: Vec<Json> = select.iter().filter_map(table).collect();
    match tables.len() {
        0 => {
            let message = text(select.first(), EXTRA).unwrap_or_default();
            block.insert("message".into(), json!(message));
        }
        1 => {
            block.insert("table".into(), tables.remove(0));
        }
        _ => {
            let loops = tables.into_iter().map(|table| json!({ "table": table }));
            block.insert("nested_loop".into(), loops.collect());
        }
    }
    Json::Object(block)
}

/// What is known of one table; `None` for a SELECT without one.
fn table(row: &Row) -> Option<Json> {
    let mut table = Map::new();
    let row = Some(row);
    if let Some(verb @ ("INSERT" | "REPLACE" | "UPDATE" | "DELETE")) = text(row, SELECT_TYPE) {
        table.insert(verb.to_lowercase(), json!(true));
    }
    table.insert("table_name".into(), json!(text(row, TABLE)?));
    for (name, column) in [
        ("access_type", ACCESS),
        ("key", KEY),
        ("key_length", KEY_LENGTH),
    ] {
        if let Some(value) = text(row, column) {
            table.insert(name.into(), json!(value));
        }
    }
    for (name, column) in [("possible_keys", POSSIBLE_KEYS), ("ref", REF)] {
        if let Some(list) = text(row, column) {
            let names: Vec<&str> = list.split(',').collect();
            table.insert(name.into(), json!(names));
        }
    }
    if let Some(Value::UInt(rows)) = row.and_then(|row| row.get(ROWS)) {
        table.insert("rows_examined_per_scan".into(), json!(rows));
    }
    if let Some(Value::Double(percent)) = row.and_then(|row| row.get(FILTERED)) {
        table.insert("filtered".into(), json!(format!("{percent:.2}")));
    }
    if let Some(notes) = text(row, EXTRA).filter(|notes| !notes.is_empty()) {
        table.insert("extra".into(), json!(notes));
    }
    Some(Json::Object(table))
}

fn text(row: Option<&Row>, column: usize) -> Option<&str> {
    match row?.get(column)? {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: u64, kind: &str, table: Option<&str>) -> Row {
        let mut row = vec![Value::Null; 12];
        row[ID] = Value::UInt(id);
        row[SELECT_TYPE] = Value::Text(kind.into());
        row[EXTRA] = Value::Text("No tables used".into());
        if let Some(name) = table {
            row[TABLE] = Value::Text(name.into());
            row[ACCESS] = Value::Text("ref".into());
            row[POSSIBLE_KEYS] = Value::Text("PRIMARY,b".into());
            row[ROWS] = Value::UInt(7);
            row[FILTERED] = Value::Double(100.0);
            row[EXTRA] = Value::Text(String::new());
        }
        row
    }

    #[test]
    fn one_table_stands_in_the_block_and_two_in_a_nested_loop() {
        let one = document(&[row(1, "SIMPLE", Some("t"))]);
        let expected = json!({ "query_block": { "select_id": 1, "table": {
            "table_name": "t", "access_type": "ref", "possible_keys": ["PRIMARY", "b"],
            "rows_examined_per_scan": 7, "filtered": "100.00" } } });
        assert_eq!(one, expected);
        let two = document(&[row(1, "SIMPLE", Some("t")), row(1, "SIMPLE", Some("u"))]);
        assert_eq!(
            two["query_block"]["nested_loop"][1]["table"]["table_name"],
            "u"
        );
    }

    #[test]
    fn operands_of_a_union_and_subqueries_have_blocks_of_their_own() {
        let document = document(&[
            row(1, "PRIMARY", None),
            row(2, "UNION", Some("t")),
            row(3, "DEPENDENT SUBQUERY", Some("u")),
        ]);
        let block = &document["query_block"];
        let operands = &block["union_result"]["query_specifications"];
        assert_eq!(operands[0]["query_block"]["message"], "No tables used");
        assert_eq!(operands[1]["query_block"]["table"]["table_name"], "t");
        assert_eq!(block["subqueries"][0]["select_type"], "DEPENDENT SUBQUERY");
        assert_eq!(block["subqueries"][0]["query_block"]["select_id"], 3);
    }
}
