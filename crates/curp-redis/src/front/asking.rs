//! Commands under way: asked of the own cluster or of another one, and answered once.

use manxdb_core::Nanos;
use manxdb_curp::CurpNode;
use manxdb_curp_client::CallError;
use manxdb_curp_client::client::CALL_PATIENCE;
use manxdb_net::Outside;
use manxdb_redis::resp::Reply;
use manxdb_redis::server::{ClientId, DataCall};

use super::connection::{Connection, Footprint};
use super::elsewhere::ElsewhereError;
use super::route::{Place, Verdict};
use super::{Call, Front};
use crate::command::ReplicatedCommand;
use crate::machine::{RedisMachine, slots_of, told};

/// How often a command that waits for a key is asked again.
const ASK_AGAIN_AFTER: Nanos = Nanos::from_millis(20);

impl Front {
    /// Lets a client's command begin.
    pub(super) fn submit(
        &mut self,
        id: ClientId,
        connection: &mut Connection,
        data: DataCall,
        replicated: Vec<u8>,
        footprint: Footprint,
        outside: &mut Outside<CurpNode<RedisMachine>>,
    ) {
        let slot = connection.reserve(footprint);
        let until = data.waits_millis.map(|millis| match millis {
            0 => Nanos::MAX,
            millis => outside.now() + Nanos::from_millis(millis),
        });
        let route = self.routes.begin(|| slots_of(&data.commands));
        let call = Call {
            client: id,
            slot,
            data,
            since: outside.now(),
            until,
            route,
        };
        self.ask(call, replicated, outside);
    }

    /// Asks whoever is to be asked next.
    fn ask(
        &mut self,
        call: Call,
        replicated: Vec<u8>,
        outside: &mut Outside<CurpNode<RedisMachine>>,
    ) {
        match call.route.place() {
            Place::Home => {
                self.calls.ask(call, replicated, outside);
            }
            Place::At(group) => {
                let number = self.elsewhere.ask(group, replicated);
                let earlier = self.abroad.insert(number, (outside.now(), call));
                assert!(earlier.is_none(), "an answer has a number of its own");
            }
        }
    }

    pub(super) fn ask_again(&mut self, call: Call, outside: &mut Outside<CurpNode<RedisMachine>>) {
        let replicated = ReplicatedCommand::of(&call.data).encode();
        self.ask(call, replicated, outside);
    }

    fn sleep(&mut self, call: Call, after: Nanos, outside: &mut Outside<CurpNode<RedisMachine>>) {
        if !self.connections.contains_key(&call.client) {
            return; // nobody waits, and nothing has happened
        }
        outside.wake_after(after, self.next_sleep);
        self.asleep.insert(self.next_sleep, call);
        self.next_sleep += 1;
    }

    /// The own cluster has answered a command; or has forgotten this front, and with it what became of it.
    pub(super) fn home_answered(
        &mut self,
        call: Call,
        answer: Option<Vec<u8>>,
        outside: &mut Outside<CurpNode<RedisMachine>>,
    ) {
        match answer {
            Some(answer) => self.answered(call, answer, outside),
            None => self.refuse(
                &call,
                "ERR the outcome of this command is unknown: the master has forgotten this \
                 server, which was silent for too long",
                outside,
            ),
        }
    }

    /// Other clusters have answered commands.
    pub(super) fn take_told(&mut self, outside: &mut Outside<CurpNode<RedisMachine>>) {
        for (number, told) in self.elsewhere.take() {
            let Some((_, call)) = self.abroad.remove(&number) else {
                continue; // it was silent for too long
            };
            match told {
                Ok(answer) => self.answered(call, answer, outside),
                Err(error) => {
                    if let Place::At(group) = call.route.place() {
                        self.routes.forget(group);
                    }
                    self.refuse(&call, &error.to_string(), outside);
                }
            }
        }
    }

