//! Who leads, and whose writes have an effect.

use std::time::Duration;

use manxdb_etcd::api::TxnRequest;
use manxdb_etcd::fence::{Fence, FenceSettings, Won, Written};
use manxdb_etcd::{Etcd as Client, EtcdAddress, delete, put};
use manxdb_test_etcd::Etcd;

const STATE: &[u8] = b"/fenced/state";

/// With a lease that does not run out while a test lasts.
fn settings(etcd: &Etcd) -> FenceSettings {
    FenceSettings {
        address: EtcdAddress {
            members: vec![etcd.members()],
            ..EtcdAddress::default()
        },
        leader: b"/fenced/leader".to_vec(),
        written: b"/fenced/written".to_vec(),
        lease: Duration::from_secs(600),
    }
}

fn two(settings: &FenceSettings) -> [Fence; 2] {
    [(); 2].map(|()| Fence::new(settings.clone()).unwrap())
}

fn elected(fence: &mut Fence, name: &str) -> u64 {
    match fence.campaign(name).unwrap() {
        Won::Term(term) => term,
        Won::Taken(leader) => panic!("{leader} leads"),
    }
}

fn write(fence: &mut Fence, term: u64, value: &str) -> Written {
    let change = put(STATE.to_vec(), value.into(), 0);
    fence.write(term, 1, 1, vec![change]).unwrap()
}

fn state(settings: &FenceSettings) -> String {
    let mut client = Client::new(&settings.address).unwrap();
    let found = client.get(STATE).unwrap();
    String::from_utf8(found.unwrap().value).unwrap()
}

/// As when the leader's lease has run out: its key is gone, and it does not know.
fn let_go(settings: &FenceSettings) {
    let gone = TxnRequest {
        success: vec![delete(settings.leader.clone())],
        ..TxnRequest::default()
    };
    let mut client = Client::new(&settings.address).unwrap();
    client.txn(&gone).unwrap();
}

/// One leads, and writes again after another one has led; whether that had an effect.
fn write_of_an_old_term(change: impl Fn(&mut Fence)) -> (Written, String) {
    let etcd = Etcd::start(1);
    let settings = settings(&etcd);
    let [mut one, mut other] = two(&settings);
    change(&mut one);
    let first = elected(&mut one, "one");
    let taken = Won::Taken("one".to_owned());
    assert_eq!(other.campaign("other").unwrap(), taken);
    let_go(&settings);
    // Nothing is written in the second term: the count alone does not tell the terms apart.
    let second = elected(&mut other, "other");
    assert!(second > first, "{second} follows {first}");
    let written = write(&mut one, first, "of the old term");
    if written == Written::Deposed {
        assert_eq!(write(&mut other, second, "of the new"), Written::Records(1));
    }
    (written, state(&settings))
}

#[test]
fn a_write_of_an_old_term_is_refused() {
    let (written, state) = write_of_an_old_term(|_| {});
    assert_eq!(written, Written::Deposed);
    assert_eq!(state, "of the new");
}

#[test]
fn a_fence_that_takes_it_is_found() {
    let (written, state) = write_of_an_old_term(Fence::write_whoever_leads);
    assert_eq!(written, Written::Records(1));
    assert_eq!(state, "of the old term");
}

#[test]
fn a_leader_that_resigns_lets_the_other_lead_and_write() {
    let etcd = Etcd::start(1);
    let settings = settings(&etcd);
    let [mut one, mut other] = two(&settings);
    let first = elected(&mut one, "one");
    assert!(one.renewer().unwrap().renew(first).unwrap());
    assert_eq!(write(&mut one, first, "one's"), Written::Records(1));
    one.resign(first).unwrap();
    assert!(!one.holds(first));
    assert!(!one.renewer().unwrap().renew(first).unwrap());
    let second = elected(&mut other, "other");
    assert_eq!(state(&settings), "one's", "what was written stays");
    assert_eq!(write(&mut other, second, "other's"), Written::Records(1));
    // The one that resigned does not ask etcd for a term that it does not hold.
    assert_eq!(write(&mut one, first, "one's again"), Written::Deposed);
    assert_eq!(state(&settings), "other's");
}

#[test]
fn a_write_whose_answer_was_lost_counts_once() {
    let etcd = Etcd::start(1);
    let settings = settings(&etcd);
    let mut one = Fence::new(settings.clone()).unwrap();
    let term = elected(&mut one, "one");
    let unheard = TxnRequest {
        success: vec![
            put(STATE.to_vec(), b"first".to_vec(), 0),
            put(settings.written.clone(), b"1".to_vec(), 0),
        ],
        ..TxnRequest::default()
    };
    let mut client = Client::new(&settings.address).unwrap();
    client.txn(&unheard).unwrap();
    assert_eq!(write(&mut one, term, "first"), Written::Records(1));
    assert_eq!(one.written(), 1);
    assert_eq!(write(&mut one, term, "second"), Written::Records(1));
    assert_eq!((one.written(), state(&settings).as_str()), (2, "second"));
}
