//! Results and parameters, through a driver where it can and raw packets where it cannot.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

use crate::support::{Packet, RawClient, TestServer};
use mysql::consts::{CapabilityFlags, ColumnFlags, ColumnType};
use mysql::prelude::Queryable as _;
use mysql::{Conn, OptsBuilder, Value};

fn driver(server: &TestServer) -> Conn {
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(server.address.port())
        .user(Some("root"))
        .pass(Some(crate::support::PASSWORD))
        .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS)
        .prefer_socket(false);
    Conn::new(options).unwrap()
}

const EVERY_TYPE: &str = "CREATE TABLE d.types (
    id INT PRIMARY KEY, tiny TINYINT, small SMALLINT, medium MEDIUMINT, big BIGINT,
    huge BIGINT UNSIGNED, flag BOOLEAN, exact DECIMAL(20,4), single FLOAT, wide DOUBLE,
    fixed CHAR(5), varied VARCHAR(50), story TEXT, raw VARBINARY(20), lump BLOB,
    day DATE, span TIME(3), moment DATETIME(6), stamp TIMESTAMP, vintage YEAR, doc JSON,
    choice ENUM('a','b'))";

const EVERY_VALUE: &str = "INSERT INTO d.types VALUES
    (1, -128, -32768, -8388608, -9223372036854775808, 18446744073709551615, TRUE,
     -1234567890.1234, 1.5, -2.25e100, 'añb', 'naïve 猫', 'text', X'00FF', X'C328',
     '2026-11-21', '-838:59:58.123', '2026-11-21 19:12:18.123456', '2026-01-02 03:04:05', 2026,
     '{\"k\": [1, null]}', 'b'),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     NULL, NULL, NULL, NULL, NULL, NULL)";

/// What a value is whichever protocol carried it.
fn canonical(value: Value) -> String {
    match value {
        Value::NULL => "NULL".into(),
        Value::Bytes(bytes) => String::from_utf8(bytes.clone()).unwrap_or(format!("{bytes:?}")),
        Value::Int(i) => i.to_string(),
        Value::UInt(u) => u.to_string(),
        Value::Float(f) => f.to_string(),
        Value::Double(d) => format!("{d:e}"),
        other => other.as_sql(true).trim_matches('\'').to_owned(),
    }
}

#[test]
fn both_protocols_carry_the_same_values_of_every_type() {
    let server = TestServer::start();
    let mut client = driver(&server);
    client.query_drop("CREATE DATABASE d").unwrap();
    client.query_drop(EVERY_TYPE).unwrap();
    client.query_drop(EVERY_VALUE).unwrap();
    let query = "SELECT * FROM d.types ORDER BY id";
    let text: Vec<mysql::Row> = client.query(query).unwrap();
    let binary: Vec<mysql::Row> = client.exec(query, ()).unwrap();
    let names: Vec<String> = text[0]
        .columns_ref()
        .iter()
        .map(|c| c.name_str().into_owned())
        .collect();
    for (text, binary) in text.into_iter().zip(binary) {
        for ((name, text), binary) in names.iter().zip(text.unwrap()).zip(binary.unwrap()) {
            let (text, binary) = (canonical(text), canonical(binary));
            match name.as_str() {
                "wide" if text != "NULL" => {
                    assert_eq!(text.parse::<f64>(), binary.parse::<f64>());
                }
                "span" if text != "NULL" => {
                    assert!(
                        binary.starts_with(text.trim_end_matches('0')),
                        "{text} {binary}"
                    );
                }
                _ => assert_eq!(text, binary, "{name}"),
            }
        }
    }
}

#[test]
fn columns_announce_their_types_and_keys() {
    let server = TestServer::start();
    let mut client = driver(&server);
    client.query_drop("CREATE DATABASE d").unwrap();
    client
        .query_drop("CREATE TABLE d.t (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, f TINYINT(1), n VARCHAR(10) NOT NULL UNIQUE, j JSON)")
        .unwrap();
    let answer = client
        .query_iter("SELECT id, f AS flag, n, j FROM d.t AS x")
        .unwrap();
    let columns = answer.columns();
    let columns = columns.as_ref();
    assert_eq!(columns[0].column_type(), ColumnType::MYSQL_TYPE_LONGLONG);
    let flags = columns[0].flags();
    assert!(flags.contains(ColumnFlags::PRI_KEY_FLAG | ColumnFlags::UNSIGNED_FLAG));
    assert!(flags.contains(ColumnFlags::AUTO_INCREMENT_FLAG | ColumnFlags::NOT_NULL_FLAG));
    assert_eq!(columns[0].table_str(), "x");
    assert_eq!(columns[0].org_table_str(), "t");
    assert_eq!(columns[0].schema_str(), "d");
    assert_eq!(columns[1].column_type(), ColumnType::MYSQL_TYPE_TINY);
    assert_eq!(columns[1].column_length(), 1);
    assert_eq!(columns[1].name_str(), "flag");
    assert_eq!(columns[1].org_name_str(), "f");
    assert_eq!(columns[2].column_length(), 40);
    assert!(columns[2].flags().contains(ColumnFlags::UNIQUE_KEY_FLAG));
    assert_eq!(columns[3].column_type(), ColumnType::MYSQL_TYPE_JSON);
}