    /// Gives commands up that no cluster has answered for as long as a client waits: each has a reply, or
    /// the reason why there is none.
    pub(super) fn give_up_silent(&mut self, outside: &mut Outside<CurpNode<RedisMachine>>) {
        let patience = u64::try_from(CALL_PATIENCE.as_nanos()).unwrap_or(u64::MAX);
        for (call, is_read) in self.calls.give_up(outside.now(), Nanos(patience)) {
            let seconds = CALL_PATIENCE.as_secs();
            let why = if is_read {
                format!(
                    "CLUSTERDOWN no master has answered for {seconds} s, and this command changed nothing: does \
                     manxdb cluster status say what the cluster lacks?"
                )
            } else {
                format!(
                    "CLUSTERDOWN no master has answered for {seconds} s, and the outcome of this command is \
                     unknown: it is executed once, perhaps later, or not at all. Does manxdb cluster status \
                     say what the cluster lacks?"
                )
            };
            self.refuse(&call, &why, outside);
        }
        while let Some(first) = self.abroad.first_entry()
            && outside.now().saturating_sub(first.get().0) >= Nanos(patience)
        {
            let (_, call) = first.remove();
            let Place::At(group) = call.route.place().clone() else {
                continue;
            };
            self.elsewhere.give_up(&group);
            self.routes.forget(&group);
            let why = CallError::Silent;
            let error = ElsewhereError::Unknown { group, why };
            self.refuse(&call, &error.to_string(), outside);
        }
    }

    /// A command was answered in the cluster that was asked: executed there, or not.
    fn answered(
        &mut self,
        mut call: Call,
        answer: Vec<u8>,
        outside: &mut Outside<CurpNode<RedisMachine>>,
    ) {
        let now = outside.now();
        let commands = &call.data.commands;
        let named = || slots_of(commands);
        match self.routes.answered(&mut call.route, &answer, now, named) {
            Verdict::Deliver => self.deliver(call, answer, outside),
            Verdict::Ask(None) => self.ask_again(call, outside),
            Verdict::Ask(Some(after)) => self.sleep(call, after, outside),
            Verdict::Refuse(why) => self.refuse(&call, &why, outside),
        }
    }

    /// An answer is the client's: the command was executed, or waits for a key still.
    fn deliver(
        &mut self,
        call: Call,
        answer: Vec<u8>,
        outside: &mut Outside<CurpNode<RedisMachine>>,
    ) {
        self.followed += u64::from(*call.route.place() != Place::Home);
        if !answer.is_empty() {
            let reply = told(answer, call.data.protocol);
            return self.answer(&call, reply, outside);
        }
        match call.until {
            Some(until) if outside.now() < until => self.sleep(call, ASK_AGAIN_AFTER, outside),
            Some(_) => {
                let reply = self.encode(call.client, &call.data.timeout_reply());
                self.answer(&call, reply, outside);
            }
            None => self.refuse(
                &call,
                "ERR this command is not known to the master",
                outside,
            ),
        }
    }

    fn refuse(&mut self, call: &Call, why: &str, outside: &mut Outside<CurpNode<RedisMachine>>) {
        let reply = self.encode(call.client, &Reply::error(why));
        self.answer(call, reply, outside);
    }

    /// Tells a client what became of its command, and lets those behind it go on.
    fn answer(
        &mut self,
        call: &Call,
        reply: Vec<u8>,
        outside: &mut Outside<CurpNode<RedisMachine>>,
    ) {
        let took = outside.now().saturating_sub(call.since).as_micros();
        let has_failed = reply.first() == Some(&b'-');
        self.server.answered(&call.data, has_failed, took);
        let Some(connection) = self.connections.get_mut(&call.client) else {
            return; // it is gone
        };
        let reply = if call.data.is_silent {
            Vec::new()
        } else {
            reply
        };
        connection.fill(call.slot, reply);
        self.active.insert(call.client);
        self.unpark(call.client, outside);
    }

    fn unpark(&mut self, id: ClientId, outside: &mut Outside<CurpNode<RedisMachine>>) {
        let Some(mut connection) = self.connections.remove(&id) else {
            return;
        };
        let may_go = |connection: &Connection| {
            let parked = connection.parked.as_ref();
            parked.is_some_and(|(_, _, footprint)| !connection.is_blocked(footprint))
        };
        if may_go(&connection)
            && let Some((data, replicated, footprint)) = connection.parked.take()
        {
            self.submit(id, &mut connection, data, replicated, footprint, outside);
        }
        let goes_on = connection.parked.is_none();
        self.connections.insert(id, connection);
        if goes_on {
            self.take_commands(id, outside);
        }
    }
}
