//! Of which cluster a command is asked, and what follows from its answer.
//!
//! A cluster answers a command on keys that it does not have with where they are ([`Misplaced`]), and has
//! not executed it then: so it may be asked elsewhere, as a new command. One whose outcome is unknown is
//! asked nowhere else. No I/O and no clock in here: the front asks, and says what time it is.
//!
//! ```text
//! ask ──▶ executed ─────────────────────────────────▶ the client has it
//!  ▲ ├──▶ MOVED to another cluster ── 16 times ─────▶ an error
//!  │ │       └─ remember it, ask there
//!  │ ├──▶ TRYAGAIN ── 30 s after the first one ─────▶ TRYAGAIN
//!  │ │       └─ wait, ask the front's own cluster
//!  └─┴──▶ CROSSSLOT of another cluster ── a second one ▶ CROSSSLOT
//!            └─ ask the front's own cluster
//! ```
//!
//! The own cluster is where a search begins: whatever it gave away, it knows to whom, and so does that one.

use std::collections::BTreeMap;

use manxdb_core::Nanos;
use manxdb_curp::slots::{Group, Misplaced, Slot};

/// Clusters that a command is sent on to, one naming the next, before that is taken for a circle.
const HOPS_MAX: u32 = 16;
/// Of those, how many follow at once. Slots have hardly moved twice meanwhile: later ones wait.
const HOPS_AT_ONCE: u32 = 2;
/// How long a command waits before it is asked again.
const AGAIN_AFTER: Nanos = Nanos::from_millis(20);
/// How often that is doubled while its keys are on their way: each time it is asked is an entry of a log.
const AGAIN_DOUBLED: u32 = 4;
/// For how long a command is asked again whose keys are on their way: longer than a master's failover, and
/// than a copy of slots that are moved in small runs.
const ON_THEIR_WAY_MAX: Nanos = Nanos::from_secs(30);

/// Of which cluster a command is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// The front's own.
    Home,
    /// Another one.
    At(Group),
}

/// What is to be done with an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is the client's.
    Deliver,
    /// The command is to be asked at its place, after a while or at once.
    Ask(Option<Nanos>),
    /// The client is told this instead.
    Refuse(String),
}

/// The way of one command through clusters.
#[derive(Debug)]
pub(super) struct Route {
    place: Place,
    /// How often it was sent on since keys were last on their way.
    hops: u32,
    /// How long it is asked again, once its keys have been on their way.
    until: Option<Nanos>,
    /// How often it was told so.
    waits: u32,
    /// Whether another cluster has said that it needs several.
    is_crossing: bool,
}

impl Route {
    /// Where it is asked next.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    fn home(&mut self, after: Option<Nanos>) -> Verdict {
        self.place = Place::Home;
        Verdict::Ask(after)
    }
}

/// What a front knows of where slots are.
#[derive(Debug)]
pub(super) struct Routes {
    /// Whether it sends commands on, or leaves that to its clients.
    follows: bool,
    /// The name of its own cluster, as others know it.
    own: Option<Group>,
    /// Slots that were elsewhere when somebody last asked. A hint: who has a slot no more says so.
    away: BTreeMap<Slot, Group>,
}

impl Routes {
    /// Nothing is known yet.
    pub(super) fn new(follows: bool, own: Option<Group>) -> Self {
        Self {
            follows,
            own,
            away: BTreeMap::new(),
        }
    }

    /// The way of a command that names keys of these slots begins.
    pub(super) fn begin(&self, slots: impl FnOnce() -> Vec<Slot>) -> Route {
        let place = if self.away.is_empty() {
            Place::Home
        } else {
            self.place_of(&slots())
        };
        assert!(
            self.follows || place == Place::Home,
            "who follows nothing asks one cluster"
        );
        Route {
            place,
            hops: 0,
            until: None,
            waits: 0,
            is_crossing: false,
        }
    }

    /// Where all of these slots are, as far as is known.
    fn place_of(&self, slots: &[Slot]) -> Place {
        let mut groups = slots.iter().map(|slot| self.away.get(slot));
        match groups.next() {
            Some(Some(first)) if groups.all(|other| other == Some(first)) => {
                Place::At(first.clone())
            }
            _ => Place::Home,
        }
    }