#[test]
fn parameters_of_every_kind_come_back_as_they_went() {
    let server = TestServer::start();
    let mut client = driver(&server);
    let sent = (
        -5_i64,
        u64::MAX,
        2.5_f64,
        "naïve 猫",
        Value::NULL,
        Value::Date(2026, 11, 21, 1, 2, 3, 4),
    );
    let row: mysql::Row = client
        .exec_first("SELECT ?, ?, ?, ?, ?, CAST(? AS DATETIME(6))", sent)
        .unwrap()
        .unwrap();
    let values: Vec<String> = row.unwrap().into_iter().map(canonical).collect();
    assert_eq!(values[0], "-5");
    assert_eq!(values[1], u64::MAX.to_string());
    assert_eq!(
        values[3..],
        ["naïve 猫", "NULL", "2026-11-21 01:02:03.000004"]
    );
}

#[test]
fn several_statements_give_several_results() {
    let server = TestServer::start();
    let mut client = server.connect();
    client
        .command(
            3,
            b"SELECT 1; SET @x = 2; SELECT @x; SELECT nonsense; SELECT 3",
        )
        .unwrap();
    assert_eq!(client.rows(), Ok(vec![vec![Some("1".into())]]));
    assert_eq!(client.rows(), Ok(vec![]));
    assert_eq!(client.rows(), Ok(vec![vec![Some("2".into())]]));
    assert_eq!(client.rows().unwrap_err().code(), 1054);
    assert_eq!(client.ping(), Packet::Ok);
    // COM_SET_OPTION takes the permission away.
    client.command(27, b"\x01\0").unwrap();
    assert_eq!(client.packet(), Packet::Eof);
    assert_eq!(client.query("SELECT 1; SELECT 2").unwrap_err().code(), 1064);
}

#[test]
fn a_packet_of_40_megabytes_arrives_whole() {
    let server = TestServer::start();
    let mut client = server.connect();
    let id = prepare(&mut client, "SELECT LENGTH(?)");
    let mut body = id.to_le_bytes().to_vec();
    body.extend_from_slice(&[0, 1, 0, 0, 0, 0, 1, 252, 0]);
    let length = 40_u32 << 20;
    body.push(0xFE);
    body.extend_from_slice(&u64::from(length).to_le_bytes());
    body.resize(body.len() + length as usize, b'x');
    client.command(23, &body).unwrap();
    let rows = binary_rows(&mut client);
    assert_eq!(rows[0][2..6], length.to_le_bytes());
}

/// Prepares over raw packets; returns the statement's id.
fn prepare(client: &mut RawClient<std::net::TcpStream>, text: &str) -> u32 {
    client.command(22, text.as_bytes()).unwrap();
    let answer = client.read().unwrap();
    assert_eq!(Packet::of(&answer), Packet::Ok, "{answer:?}");
    let columns = u16::from_le_bytes([answer[5], answer[6]]);
    let params = u16::from_le_bytes([answer[7], answer[8]]);
    for count in [params, columns] {
        if count > 0 {
            for _ in 0..=count {
                client.read().unwrap(); // definitions and EOF
            }
        }
    }
    u32::from_le_bytes([answer[1], answer[2], answer[3], answer[4]])
}

/// Payloads of the rows of a binary result.
fn binary_rows(client: &mut RawClient<std::net::TcpStream>) -> Vec<Vec<u8>> {
    let first = client.read().unwrap();
    assert!(first[0] > 0 && first[0] < 0xFB, "{first:?}");
    for _ in 0..first[0] {
        client.read().unwrap();
    }
    assert_eq!(client.packet(), Packet::Eof);
    let mut rows = Vec::new();
    loop {
        let row = client.read().unwrap();
        if Packet::of(&row) == Packet::Eof {
            return rows;
        }
        rows.push(row);
    }
}

#[test]
fn long_data_is_sent_piece_by_piece() {
    let server = TestServer::start();
    let mut client = server.connect();
    let id = prepare(&mut client, "SELECT LENGTH(?)");
    for piece in [&b"abc"[..], b"defg"] {
        let body = [&id.to_le_bytes()[..], &[0, 0], piece].concat();
        client.command(24, &body).unwrap();
    }
    let execute = [&id.to_le_bytes()[..], &[0, 1, 0, 0, 0, 0, 1, 252, 0]].concat();
    client.command(23, &execute).unwrap();
    assert_eq!(binary_rows(&mut client)[0][2], 7);
    // COM_STMT_RESET forgets pieces.
    let body = [&id.to_le_bytes()[..], &[0, 0], b"abc"].concat();
    client.command(24, &body).unwrap();
    client.command(26, &id.to_le_bytes()).unwrap();
    assert_eq!(client.packet(), Packet::Ok);
    let execute = [
        &id.to_le_bytes()[..],
        &[0, 1, 0, 0, 0, 0, 1, 252, 0, 1, b'x'],
    ]
    .concat();
    client.command(23, &execute).unwrap();
    assert_eq!(binary_rows(&mut client)[0][2], 1);
}

