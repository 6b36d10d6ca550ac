//! Which hash slots a cluster that replicates Redis's keys owns, and their move to another one.

use std::path::Path;
use std::process::ExitCode;

use manxdb::cluster::curp;
use manxdb::cluster::file::{ClusterFile, ClusterProtocol};
use manxdb_curp::slots::{
    Canceller, Group, Mover, PieceLimits, Side, SlotAnswer, SlotOperation, SlotRange, SlotRefusal,
};
use manxdb_curp_client::Client;
use manxdb_curp_redis::{RedisMachine, ReplicatedCommand};

use crate::fault::Fault;

/// A cluster as one of the groups that slots belong to.
struct GroupOfServers {
    client: Client<RedisMachine>,
    /// Its name: where its Redis clients connect, which is what MOVED tells them.
    name: Group,
}

impl GroupOfServers {
    fn open(cluster: &Path) -> Result<Self, Fault> {
        let (file, path) = ClusterFile::read(cluster)?;
        let is_sql = file.curp.as_ref().is_some_and(|shape| shape.sql);
        if file.protocol != ClusterProtocol::Curp || is_sql {
            return Err(Fault::Other(format!(
                "{} is of a cluster that does not replicate Redis's keys: only those that manxdb cluster up \
                 curp starts without --sql have slots",
                path.display()
            )));
        }
        let name = curp::group(&file);
        let Some(name) = name else {
            return Err(Fault::Other(format!(
                "{} has no proxy and no server with a `redis` address, where clients could be sent",
                path.display()
            )));
        };
        let nothing = ReplicatedCommand::nothing().encode();
        let client = Client::of(curp::cluster(&file), nothing);
        let client = client.map_err(|error| Fault::Other(error.to_string()))?;
        Ok(Self { client, name })
    }

    /// The answer to a step, which is synced.
    fn ask(&self, operation: &SlotOperation) -> Result<SlotAnswer, Fault> {
        let answer = self.client.call(operation.encode());
        let answer = answer.map_err(|error| {
            Fault::Other(format!(
                "{}: {error}. The same command goes on with it",
                self.name
            ))
        })?;
        SlotAnswer::decode(&answer).ok_or_else(|| refused(&self.name, &SlotRefusal::Unreadable))
    }
}

fn refused(by: &Group, why: &SlotRefusal) -> Fault {
    Fault::Other(format!("{by}: {why}"))
}

/// Says which slots a cluster owns, and who owns the others.
///
/// # Errors
/// It does not answer.
pub fn show(cluster: &Path) -> Result<ExitCode, Fault> {
    let group = GroupOfServers::open(cluster)?;
    let SlotAnswer::Owns(ownership) = group.ask(&SlotOperation::Show)? else {
        return Err(refused(&group.name, &SlotRefusal::Unreadable));
    };
    let mut next = 0;
    let own = |first: u16, behind: u16| {
        let last = behind.checked_sub(1);
        if let Some(slots) = last.and_then(|last| SlotRange::new(first, last)) {
            println!("{slots}: {} (this cluster)", group.name);
        }
    };
    for (slots, owner) in ownership.away() {
        own(next, slots.first());
        println!("{slots}: {owner}");
        next = slots.last().saturating_add(1);
    }
    own(next, SlotRange::ALL.last() + 1);
    let leaving = ownership.leaving().map(|leaving| &leaving.migration);
    let arriving = ownership.arriving().map(|arriving| &arriving.migration);
    for migration in leaving.into_iter().chain(arriving) {
        println!(
            "{} are on their way from {} to {}: manxdb cluster move-slots goes on with it, cancel-move ends it",
            migration.slots, migration.from, migration.to
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Lets a cluster without keys in some slots say that another one owns them.
///
/// # Errors
/// It has keys in them, or does not answer.
pub fn give_up(cluster: &Path, owner: &Path, slots: SlotRange) -> Result<ExitCode, Fault> {
    let (group, owner) = (GroupOfServers::open(cluster)?, GroupOfServers::open(owner)?);
    if group.name == owner.name {
        return Err(Fault::Other(
            "a cluster gives slots up to another one".to_owned(),
        ));
    }
    let to = owner.name.clone();
    match group.ask(&SlotOperation::Disown { slots, to })? {
        SlotAnswer::Done => {
            println!(
                "{} owns none of the slots {slots}: {} does",
                group.name, owner.name
            );
            Ok(ExitCode::SUCCESS)
        }
        SlotAnswer::Refused(why) => Err(refused(&group.name, &why)),
        _ => Err(refused(&group.name, &SlotRefusal::Unreadable)),
    }
}

/// Moves slots and their keys from one cluster to another one, or goes on with it.
///
/// # Errors
/// A cluster refuses it, or does not answer.
pub fn move_slots(cluster: &Path, to: &Path, slots: SlotRange) -> Result<ExitCode, Fault> {
    let (source, target) = (GroupOfServers::open(cluster)?, GroupOfServers::open(to)?);
    if source.name == target.name {
        return Err(Fault::Other("slots move to another cluster".to_owned()));
    }
    let (from, to) = (source.name.clone(), target.name.clone());
    let mut mover = Mover::new(slots, from, to, PieceLimits::MOST);
    while let Some((side, operation)) = mover.question() {
        let answer = match side {
            Side::Source => source.ask(&operation)?,
            Side::Target => target.ask(&operation)?,
        };
        mover.answered(answer);
    }
    match mover.outcome() {
        Some(Err(why)) => Err(Fault::Other(format!(
            "slots {slots} from {} to {}: {why}",
            source.name, target.name
        ))),
        _ => {
            println!(
                "{} owns the slots {slots}, which came from {} in {} pieces",
                target.name,
                source.name,
                mover.pieces()
            );
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Cancels a move of slots, or goes on with that. A target that is not named keeps what it has of them.
///
/// # Errors
/// The target has all keys, or a cluster does not answer.
pub fn cancel_move(cluster: &Path, to: Option<&Path>, slots: SlotRange) -> Result<ExitCode, Fault> {
    let source = GroupOfServers::open(cluster)?;
    let target = to.map(GroupOfServers::open).transpose()?;
    let to = target.as_ref().map(|target| target.name.clone());
    if to.as_ref() == Some(&source.name) {
        return Err(Fault::Other("slots move to another cluster".to_owned()));
    }
    let mut canceller = Canceller::new(slots, source.name.clone(), to, PieceLimits::MOST);
    while let Some((side, operation)) = canceller.question() {
        let answer = match (side, &target) {
            (Side::Source, _) => source.ask(&operation)?,
            (Side::Target, Some(target)) => target.ask(&operation)?,
            (Side::Target, None) => return Err(refused(&source.name, &SlotRefusal::Unreadable)),
        };
        canceller.answered(answer);
    }
    match (canceller.outcome(), &target) {
        (Some(Err(why)), _) => {
            let from = &source.name;
            return Err(Fault::Other(format!("slots {slots} from {from}: {why}")));
        }
        (_, target) if !canceller.has_cancelled() => {
            let unasked = match target {
                Some(_) => "",
                None => ", as far as is known here: --to asks the other cluster too",
            };
            let name = &source.name;
            println!("{name} owns the slots {slots}, and no move of them is under way{unasked}");
        }
        (_, Some(target)) => println!(
            "{} owns the slots {slots} as before, and {} has nothing of them",
            source.name, target.name
        ),
        (_, None) => println!(
            "{} owns the slots {slots} as before. The other cluster was not asked: should it come back, give \
             the command again with --to",
            source.name
        ),
    }
    Ok(ExitCode::SUCCESS)
}