    /// What follows from the answer to a command that names keys of these slots.
    pub(super) fn answered(
        &mut self,
        route: &mut Route,
        answer: &[u8],
        now: Nanos,
        slots: impl FnOnce() -> Vec<Slot>,
    ) -> Verdict {
        let misplaced = Misplaced::decode(answer).filter(|_| self.follows);
        match misplaced {
            None => Verdict::Deliver,
            Some(Misplaced::Moved { slot, to }) => self.sent_on(route, (slot, to), slots),
            Some(Misplaced::TryAgain) => {
                let until = *route.until.get_or_insert(now + ON_THEIR_WAY_MAX);
                if now >= until {
                    return Verdict::Deliver;
                }
                // Should the move be cancelled, its target has them no more, and need not say so soon.
                self.forget_slots(&slots());
                route.hops = 0;
                let after = Nanos(AGAIN_AFTER.0 << route.waits.min(AGAIN_DOUBLED));
                route.waits += 1;
                assert!(after < ON_THEIR_WAY_MAX, "it is asked again in time");
                route.home(Some(after))
            }
            Some(Misplaced::CrossSlot) if route.place == Place::Home || route.is_crossing => {
                Verdict::Deliver
            }
            Some(Misplaced::CrossSlot) => {
                // What it gave away it knows no more of than to whom.
                self.forget_slots(&slots());
                route.is_crossing = true;
                route.home(None)
            }
        }
    }

    /// A cluster says that another one has the slot, and all others that the command names.
    fn sent_on(
        &mut self,
        route: &mut Route,
        (slot, to): (Slot, Group),
        slots: impl FnOnce() -> Vec<Slot>,
    ) -> Verdict {
        route.hops += 1;
        if route.hops > HOPS_MAX {
            return Verdict::Refuse(format!(
                "CLUSTERDOWN the clusters say of slot {} in a circle that another one has it, {HOPS_MAX} \
                 times, the last time {to}: does manxdb cluster slots of each of them name the right one?",
                slot.number()
            ));
        }
        let is_own = self.own.as_ref() == Some(&to);
        for slot in slots().into_iter().chain([slot]) {
            if is_own {
                self.away.remove(&slot);
            } else {
                self.away.insert(slot, to.clone());
            }
        }
        route.place = if is_own { Place::Home } else { Place::At(to) };
        let waits = route.hops > HOPS_AT_ONCE;
        Verdict::Ask(waits.then_some(AGAIN_AFTER))
    }

    fn forget_slots(&mut self, slots: &[Slot]) {
        for slot in slots {
            self.away.remove(slot);
        }
    }

    /// A cluster does not answer: the own one is asked where its slots are.
    pub(super) fn forget(&mut self, group: &Group) {
        self.away.retain(|_, other| other != group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Nanos = Nanos::from_secs(7);
    const AT_ONCE: Verdict = Verdict::Ask(None);
    const LATER: Verdict = Verdict::Ask(Some(AGAIN_AFTER));

    fn group(name: &str) -> Group {
        Group::new(name).unwrap()
    }

    fn at(name: &str) -> Place {
        Place::At(group(name))
    }

    fn slots(keys: &[&str]) -> Vec<Slot> {
        keys.iter().map(|key| Slot::of(key.as_bytes())).collect()
    }

    fn moved(key: &str, to: &str) -> Vec<u8> {
        let (slot, to) = (Slot::of(key.as_bytes()), group(to));
        Misplaced::Moved { slot, to }.encode()
    }

    /// A command on keys, at a front of the cluster `own`.
    struct Asked<'a> {
        routes: &'a mut Routes,
        route: Route,
        keys: &'a [&'a str],
    }

    impl<'a> Asked<'a> {
        fn new(routes: &'a mut Routes, keys: &'a [&'a str]) -> Self {
            let route = routes.begin(|| slots(keys));
            Self {
                routes,
                route,
                keys,
            }
        }

        fn told(&mut self, answer: &[u8], now: Nanos) -> Verdict {
            let keys = self.keys;
            self.routes
                .answered(&mut self.route, answer, now, || slots(keys))
        }
    }

    fn routes() -> Routes {
        Routes::new(true, Some(group("own")))
    }

    #[test]
    fn a_command_follows_its_keys_and_the_next_one_knows_where_they_are() {
        let mut routes = routes();
        let mut get = Asked::new(&mut routes, &["foo"]);
        assert_eq!(get.route.place(), &Place::Home);
        assert_eq!(get.told(&moved("foo", "other"), NOW), AT_ONCE);
        assert_eq!(get.route.place(), &at("other"));
        assert_eq!(get.told(b"$1\r\n1\r\n", NOW), Verdict::Deliver);
        let get = Asked::new(&mut routes, &["foo"]);
        assert_eq!(get.route.place(), &at("other"));
        let get = Asked::new(&mut routes, &["a"]);
        assert_eq!(get.route.place(), &Place::Home, "of another slot");
        let all = Asked::new(&mut routes, &[]);
        assert_eq!(all.route.place(), &Place::Home, "DBSIZE names no key");
        // They have come back.
        let mut get = Asked::new(&mut routes, &["foo"]);
        assert_eq!(get.told(&moved("foo", "own"), NOW), AT_ONCE);
        assert_eq!(get.route.place(), &Place::Home);
        let get = Asked::new(&mut routes, &["foo"]);
        assert_eq!(get.route.place(), &Place::Home);
    }

