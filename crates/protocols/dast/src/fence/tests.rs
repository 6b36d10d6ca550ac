//! Promises, changes and spans of a ledger.

use super::*;

fn at(micros: u64) -> Timestamp {
    Timestamp::at(micros, 7)
}

fn ballot(round: u64, region: u32) -> Ballot {
    Ballot {
        round,
        region: RegionId(region),
    }
}

fn fence(end: u64) -> Fence {
    Fence {
        region: RegionId(2),
        end: at(end),
        orders: Vec::new(),
    }
}

fn back(micros: u64) -> Return {
    Return {
        region: RegionId(2),
        back: Timestamp::at(micros, 0),
        moved: vec![at(10), at(20), Timestamp::at(20, 8)],
        orders: Vec::new(),
    }
}

#[test]
fn a_smaller_ballot_is_neither_promised_nor_accepted() {
    let mut fences = Fences::default();
    let frozen = Some((RegionId(2), at(9)));
    assert!(fences.promise(1, ballot(1, 1), frozen, None));
    assert!(!fences.promise(1, ballot(1, 0), None, None));
    assert!(!fences.accept(1, ballot(1, 0), &Change::Nothing));
    assert!(fences.accept(1, ballot(1, 1), &Change::Nothing));
    let later = Some((RegionId(2), at(30)));
    assert!(fences.promise(1, ballot(2, 0), later, None));
    assert_eq!(fences.frozen(RegionId(2)), Some(at(9)), "as promised first");
    assert_eq!(fences.accepted().map(|it| it.0), Some(ballot(1, 1)));
    assert!(!fences.promise(2, ballot(9, 0), None, None), "not the next");
    assert_eq!(fences.check(), Ok(()));
}

#[test]
fn a_change_ends_promises_and_comes_once() {
    let mut fences = Fences::default();
    fences.promise(1, ballot(1, 1), Some((RegionId(2), at(9))), Some(at(50)));
    let change = Change::Fence(fence(12));
    assert!(fences.begin(1, 1, &change));
    assert!(!fences.begin(1, 1, &change));
    assert_eq!((fences.cap(), fences.frozen(RegionId(2))), (None, None));
    assert!(
        !fences.begin(2, 1, &change),
        "of epoch 2 it knows the change"
    );
    assert_eq!(fences.last_epoch(), 1);
    assert_eq!(fences.next(), 3);
}

/// Region 2 is fenced and comes back, then region 1 is fenced.
fn three_changes() -> Fences {
    let mut fences = Fences::default();
    let other = Fence {
        region: RegionId(1),
        ..fence(95)
    };
    let changes = [
        (1, Change::Fence(fence(12))),
        (2, Change::Return(back(90))),
        (3, Change::Nothing),
        (4, Change::Fence(other)),
    ];
    for (epoch, change) in changes {
        fences.begin(epoch, epoch, &change);
        match &change {
            Change::Nothing => {}
            Change::Fence(it) => fences.fence(it, None),
            Change::Return(it) => fences.take_back(it),
        }
        assert_eq!(fences.check(), Ok(()));
    }
    fences
}

#[test]
fn who_has_missed_two_changes_is_told_them_in_their_order() {
    let fences = three_changes();
    let news = |known| {
        let news = fences.news_since(known);
        let change = news.change.map(|(at, change)| {
            let is_fence = matches!(change, Change::Fence(_));
            (at, is_fence)
        });
        (news.after, news.epoch, change)
    };
    assert_eq!(news(1), (1, 3, Some((2, false))), "up to before the fence");
    assert_eq!(news(2), (2, 4, Some((4, true))));
    assert_eq!(news(3), (2, 4, Some((4, true))));
    assert_eq!(news(4), (4, 4, None));
    // No region has missed more: it is not for one that knows nothing.
    assert_eq!(news(0), (1, 3, Some((2, false))));
}

#[test]
fn streams_begin_again_where_the_last_return_says() {
    let fences = three_changes();
    let [own, one, two] = [0, 1, 2].map(RegionId);
    let back = Timestamp::at(90, 0);
    assert_eq!(fences.begun_again(own, two, 0), Some(back));
    assert_eq!(fences.begun_again(own, two, 1), Some(back));
    assert_eq!(fences.begun_again(own, two, 2), None, "that is known");
    assert_eq!(fences.begun_again(own, one, 0), None);
    // To who has come back itself, all streams.
    let from = |other| fences.begun_again(two, other, 1);
    let start = Some(Timestamp::ZERO);
    assert_eq!((from(own), from(one)), (start, start));
}

#[test]
fn moved_transactions_keep_their_order_and_their_homes() {
    let back = back(90);
    let places = back.moved.iter().map(|old| back.new_place(*old));
    let places: Vec<Timestamp> = places.collect();
    assert!(places.is_sorted());
    assert!(places.iter().all(|at| at.micros == 90 && *at > back.back));
    assert_eq!(places[2].site, 8);
}

#[test]
fn the_fenced_region_keeps_what_it_had_passed() {
    let mut fences = Fences::default();
    fences.fence(&fence(12), Some((at(15), Vec::new())));
    let span = fences.fenced().expect("it is fenced");
    assert_eq!((span.from, fences.stood()), (at(15), at(15)));
    assert!(fences.is_out() && fences.is_fenced(RegionId(2)));
    fences.take_back(&back(90));
    assert!(!fences.is_out() && fences.fenced().is_none());
    assert_eq!(fences.floor(RegionId(0)), at(15));
    fences.pass(Timestamp::at(90, 3));
    assert_eq!(fences.spans().len(), 1, "what was moved may not have run");
    fences.pass(Timestamp::at(91, 0));
    assert!(fences.spans().is_empty() && fences.check().is_ok());
}

#[test]
fn what_others_close_is_told_the_fenced_region_once_it_means_something() {
    let mut fences = Fences::default();
    fences.fence(&fence(12), None);
    let closed = |fences: &Fences, micros| fences.spans()[0].told(at(micros));
    assert_eq!(closed(&fences, 11), at(11));
    assert_eq!(closed(&fences, 40), at(12));
    fences.take_back(&back(90));
    assert_eq!(closed(&fences, 90), at(12));
    assert_eq!(closed(&fences, 91), at(91));
    assert_eq!(fences.floor(RegionId(2)), Timestamp::at(90, 0));
}

#[test]
fn each_broken_invariant_is_found() {
    let made = |after, epoch| Made {
        after,
        epoch,
        change: Change::Nothing,
    };
    let broken = |defect: &dyn Fn(&mut Fences), name: &str| {
        let mut fences = Fences::default();
        fences.fence(&fence(12), None);
        (fences.epoch, fences.made) = (1, vec![made(0, 1)]);
        assert_eq!(fences.check(), Ok(()));
        defect(&mut fences);
        let found = fences.check();
        let is_found = found.as_ref().is_err_and(|broken| broken.contains(name));
        assert!(is_found, "{name}: {found:?}");
    };
    broken(
        &|it| it.accepted = Some((ballot(1, 0), Change::Nothing)),
        "F1",
    );
    broken(&|it| it.cap = Some(at(1)), "F2");
    broken(&|it| it.spans.push(it.spans[0]), "F3");
    broken(&|it| it.made.push(made(0, 1)), "F3");
    broken(
        &|it| {
            it.epoch = 4;
            it.made = vec![made(0, 1), made(2, 4)];
        },
        "F3",
    );
    broken(&|it| it.spans[0].back = Some(at(12)), "F4");
    let idle = Fences {
        is_out: true,
        ..Fences::default()
    };
    assert!(idle.check().is_err_and(|broken| broken.contains("F3")));
}
