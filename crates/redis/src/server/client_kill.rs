//! CLIENT KILL.

use super::call::Call;
use super::client::{Client, ClientId};
use crate::command::Command;
use crate::error::CommandError;
use crate::number;
use crate::resp::Reply;

/// What a connection must be to be ended.
enum Filter {
    Id(u64),
    Address(String),
    LocalAddress(String),
    User(String),
    /// Whether it listens to channels.
    Listens(bool),
    /// Nobody is: this server has no replicas.
    Nobody,
}

impl Filter {
    fn fits(&self, id: ClientId, client: &Client) -> bool {
        match self {
            Self::Id(wanted) => id.0 == *wanted,
            Self::Address(address) => client.address == *address,
            Self::LocalAddress(address) => client.local_address == *address,
            Self::User(user) => client.user.as_ref() == Some(user),
            Self::Listens(listens) => (client.subscriptions() > 0) == *listens,
            Self::Nobody => false,
        }
    }
}

fn of_type(name: &str) -> Result<Filter, CommandError> {
    match name.to_ascii_lowercase().as_str() {
        "normal" => Ok(Filter::Listens(false)),
        "pubsub" => Ok(Filter::Listens(true)),
        "master" | "replica" | "slave" => Ok(Filter::Nobody),
        _ => Err(CommandError::new(format!(
            "ERR Unknown client type '{name}'"
        ))),
    }
}

/// CLIENT KILL address, or with filters.
pub(super) fn kill(call: &mut Call<'_>, command: &Command) -> Result<Reply, CommandError> {
    let is_old = command.len() == 3;
    let text = |place| String::from_utf8_lossy(command.arg(place)).into_owned();
    let (mut skips_me, mut filters) = (!is_old, Vec::new());
    if is_old {
        filters.push(Filter::Address(text(2)));
    } else if !command.len().is_multiple_of(2) {
        return Err(CommandError::SYNTAX);
    }
    for place in (2..command.len()).step_by(2).filter(|_| !is_old) {
        let value = text(place + 1);
        filters.push(match () {
            () if command.is_word(place, "ID") => {
                let id = number::integer(command.arg(place + 1)).filter(|id| *id > 0);
                let id = id.and_then(|id| u64::try_from(id).ok());
                let wrong = CommandError::text("ERR client-id should be greater than 0");
                Filter::Id(id.ok_or(wrong)?)
            }
            () if command.is_word(place, "ADDR") => Filter::Address(value),
            () if command.is_word(place, "LADDR") => Filter::LocalAddress(value),
            () if command.is_word(place, "USER") => {
                if !call.server.users.by_name.contains_key(&value) {
                    return Err(CommandError::new(format!("ERR No such user '{value}'")));
                }
                Filter::User(value)
            }
            () if command.is_word(place, "TYPE") => of_type(&value)?,
            () if command.is_word(place, "SKIPME") => {
                skips_me = match value.to_ascii_lowercase().as_str() {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(CommandError::SYNTAX),
                };
                continue;
            }
            () => return Err(CommandError::SYNTAX),
        });
    }
    let clients = call.server.clients.iter();
    let wanted: Vec<ClientId> = clients
        .filter(|(id, client)| filters.iter().all(|filter| filter.fits(**id, client)))
        .map(|(id, _)| *id)
        .filter(|id| !skips_me || *id != call.id)
        .collect();
    call.server.closing.extend(&wanted);
    match (is_old, wanted.len()) {
        (true, 0) => Err(CommandError::text("ERR No such client")),
        (true, _) => Ok(Reply::OK),
        (false, count) => Ok(Reply::count(count)),
    }
}