    #[test]
    fn an_answer_that_only_looks_like_a_hint_is_the_clients() {
        let mut routes = routes();
        for answer in [
            &b"-MOVED 12182 other\r\n"[..],
            b"-TRYAGAIN later\r\n",
            b"",
            &[0xFF; 11],
            &[0xFF; 40],
        ] {
            let mut get = Asked::new(&mut routes, &["foo"]);
            assert_eq!(get.told(answer, NOW), Verdict::Deliver, "{answer:?}");
        }
    }

    #[test]
    fn keys_on_their_way_are_asked_for_again_at_home_and_not_for_ever() {
        let mut routes = routes();
        let again = Misplaced::TryAgain.encode();
        let mut get = Asked::new(&mut routes, &["foo"]);
        let (end, mut told) = (NOW + ON_THEIR_WAY_MAX, 0_usize);
        for now in [NOW, NOW + Nanos::from_secs(1), end - Nanos(1)] {
            // More often than a circle may be long.
            for _ in 0..HOPS_MAX {
                assert_eq!(get.told(&moved("foo", "other"), now), AT_ONCE);
                let after = [20, 40, 80, 160, 320][told.min(4)];
                let later = Verdict::Ask(Some(Nanos::from_millis(after)));
                assert_eq!(get.told(&again, now), later);
                told += 1;
                assert_eq!(get.route.place(), &Place::Home, "it may be cancelled");
            }
        }
        assert_eq!(get.told(&again, end), Verdict::Deliver);
    }

    #[test]
    fn a_circle_ends_with_an_error_that_says_so() {
        let mut routes = routes();
        let mut get = Asked::new(&mut routes, &["foo"]);
        for hop in 0..HOPS_MAX {
            let to = ["one", "other"][hop as usize % 2];
            let wanted = if hop < HOPS_AT_ONCE { AT_ONCE } else { LATER };
            assert_eq!(get.told(&moved("foo", to), NOW), wanted, "{hop}");
            assert_eq!(get.route.place(), &at(to));
        }
        let Verdict::Refuse(why) = get.told(&moved("foo", "one"), NOW) else {
            panic!("it goes round for ever");
        };
        assert!(why.contains("slot 12182 in a circle"), "{why}");
    }

    #[test]
    fn keys_of_several_clusters_are_refused_once_the_own_one_says_so() {
        let mut routes = routes();
        let cross = Misplaced::CrossSlot.encode();
        let mut set = Asked::new(&mut routes, &["foo", "a"]);
        assert_eq!(set.told(&cross, NOW), Verdict::Deliver);
        // Both elsewhere, as far as is known; that cluster has one of them no more.
        for key in ["foo", "a"] {
            let mut get = Asked::new(&mut routes, &["foo"]);
            assert_eq!(get.told(&moved(key, "other"), NOW), AT_ONCE);
        }
        let mut set = Asked::new(&mut routes, &["foo", "a"]);
        assert_eq!(set.route.place(), &at("other"));
        assert_eq!(set.told(&cross, NOW), AT_ONCE);
        assert_eq!(set.route.place(), &Place::Home);
        assert_eq!(set.told(&moved("foo", "third"), NOW), AT_ONCE);
        assert_eq!(set.told(&cross, NOW), Verdict::Deliver);
    }

    #[test]
    fn a_front_that_follows_nothing_passes_on_what_it_hears() {
        let mut routes = Routes::new(false, Some(group("own")));
        for answer in [moved("foo", "other"), Misplaced::TryAgain.encode()] {
            let mut get = Asked::new(&mut routes, &["foo"]);
            assert_eq!(get.told(&answer, NOW), Verdict::Deliver);
        }
        let get = Asked::new(&mut routes, &["foo"]);
        assert_eq!(get.route.place(), &Place::Home);
    }

    #[test]
    fn slots_of_a_cluster_that_is_silent_are_asked_for_at_home() {
        let mut routes = routes();
        let mut get = Asked::new(&mut routes, &["foo"]);
        get.told(&moved("foo", "other"), NOW);
        routes.forget(&group("other"));
        let get = Asked::new(&mut routes, &["foo"]);
        assert_eq!(get.route.place(), &Place::Home);
    }
}
