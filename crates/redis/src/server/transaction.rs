//! MULTI, EXEC, DISCARD, WATCH.

use super::call::Call;
use super::client::{ClientId, Transaction, Watched};
use super::state::Server;
use super::table;
use super::waiting::timeout_reply;
use crate::command::Command;
use crate::error::CommandError;
use crate::resp::Reply;
use crate::spec::Flags;

type Answer = Result<Reply, CommandError>;

impl Server {
    /// Forgets what a connection watches.
    pub(super) fn unwatch(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        client.is_outdated = false;
        for Watched { key, .. } in std::mem::take(&mut client.watched) {
            if let Some(watchers) = self.watchers.get_mut(&key) {
                watchers.retain(|watcher| *watcher != id);
                if watchers.is_empty() {
                    self.watchers.remove(&key);
                }
            }
        }
    }

    /// Ends what a connection has queued, and its watches.
    pub(super) fn take_transaction(&mut self, id: ClientId) -> Option<Transaction> {
        let open = self.clients.get_mut(&id)?.transaction.take()?;
        self.unwatch(id);
        Some(open)
    }

    /// A database was flushed: what was there when it began to be watched has changed.
    pub(super) fn flushed(&mut self, db: usize) {
        let watched = self.watchers.iter().filter(|((of, _), _)| *of == db);
        let watchers: Vec<ClientId> = watched.flat_map(|(_, ids)| ids.iter().copied()).collect();
        for id in watchers {
            if let Some(client) = self.clients.get_mut(&id) {
                let mut watched = client.watched.iter();
                client.is_outdated |= watched.any(|one| one.key.0 == db && one.was_there);
            }
        }
    }
}

/// What EXEC answers when nothing of the transaction was run.
pub(super) fn discarded(why: &CommandError) -> CommandError {
    CommandError::new(format!("EXECABORT Transaction discarded because of: {why}"))
}

pub fn multi(call: &mut Call<'_>, _command: &Command) -> Answer {
    if call.client().transaction.is_some() {
        return Err(CommandError::text("ERR MULTI calls can not be nested"));
    }
    call.client_mut().transaction = Some(Transaction::default());
    Ok(Reply::OK)
}

pub fn discard(call: &mut Call<'_>, _command: &Command) -> Answer {
    match call.server.take_transaction(call.id) {
        Some(_) => Ok(Reply::OK),
        None => Err(CommandError::text("ERR DISCARD without MULTI")),
    }
}

pub fn exec(call: &mut Call<'_>, _command: &Command) -> Answer {
    // The watches end with the transaction.
    let is_outdated = call.client().is_outdated || watched_is_over(call);
    let Some(open) = call.server.take_transaction(call.id) else {
        return Err(CommandError::text("ERR EXEC without MULTI"));
    };
    if open.is_broken {
        return Err(CommandError::text(
            "EXECABORT Transaction discarded because of previous errors.",
        ));
    }
    if is_outdated {
        return Ok(Reply::NullArray);
    }
    // There was room when they were queued.
    let specs = open.queue.iter().filter_map(|one| table::find(one.name()));
    let mut rooms = specs.map(|spec| call.server.check_room(spec));
    if let Some(refused) = rooms.find_map(Result::err) {
        return Err(discarded(&refused));
    }
    let mut replies = Vec::with_capacity(open.queue.len());
    for command in &open.queue {
        // It was admitted when it was queued.
        let reply = match table::admit(command) {
            Ok(spec) => {
                let (reply, effects) =
                    call.server
                        .run_inside(call.id, spec, command, call.stamp, &mut *call.host);
                call.effects.append(effects);
                match reply {
                    Reply::Later if spec.flags.has(Flags::BLOCKING) => timeout_reply(spec.name),
                    reply => reply,
                }
            }
            Err(refused) => Reply::Error(refused),
        };
        replies.push(reply);
    }
    Ok(Reply::Array(replies))
}

/// Whether the time of a watched key is over, though nobody has noticed.
fn watched_is_over(call: &mut Call<'_>) -> bool {
    let watched = call.client().watched.clone();
    let now = call.stamp.now_millis;
    let is_over = |Watched { key: (db, key), .. }: &Watched| {
        call.server
            .keyspace
            .peek(*db, key)
            .is_some_and(|entry| entry.is_over(now))
    };
    watched.iter().any(is_over)
}

pub fn watch(call: &mut Call<'_>, command: &Command) -> Answer {
    if call.client().transaction.is_some() {
        return Err(CommandError::text("ERR WATCH inside MULTI is not allowed"));
    }
    let db = call.client().db;
    for key in command.args_from(1) {
        let key = (db, Box::from(key));
        if !call.client().watched.iter().any(|one| one.key == key) {
            call.server
                .watchers
                .entry(key.clone())
                .or_default()
                .push(call.id);
            let found = call.server.keyspace.peek(db, &key.1);
            let was_there = found.is_some_and(|entry| !entry.is_over(call.stamp.now_millis));
            call.client_mut().watched.push(Watched { key, was_there });
        }
    }
    Ok(Reply::OK)
}

pub fn unwatch(call: &mut Call<'_>, _command: &Command) -> Answer {
    call.server.unwatch(call.id);
    Ok(Reply::OK)
}
