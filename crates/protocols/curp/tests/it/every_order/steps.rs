//! All that can happen to a cluster, in every order.

use std::collections::HashMap;

use manxdb_curp::CurpTimer;
use manxdb_curp::ids::View;
use manxdb_curp::message::{CurpMessage, Shown};
use manxdb_curp::wire::Op;

use super::history::Judge;
use super::nodes::Nodes;
use super::past::{
    CLIENTS, COORDINATOR, FIRST, Happening, MessageId, NODES, PastId, SECOND, THIRD, WITNESS,
};
use super::{OPERATIONS_MAX, Program};

/// Channels whose messages come in any order with all others.
const CHANNELS: [(usize, usize); 6] = [
    (CLIENTS[0], FIRST),
    (CLIENTS[1], FIRST),
    (FIRST, CLIENTS[0]),
    (FIRST, CLIENTS[1]),
    (SECOND, FIRST),
    (SECOND, WITNESS),
];

/// Channels that are as fast as can be: what is late there could as well be sent later.
const AT_ONCE: [(usize, usize); 4] = [
    (FIRST, SECOND),
    (SECOND, THIRD),
    (THIRD, SECOND),
    (WITNESS, SECOND),
];

/// What has become of the first view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    InUse,
    /// The coordinator does not hear its master.
    WithoutMaster,
    WithoutWitness,
    /// Another view, led by this server, is in use.
    Over(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    pub at: [PastId; NODES],
    pub stage: Stage,
    /// How many answers the other client had when an operation was asked for.
    pub before: [[u8; OPERATIONS_MAX]; 2],
    /// How many it has to have before the next one is asked for.
    pub waits: [u8; 2],
}

pub struct Explorer<'a> {
    pub nodes: &'a mut Nodes,
    pub judge: &'a mut Judge,
    pub program: &'a Program,
    /// Datagrams that arrive twice and operations that are asked for again, in one run.
    repeats: u8,
    /// Numbers of the operations' commands.
    pub commands: [Vec<u32>; 2],
    /// The answer of a coordinator that has decided for another view.
    located: HashMap<PastId, (View, MessageId)>,
    /// What was wrong when the second master opened.
    pub wrong_at_opening: Option<String>,
}

impl<'a> Explorer<'a> {
    pub fn new(
        nodes: &'a mut Nodes,
        judge: &'a mut Judge,
        program: &'a Program,
        repeats: u8,
    ) -> Self {
        let commands = [0, 1].map(|client| {
            let all = program.commands(client).into_iter();
            all.map(|command| nodes.commands.number(command)).collect()
        });
        Self {
            nodes,
            judge,
            program,
            repeats,
            commands,
            located: HashMap::new(),
            wrong_at_opening: None,
        }
    }

    fn happen(&mut self, state: &mut State, node: usize, happening: Happening) {
        state.at[node] = self.nodes.after(state.at[node], happening);
    }

    /// The next message of a channel that its receiver does not ignore.
    fn letter(&self, state: &State, from: usize, to: usize) -> Option<Happening> {
        let receiver = self.nodes.past(state.at[to]);
        let sender = self.nodes.past(state.at[from]);
        if to == FIRST && CLIENTS.contains(&from) && sender.view > receiver.view {
            return None; // it could have come before its client went over to the next view
        }
        let letters = &sender.letters[to];
        let taken = usize::from(receiver.taken[from]);
        let mut left = (taken..letters.len()).map(|place| (place, letters[place]));
        let (place, message) = left.find(|(_, message)| !self.nodes.ignores(receiver, *message))?;
        Some(Happening::Letter {
            from: u8::try_from(from).unwrap(),
            message,
            taken: u8::try_from(place + 1).unwrap(),
        })
    }

    fn take(&mut self, state: &mut State, from: usize, to: usize) -> bool {
        let letter = self.letter(state, from, to);
        if let Some(letter) = letter {
            self.happen(state, to, letter);
        }
        letter.is_some()
    }

    /// Something that a client hears and that does not complete its operation: it may as well be late,
    /// since what the client sends because of it may be.
    fn hear(&mut self, state: &mut State) -> bool {
        let newest = self.newest(state);
        for client in CLIENTS {
            let letters = [FIRST, SECOND].map(|from| self.letter(state, from, client));
            let answers = self
                .answers_to(state, client)
                .map(|message| Happening::Datagram {
                    from: u8::try_from(WITNESS).unwrap(),
                    message,
                });
            let all: Vec<Happening> = letters.into_iter().flatten().chain(answers).collect();
            let past = self.nodes.past(state.at[client]);
            let (earlier, in_second) = (past.answers.len(), newest == Some(past.view));
            for happening in all {
                let next = self.nodes.after(state.at[client], happening);
                if in_second || self.nodes.past(next).answers.len() == earlier {
                    state.at[client] = next;
                    return true;
                }
            }
        }
        false
    }