#[test]
fn a_cursor_hands_out_rows_in_pages() {
    let server = TestServer::start();
    let mut client = server.connect();
    let id = prepare(
        &mut client,
        "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3",
    );
    let execute = [&id.to_le_bytes()[..], &[1, 1, 0, 0, 0]].concat();
    client.command(23, &execute).unwrap();
    let count = client.read().unwrap();
    assert_eq!(count, [1]);
    client.read().unwrap();
    let end = client.read().unwrap();
    assert_eq!((end[0], end[3] & 0x40), (0xFE, 0x40)); // a cursor exists
    let fetch = [&id.to_le_bytes()[..], &[2, 0, 0, 0]].concat();
    client.command(28, &fetch).unwrap();
    let rows = [client.read().unwrap(), client.read().unwrap()];
    assert_eq!((rows[0][2], rows[1][2]), (1, 2));
    assert_eq!(client.read().unwrap()[3] & 0xC0, 0x40);
    client.command(28, &fetch).unwrap();
    assert_eq!(client.read().unwrap()[2], 3);
    assert_eq!(client.read().unwrap()[3] & 0xC0, 0x80); // last row sent
    client.command(28, &fetch).unwrap();
    assert_eq!(client.packet().code(), 1421);
}

#[test]
fn raw_bytes_in_literals_are_kept() {
    let server = TestServer::start();
    let mut client = server.connect();
    client
        .command(3, b"SELECT HEX(_binary '\xFF\\0a'), HEX('\xC3\xA9')")
        .unwrap();
    let row = client.rows().unwrap().remove(0);
    assert_eq!(row, [Some("FF0061".into()), Some("C3A9".into())]);
}

#[test]
fn found_rows_counts_matches_and_the_default_changes() {
    let server = TestServer::start();
    let mut matching = driver(&server);
    matching.query_drop("CREATE DATABASE d").unwrap();
    matching
        .query_drop("CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
        .unwrap();
    matching
        .query_drop("INSERT INTO d.t VALUES (1, 7), (2, 7)")
        .unwrap();
    assert_eq!(matching.affected_rows(), 2);
    matching.query_drop("UPDATE d.t SET v = 7").unwrap();
    assert_eq!(matching.affected_rows(), 2);
    let mut changing = server.connect();
    changing.command(3, b"UPDATE d.t SET v = 7").unwrap();
    assert_eq!(changing.read().unwrap()[..2], [0, 0]);
}

#[test]
fn a_reset_connection_forgets_its_session() {
    let server = TestServer::start();
    let mut client = server.connect();
    let id = prepare(&mut client, "SELECT 1");
    client.query("SET @x = 5").unwrap();
    client.command(31, b"").unwrap();
    assert_eq!(client.packet(), Packet::Ok);
    assert_eq!(client.query("SELECT @x"), Ok(vec![vec![None]]));
    let execute = [&id.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat();
    client.command(23, &execute).unwrap();
    assert_eq!(client.packet().code(), 1243);
}

#[test]
fn small_commands_are_answered() {
    let server = TestServer::start();
    let mut client = server.connect();
    client.query("CREATE DATABASE d").unwrap();
    client.query("CREATE TABLE d.t (a INT, b INT)").unwrap();
    client.command(2, b"nowhere").unwrap();
    assert_eq!(client.packet().code(), 1049);
    client.command(2, b"d").unwrap();
    assert_eq!(client.packet(), Packet::Ok);
    client.command(4, b"t\0").unwrap(); // COM_FIELD_LIST
    let columns = [client.read().unwrap(), client.read().unwrap()];
    assert!(columns[1].windows(3).any(|w| w == b"\x01b\x01"));
    assert_eq!(client.packet(), Packet::Eof);
    client.command(9, b"").unwrap(); // COM_STATISTICS
    let text = String::from_utf8(client.read().unwrap()).unwrap();
    assert!(text.starts_with("Uptime: "), "{text}");
    client.command(7, b"\x01").unwrap(); // COM_REFRESH, of the privileges
    assert_eq!(client.packet(), Packet::Ok);
    client.command(7, b"\x80").unwrap(); // of the binary log
    assert_eq!(client.packet().code(), 1235);
    client.command(1, b"").unwrap(); // COM_QUIT
    assert!(client.is_closed());
}
