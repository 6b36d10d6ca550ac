//! HELLO, AUTH, SELECT and other first words.

use super::acl_log::{Context, Denied};
use super::call::Call;
use super::client::{Client, check_name};
use crate::REDIS_VERSION;
use crate::command::Command;
use crate::error::CommandError;
use crate::keyspace::DATABASES;
use crate::number;
use crate::resp::{Protocol, Reply};

type Answer = Result<Reply, CommandError>;

fn authenticate(
    call: &mut Call<'_>,
    user: &[u8],
    password: &[u8],
    by: &'static str,
) -> Result<(), CommandError> {
    let user = String::from_utf8_lossy(user).into_owned();
    if !call.server.users.is_password(&user, password) {
        let about = call.client().describe(call.id, call.stamp.now_millis);
        let (denied, log) = (Denied::Password(by), &mut call.server.acl_log);
        let refused = denied.error(&user);
        log.add(denied, Context::TopLevel, user, about, call.stamp);
        return Err(refused);
    }
    call.client_mut().user = Some(user);
    Ok(())
}

pub fn auth(call: &mut Call<'_>, command: &Command) -> Answer {
    match command.len() {
        2 if call.server.users.needs_no_password() => Err(CommandError::text(
            "ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?",
        )),
        2 => authenticate(call, b"default", command.arg(1), "AUTH").map(|()| Reply::OK),
        3 => authenticate(call, command.arg(1), command.arg(2), "AUTH").map(|()| Reply::OK),
        _ => Err(CommandError::SYNTAX),
    }
}

pub fn hello(call: &mut Call<'_>, command: &Command) -> Answer {
    let mut protocol = call.client().protocol;
    if command.len() > 1 {
        protocol = match number::integer(command.arg(1)) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return Err(CommandError::text("NOPROTO unsupported protocol version")),
            None => {
                return Err(CommandError::text(
                    "ERR Protocol version is not an integer or out of range",
                ));
            }
        };
    }
    let mut place = 2;
    let mut name = None;
    while place < command.len() {
        if command.is_word(place, "AUTH") && place + 2 < command.len() {
            authenticate(
                call,
                command.arg(place + 1),
                command.arg(place + 2),
                "HELLO",
            )?;
            place += 2;
        } else if command.is_word(place, "SETNAME") && place + 1 < command.len() {
            check_name(command.arg(place + 1), "Client names")?;
            name = Some(command.arg(place + 1).to_vec());
            place += 1;
        } else {
            let option = String::from_utf8_lossy(command.arg(place));
            return Err(CommandError::new(format!(
                "ERR Syntax error in HELLO option '{option}'"
            )));
        }
        place += 1;
    }
    if call.client().user.is_none() {
        return Err(CommandError::text(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        ));
    }
    let id = call.id;
    let client = call.client_mut();
    client.protocol = protocol;
    if let Some(name) = name {
        client.name = name;
    }
    let text = |name: &str, value: &str| (Reply::bulk(name), Reply::bulk(value));
    let version = if protocol == Protocol::Resp3 { 3 } else { 2 };
    Ok(Reply::Map(vec![
        text("server", "redis"),
        text("version", REDIS_VERSION),
        (Reply::bulk("proto"), Reply::Integer(version)),
        (Reply::bulk("id"), Reply::Integer(id.0.cast_signed())),
        text("mode", "standalone"),
        text("role", "master"),
        (Reply::bulk("modules"), Reply::Array(Vec::new())),
    ]))
}

pub fn ping(call: &mut Call<'_>, command: &Command) -> Answer {
    if command.len() > 2 {
        return Err(CommandError::arity("ping"));
    }
    let client = call.client();
    if client.protocol == Protocol::Resp2 && client.subscriptions() > 0 {
        return Ok(Reply::Array(vec![
            Reply::bulk("pong"),
            Reply::bulk(command.arg(1)),
        ]));
    }
    Ok(match command.len() {
        1 => Reply::Simple("PONG"),
        _ => Reply::bulk(command.arg(1)),
    })
}

pub fn select(call: &mut Call<'_>, command: &Command) -> Answer {
    let number =
        number::integer(command.arg(1)).ok_or(CommandError::text("ERR invalid DB index"))?;
    let number = usize::try_from(number)
        .ok()
        .filter(|number| *number < DATABASES);
    call.client_mut().db = number.ok_or(CommandError::text("ERR DB index is out of range"))?;
    Ok(Reply::OK)
}

pub fn quit(call: &mut Call<'_>, _command: &Command) -> Answer {
    let id = call.id;
    call.server.closing.push(id);
    Ok(Reply::OK)
}

pub fn reset(call: &mut Call<'_>, _command: &Command) -> Answer {
    let id = call.id;
    call.server.unwatch(id);
    call.server.end_tracking(id);
    call.server.channels.leave_all(id);
    let user = call
        .server
        .users
        .needs_no_password()
        .then(|| "default".to_owned());
    let address = call.client().address.clone();
    let since = call.client().since_millis;
    let local_address = std::mem::take(&mut call.client_mut().local_address);
    *call.client_mut() = Client {
        local_address,
        ..Client::new(address, user, since)
    };
    Ok(Reply::Simple("RESET"))
}