    /// The second view, once it is in use.
    fn newest(&self, state: &State) -> Option<View> {
        let located = self.located.get(&state.at[COORDINATOR]);
        located.map(|(view, _)| *view)
    }

    /// What clients of the second view send, as soon as they do.
    fn serve(&mut self, state: &mut State) -> bool {
        let Stage::Over(master) = state.stage else {
            return false;
        };
        let newest = self.newest(state);
        for client in CLIENTS {
            if newest != Some(self.nodes.past(state.at[client]).view) {
                continue;
            }
            if self.take(state, client, master) {
                return true;
            }
            let records = self.datagrams(state).into_iter();
            let mut own = records.filter(|(from, to, _)| *from == client && *to == WITNESS);
            if let Some((from, to, message)) = own.next() {
                self.arrive(state, from, to, message);
                return true;
            }
        }
        false
    }

    /// A client that waits hears of the view in use.
    fn learn(&mut self, state: &mut State, client: usize) -> bool {
        let Some((view, message)) = self.located.get(&state.at[COORDINATOR]).copied() else {
            return false;
        };
        let past = self.nodes.past(state.at[CLIENTS[client]]);
        let learns = usize::from(past.asked) > past.answers.len() && past.view < view;
        if learns {
            self.datagram(state, (COORDINATOR, CLIENTS[client]), message);
        }
        learns
    }

    /// Whether it makes no difference when a client hears of the view in use: what the first master
    /// answers to an update, it may as well have answered before.
    fn learns_at_once(&mut self, state: &mut State) -> bool {
        let mut clients = [0, 1].into_iter();
        clients.any(|client| {
            let asked = usize::from(self.nodes.past(state.at[CLIENTS[client]]).asked);
            let reads = asked > 0 && self.program.reads(client, asked - 1);
            let stays = state.stage == Stage::Over(SECOND) && reads;
            !stays && self.learn(state, client)
        })
    }

    fn deliver_at_once(&mut self, state: &mut State) -> bool {
        let mut channels = AT_ONCE.into_iter();
        let is_led_on = state.stage == Stage::Over(FIRST);
        channels.any(|(from, to)| self.take(state, from, to))
            || (is_led_on && self.take(state, SECOND, FIRST))
    }

    /// Lets happen what nobody else can tell from its happening later, and then asks, or does not until
    /// the other client has one more answer: only that order is seen.
    pub fn settle(&mut self, mut state: State, steps: &mut Vec<State>) {
        let client = loop {
            if let Some(client) = [0, 1].into_iter().find(|one| self.may_ask(&state, *one)) {
                break client;
            }
            let goes_on = self.deliver_at_once(&mut state)
                || self.hear(&mut state)
                || self.learns_at_once(&mut state)
                || self.serve(&mut state);
            if !goes_on {
                steps.push(state);
                return;
            }
        };
        let known = self.nodes.past(state.at[CLIENTS[1 - client]]).answers.len();
        let known_then = u8::try_from(known).unwrap();
        if known < self.commands[1 - client].len() {
            let mut later = state;
            later.waits[client] = known_then + 1;
            self.settle(later, steps);
        }
        let next = usize::from(self.nodes.past(state.at[CLIENTS[client]]).asked);
        state.before[client][next] = known_then;
        state.waits[client] = 0;
        let command = self.commands[client][next];
        self.happen(&mut state, CLIENTS[client], Happening::Asked(command));
        self.settle(state, steps);
    }

    fn may_ask(&self, state: &State, client: usize) -> bool {
        let [own, other] = [client, 1 - client].map(|one| self.nodes.past(state.at[CLIENTS[one]]));
        let next = usize::from(own.asked);
        let is_free = next == own.answers.len() && next < self.commands[client].len();
        is_free && other.answers.len() >= usize::from(state.waits[client])
    }

    fn datagram(&mut self, state: &mut State, (from, to): (usize, usize), message: MessageId) {
        let from = u8::try_from(from).unwrap();
        self.happen(state, to, Happening::Datagram { from, message });
    }

