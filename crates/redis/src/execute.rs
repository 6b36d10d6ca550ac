//! Running one command on data.

use crate::Stamp;
use crate::command::Command;
use crate::context::Context;
use crate::keyspace::{Effects, Keyspace};
use crate::number::Random;
use crate::resp::Reply;
use crate::server::table;
use crate::spec::Run;

/// Runs `command` on database `db`. Pure: the same keyspace, command and stamp give the same reply and
/// the same effects. Commands of connections (MULTI, SUBSCRIBE, …) are refused: see [`crate::server`].
pub fn execute(
    keyspace: &mut Keyspace,
    db: usize,
    command: &Command,
    stamp: Stamp,
) -> (Reply, Effects) {
    let spec = match table::admit(command) {
        Ok(spec) => spec,
        Err(refused) => return (Reply::Error(refused), Effects::default()),
    };
    let Run::Data(run) = spec.run else {
        let name = spec.name;
        let refused = format!("ERR '{name}' belongs to a connection and cannot be run here");
        return (Reply::error(refused), Effects::default());
    };
    keyspace.begin(stamp);
    let mut context = Context {
        random: Random(stamp.seed),
        keyspace,
        db,
        stamp,
    };
    let reply = Reply::from(run(&mut context, command));
    let effects = keyspace.finish();
    (reply, effects)
}
