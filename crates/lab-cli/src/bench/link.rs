//! One connection, speaking in the terms of `manxdb-workloads`.

use manxdb_workloads::{Answer, Statement, Value};
use mysql::prelude::{Protocol, Queryable as _};
use mysql::{Conn, Opts, OptsBuilder, Params, QueryResult};

use crate::fault::Fault;

/// Prepared statements a connection keeps: more than the different texts of the workloads.
const STATEMENTS_KEPT: usize = 512;
/// Longest statement sent, bytes.
const PACKET_BYTES_MAX: usize = 64 << 20;

/// A connection to a server.
pub struct Link {
    connection: Conn,
    /// Whether dates become text; a measurement spares itself the work.
    with_dates: bool,
}

impl Link {
    /// Logs in; `database` false leaves out the database of the address.
    ///
    /// # Errors
    /// An address that cannot be read, no server, a refused login.
    pub fn open(url: &str, password: Option<&str>, database: bool) -> Result<Self, Fault> {
        let given = options(url)?;
        let named = given.get_db_name().filter(|_| database).map(str::to_owned);
        let password = given.get_pass().or(password).map(str::to_owned);
        let builder = OptsBuilder::from_opts(given)
            .pass(password)
            .db_name(named)
            .stmt_cache_size(STATEMENTS_KEPT)
            .max_allowed_packet(Some(PACKET_BYTES_MAX))
            .prefer_socket(false);
        Ok(Self {
            connection: Conn::new(builder)?,
            with_dates: true,
        })
    }

    /// The same, with dates in answers left NULL.
    #[must_use]
    pub fn without_dates(mut self) -> Self {
        self.with_dates = false;
        self
    }

    /// Sends a statement as text and forgets the answer.
    ///
    /// # Errors
    /// The server's.
    pub fn command(&mut self, text: &str) -> mysql::Result<()> {
        self.connection.query_drop(text)
    }

    /// Sends a statement the way the application does.
    ///
    /// # Errors
    /// The server's.
    pub fn ask(&mut self, statement: &Statement) -> mysql::Result<Answer> {
        let with_dates = self.with_dates;
        if statement.prepared {
            let values = statement.parameters.iter().map(parameter).collect();
            let result = self
                .connection
                .exec_iter(statement.text.as_ref(), Params::Positional(values))?;
            read(result, with_dates)
        } else {
            read(self.connection.query_iter(&statement.text)?, with_dates)
        }
    }
}

/// What an address says.
pub fn options(url: &str) -> Result<Opts, Fault> {
    Opts::from_url(url).map_err(|error| Fault::Other(format!("--url {url}: {error}")))
}

fn read<T: Protocol>(
    mut result: QueryResult<'_, '_, '_, T>,
    with_dates: bool,
) -> mysql::Result<Answer> {
    let columns = result.columns();
    let names = columns
        .as_ref()
        .iter()
        .map(|column| column.name_str().into_owned());
    let mut answer = Answer {
        columns: names.collect(),
        rows: Vec::new(),
        affected: result.affected_rows(),
    };
    for row in result.by_ref() {
        // `Row::unwrap` fails only for a row a value was taken from; this one is fresh.
        let values = row?.unwrap().into_iter();
        answer
            .rows
            .push(values.map(|value| field(value, with_dates)).collect());
    }
    Ok(answer)
}

fn parameter(value: &Value) -> mysql::Value {
    match value {
        Value::Null => mysql::Value::NULL,
        Value::Integer(number) => mysql::Value::Int(*number),
        Value::Double(number) => mysql::Value::Double(*number),
        Value::Text(text) => mysql::Value::Bytes(text.as_bytes().to_vec()),
    }
}

fn field(value: mysql::Value, with_dates: bool) -> Value {
    match value {
        mysql::Value::NULL => Value::Null,
        mysql::Value::Bytes(bytes) => Value::Text(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }),
        mysql::Value::Int(number) => Value::Integer(number),
        mysql::Value::UInt(number) => {
            i64::try_from(number).map_or_else(|_| Value::Text(number.to_string()), Value::Integer)
        }
        mysql::Value::Float(number) => Value::Double(number.into()),
        mysql::Value::Double(number) => Value::Double(number),
        date if with_dates => Value::Text(date.as_sql(true)),
        _ => Value::Null,
    }
}