    fn heartbeat(&mut self, state: &mut State, node: usize, life: u64, serves: Option<View>) {
        let heartbeat = CurpMessage::Heartbeat {
            number: 9,
            life,
            shown: Shown {
                serves,
                ..Shown::default()
            },
        };
        let heartbeat = self.nodes.messages.number(heartbeat);
        self.datagram(state, (node, COORDINATOR), heartbeat);
    }

    /// The coordinator hears these for so long that it misses the others, and tries another view.
    fn miss(&mut self, state: &mut State, alive: &[(usize, u64, Option<View>)], orders: usize) {
        let ordered =
            |nodes: &Nodes, state: &State| nodes.past(state.at[COORDINATOR]).letters[orders].len();
        let tick = self.nodes.number_timer(CurpTimer::Coordinate);
        let earlier = ordered(self.nodes, state);
        for _ in 0..4 {
            if ordered(self.nodes, state) > earlier {
                break;
            }
            for (node, life, serves) in alive {
                self.heartbeat(state, *node, *life, *serves);
            }
            self.happen(state, COORDINATOR, Happening::Timer(tick));
        }
        assert!(ordered(self.nodes, state) > earlier, "somebody is missed");
        while self.take(state, COORDINATOR, WITNESS) || self.take(state, WITNESS, COORDINATOR) {}
    }

    fn lose_master(&mut self, state: &mut State) {
        let alive = [SECOND, THIRD, WITNESS].map(|node| (node, 1, None));
        self.miss(state, &alive, SECOND);
        while self.take(state, COORDINATOR, SECOND) {}
        state.stage = Stage::WithoutMaster;
    }

    fn lose_witness(&mut self, state: &mut State) {
        // It has forgotten what it was.
        state.at[WITNESS] = PastId::try_from(WITNESS).unwrap();
        self.happen(state, WITNESS, Happening::Restarted);
        let serves = Some(self.nodes.past(state.at[FIRST]).view);
        let alive = [
            (FIRST, 1, serves),
            (SECOND, 1, None),
            (THIRD, 1, None),
            (WITNESS, 2, None),
        ];
        self.miss(state, &alive, FIRST);
        while self.take(state, COORDINATOR, FIRST)
            || self.take(state, FIRST, SECOND)
            || self.take(state, SECOND, FIRST)
        {}
        state.stage = Stage::WithoutWitness;
        assert!(self.decide(state), "all is there for the next view");
    }

    /// The coordinator decides for the view whose master is ready: no lease of another one holds then.
    fn decide(&mut self, state: &mut State) -> bool {
        let master = match state.stage {
            Stage::WithoutMaster => SECOND,
            Stage::WithoutWitness => FIRST,
            Stage::InUse | Stage::Over(_) => return false,
        };
        if !self.take(state, master, COORDINATOR) {
            return false;
        }
        while self.take(state, master, COORDINATOR) {}
        if master == SECOND {
            let ends = |timer: &CurpTimer| matches!(timer, CurpTimer::LeaseEnds(_));
            if let Some(timer) = self.nodes.timer_of(state.at[FIRST], ends) {
                self.happen(state, FIRST, Happening::Timer(timer));
            }
            let over = |timer: &CurpTimer| matches!(timer, CurpTimer::LeaseOver(_));
            if let Some(timer) = self.nodes.timer_of(state.at[COORDINATOR], over) {
                self.happen(state, COORDINATOR, Happening::Timer(timer));
            }
        }
        while self.take(state, COORDINATOR, master) || self.take(state, COORDINATOR, WITNESS) {}
        let decided = state.at[COORDINATOR];
        let config = self.nodes.core(decided).coordinator().unwrap().config();
        let config = config.cloned().unwrap();
        let view = config.view;
        assert_eq!(view, self.nodes.past(state.at[master]).view, "it serves");
        let message = self
            .nodes
            .messages
            .number(CurpMessage::Located(Some(config)));
        self.located.insert(decided, (view, message));
        state.stage = Stage::Over(master);
        true
    }

    fn may_repeat(&self, state: &State) -> bool {
        let nodes = [WITNESS, CLIENTS[0], CLIENTS[1]];
        let repeats = nodes.map(|node| self.nodes.past(state.at[node]).repeats);
        repeats.iter().sum::<u8>() < self.repeats
    }

