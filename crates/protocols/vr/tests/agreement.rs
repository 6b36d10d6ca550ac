//! Members of a group under crashes, pauses and random delivery: what one of them holds for agreed
//! on, all do, for ever.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, VecDeque};

use manxdb_core::{NodeId, Random};
use manxdb_vr::{Group, GroupMessage, GroupOptions, Out, State, Status};

/// All entries, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entries(Vec<u64>);

impl State for Entries {
    type Entry = u64;

    fn apply(&mut self, number: u64, entry: &u64) {
        self.0.push(*entry);
        assert_eq!(
            self.0.len() as u64,
            number,
            "entries are applied one after another"
        );
    }
}

type Message = GroupMessage<Entries, u64>;

const MEMBERS: [NodeId; 3] = [NodeId(10), NodeId(11), NodeId(12)];

struct Net {
    members: Vec<Option<Group<Entries>>>,
    lives: u64,
    /// Messages on their way, in order for each pair.
    links: BTreeMap<(usize, usize), VecDeque<Message>>,
    /// The longest sequence that a member held for agreed on.
    agreed: Vec<u64>,
    proposed: u64,
}

impl Net {
    fn new() -> Self {
        let member = |place| Some(member(place, None));
        Self {
            members: (0..3).map(member).collect(),
            lives: 1,
            links: BTreeMap::new(),
            agreed: Vec::new(),
            proposed: 0,
        }
    }

    fn send(&mut self, from: usize, out: Out<Entries>) {
        for (to, message) in out {
            let to = MEMBERS.iter().position(|member| *member == to).unwrap();
            self.links.entry((from, to)).or_default().push_back(message);
        }
    }

    fn with(&mut self, place: usize, act: impl FnOnce(&mut Group<Entries>, &mut Out<Entries>)) {
        let mut out = Out::<Entries>::new();
        if let Some(member) = &mut self.members[place] {
            act(member, &mut out);
            let state = member.state().0.clone();
            self.compare(&state);
        }
        self.send(place, out);
    }

    fn compare(&mut self, state: &[u64]) {
        let common = state.len().min(self.agreed.len());
        assert_eq!(
            state[..common],
            self.agreed[..common],
            "two members agreed on different entries"
        );
        if state.len() > self.agreed.len() {
            self.agreed = state.to_vec();
        }
    }

    fn deliver(&mut self, random: &mut Random) {
        let waiting: Vec<(usize, usize)> = self
            .links
            .iter()
            .filter(|(_, link)| !link.is_empty())
            .map(|(pair, _)| *pair)
            .collect();
        if waiting.is_empty() {
            return;
        }
        let pair = waiting[usize::try_from(random.below(waiting.len() as u64)).unwrap()];
        let message = self.links.get_mut(&pair).unwrap().pop_front().unwrap();
        self.with(pair.1, |member, out| {
            member.receive(MEMBERS[pair.0], message, out);
        });
    }

    fn propose(&mut self) {
        for place in 0..3 {
            let leads = self.members[place].as_ref().is_some_and(Group::leads);
            if leads {
                self.proposed += 1;
                let entry = self.proposed;
                self.with(place, |member, out| {
                    member.propose(entry, out);
                });
            }
        }
    }

    /// The member forgets everything, and what was on its way to or from it is lost.
    fn crash(&mut self, place: usize) {
        let is_normal = |member: &Option<Group<Entries>>| {
            member
                .as_ref()
                .is_some_and(|member| member.status() == Status::Normal)
        };
        let others = (0..3).filter(|other| *other != place);
        if others
            .filter(|other| is_normal(&self.members[*other]))
            .count()
            < 2
        {
            return;
        }
        self.links
            .retain(|(from, to), _| *from != place && *to != place);
        self.lives += 1;
        self.members[place] = Some(member(place, Some(self.lives)));
        self.with(place, Group::start);
    }

    fn tick(&mut self) {
        for place in 0..3 {
            self.with(place, Group::tick);
        }
    }
}

fn member(place: usize, nonce: Option<u64>) -> Group<Entries> {
    let options = GroupOptions::default();
    Group::new(MEMBERS.to_vec(), place, Entries::default(), nonce, options)
}

#[test]
fn members_agree_whatever_happens() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut net = Net::new();
        for _ in 0..3_000 {
            match random.below(100) {
                0 => net.crash(usize::try_from(random.below(3)).unwrap()),
                // Ticks are rare beside messages, or patience ends before anything arrives.
                1..=6 => net.tick(),
                7..=15 => net.propose(),
                _ => net.deliver(&mut random),
            }
        }
        // In calm weather the group goes on.
        let before = net.agreed.len();
        for _ in 0..400 {
            net.tick();
            for _ in 0..200 {
                net.deliver(&mut random);
            }
            net.propose();
        }
        assert!(
            net.agreed.len() > before + 10,
            "seed {seed}: nothing more is agreed on"
        );
    }
}

#[test]
fn a_leader_that_is_cut_off_cannot_agree_alone() {
    let mut net = Net::new();
    net.with(0, |leader, out| {
        leader.propose(7, out);
    });
    net.links.clear();
    assert!(net.agreed.is_empty());
    // The others give it up, and what they never heard of is not there.
    let mut random = Random::new(1);
    let mut deliver_apart = |net: &mut Net| {
        for _ in 0..20 {
            net.links.retain(|(from, to), _| *from != 0 && *to != 0);
            net.deliver(&mut random);
        }
    };
    for _ in 0..60 {
        for place in 1..3 {
            net.with(place, Group::tick);
        }
        deliver_apart(&mut net);
    }
    let leads = |net: &Net, place: usize| net.members[place].as_ref().unwrap().leads();
    assert!(leads(&net, 0), "it has not heard of it");
    assert!(leads(&net, 1) || leads(&net, 2));
    net.propose();
    deliver_apart(&mut net);
    assert_eq!(
        net.agreed,
        vec![2],
        "the first was proposed by the one that is cut off"
    );
}