    /// Datagrams that may arrive: records and collections, and what was answered to records.
    fn datagrams(&self, state: &State) -> Vec<(usize, usize, MessageId)> {
        let mut all = Vec::new();
        let witness = self.nodes.past(state.at[WITNESS]);
        let may_repeat = self.may_repeat(state);
        let newest = self.newest(state);
        // Nobody can tell whether a table that was read collects any more.
        let is_collecting = witness.taken[SECOND] == 0 && state.stage != Stage::Over(FIRST);
        let senders = if is_collecting { 3 } else { 2 };
        for from in &[CLIENTS[0], CLIENTS[1], FIRST][..senders] {
            let from = *from;
            let sender = self.nodes.past(state.at[from]);
            for message in &sender.datagrams[WITNESS] {
                let CurpMessage::Datagram(datagram) = self.nodes.messages.get(*message) else {
                    continue;
                };
                let has_table = match (state.stage, newest) {
                    (Stage::Over(_), Some(view)) => datagram.view == view,
                    _ => true,
                };
                if has_table && (may_repeat || !witness.got.contains(message)) {
                    all.push((from, WITNESS, *message));
                }
            }
        }
        for client in CLIENTS {
            all.extend(
                self.answers_to(state, client)
                    .map(|message| (WITNESS, client, message)),
            );
        }
        all
    }

    /// Answers of the witness that a client has not heard, and does not ignore.
    fn answers_to(&self, state: &State, client: usize) -> impl Iterator<Item = MessageId> {
        let receiver = self.nodes.past(state.at[client]);
        let answers = &self.nodes.past(state.at[WITNESS]).datagrams[client];
        let is_new = move |message: &&MessageId| {
            !receiver.got.contains(message) && !self.nodes.ignores(receiver, **message)
        };
        answers.iter().filter(is_new).copied()
    }

    /// A datagram arrives; the answer to a collection does at once, or is lost.
    fn arrive(&mut self, state: &mut State, from: usize, to: usize, message: MessageId) {
        self.datagram(state, (from, to), message);
        let CurpMessage::Datagram(asked) = self.nodes.messages.get(message) else {
            return;
        };
        if asked.op != Op::Gc {
            return;
        }
        let round = asked.rpc.seq;
        let answers = self.nodes.past(state.at[to]).datagrams[from].iter();
        let answer = answers.copied().find(|answer| {
            let body = self.nodes.messages.get(*answer);
            matches!(body, CurpMessage::Datagram(answer) if answer.rpc.seq == round)
        });
        if let Some(answer) = answer {
            self.datagram(state, (to, from), answer);
        }
    }

    /// Timers that may be over.
    fn timers(&self, state: &State) -> Vec<(usize, u32)> {
        let mut all = Vec::new();
        let newest = self.newest(state);
        let in_use = state.stage == Stage::InUse;
        for node in [FIRST, CLIENTS[0], CLIENTS[1]] {
            let past = self.nodes.past(state.at[node]);
            for number in &past.timers {
                let is_due = match self.nodes.timer(*number) {
                    CurpTimer::SyncDue(_) => in_use,
                    // What it asks for then may come at any time.
                    CurpTimer::Race { .. } => {
                        past.was_just_asked() && newest.is_none() && self.may_repeat(state)
                    }
                    CurpTimer::Again { .. } => in_use && self.may_repeat(state),
                    _ => false,
                };
                if is_due {
                    all.push((node, *number));
                }
            }
        }
        all
    }

    pub fn steps(&mut self, state: &State) -> Vec<State> {
        let mut steps = Vec::new();
        for (from, to) in CHANNELS {
            let mut next = *state;
            if self.take(&mut next, from, to) {
                steps.push(next);
            }
        }
        for (from, to, message) in self.datagrams(state) {
            let mut next = *state;
            self.arrive(&mut next, from, to, message);
            steps.push(next);
        }
        for (node, timer) in self.timers(state) {
            let mut next = *state;
            self.happen(&mut next, node, Happening::Timer(timer));
            steps.push(next);
        }
        let mut next = *state;
        if self.decide(&mut next) {
            // What it has before anybody asks again.
            self.wrong_at_opening = self.wrong(&next);
            steps.push(next);
        }
        for client in [0, 1] {
            let mut next = *state;
            if self.learn(&mut next, client) {
                steps.push(next);
            }
        }
        if state.stage == Stage::InUse {
            let mut next = *state;
            self.lose_master(&mut next);
            steps.push(next);
            let mut next = *state;
            self.lose_witness(&mut next);
            steps.push(next);
        }
        let mut settled = Vec::new();
        for next in steps {
            self.settle(next, &mut settled);
        }
        settled
    }
}
