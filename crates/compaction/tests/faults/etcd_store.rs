//! The store in a real etcd, without processes around it: who may write, and what is there then.

use std::sync::Arc;
use std::time::Duration;

use manxdb_compaction::control::store::etcd::{EtcdSettings, EtcdStore};
use manxdb_compaction::control::store::keys::{DESCRIPTION_MAX, Keys};
use manxdb_compaction::control::store::{Campaign, StoreError};
use manxdb_compaction::mutants::Mutant;
use manxdb_etcd::api::TxnRequest;
use manxdb_etcd::{Etcd as Client, EtcdTls, delete, put};
use manxdb_jobs::record::{Account, Durable, Record};
use manxdb_jobs::{AttemptId, JobId, Spec, Term, WorkerId};
use manxdb_test_etcd::Etcd;

use crate::process::until;
use crate::roles;
use crate::security::Authority;
use crate::settings::Settings;

/// With leases that do not run out while a test lasts.
fn settings(etcd: &Etcd) -> EtcdSettings {
    let settings = roles::etcd(&Settings::default().with("etcd", etcd.members()));
    let lease = Duration::from_secs(600);
    EtcdSettings { lease, ..settings }
}

/// As when the leader's lease has run out.
fn let_go(settings: &EtcdSettings) {
    let success = vec![delete(Keys::below(&settings.prefix).leader())];
    let gone = TxnRequest {
        success,
        ..TxnRequest::default()
    };
    let mut client = Client::new(&settings.address).unwrap();
    client.txn(&gone).unwrap();
}

fn job(number: u64) -> JobId {
    JobId {
        number,
        ..JobId::default()
    }
}

fn taken(number: u64, bytes: usize) -> Record {
    let spec = Spec {
        input: vec![7; bytes].into(),
        ..Spec::default()
    };
    let job = job(number);
    Record::Job { job, spec }
}

fn leased(number: u64) -> Record {
    let attempt = AttemptId {
        job: job(number),
        number: 1,
        token: 3,
    };
    let worker = WorkerId(5);
    let account = Account {
        lately: number,
        ..Account::default()
    };
    Record::Leased {
        attempt,
        worker,
        account,
    }
}

fn elected(store: &mut EtcdStore) -> (Term, Durable) {
    let mut elected = None;
    until("it leads", || {
        if let Campaign::Elected(term, durable) = store.campaign().unwrap() {
            elected = Some((term, durable));
        }
        elected.is_some()
    });
    elected.unwrap()
}

/// One leads, stands still past its lease, and goes on when another one leads; what is wrong then
/// with the other one's state.
fn deposed(change: impl Fn(&mut EtcdStore)) -> Result<(), String> {
    let etcd = Etcd::start(1);
    let settings = settings(&etcd);
    let mut one = EtcdStore::open(&settings).unwrap();
    change(&mut one);
    let mut other = EtcdStore::open(&settings).unwrap();
    let (first, durable) = elected(&mut one);
    assert_eq!(durable, Durable::default());
    assert_eq!(one.write(first, 1, &[taken(1, 10)]).unwrap(), 1);
    assert!(matches!(other.campaign().unwrap(), Campaign::Taken(_)));
    // It stands still, and does not know that its lease runs out.
    let_go(&settings);
    let (second, durable) = elected(&mut other);
    assert!(second > first);
    assert_eq!(durable, Durable::of([taken(1, 10)]));
    assert_eq!(other.write(second, 1, &[leased(1)]).unwrap(), 1);
    for records in [
        vec![Record::Over { job: job(1) }],
        vec![taken(2, 1), taken(3, 1)],
    ] {
        match one.write(first, 2, &records) {
            Err(StoreError::Deposed(term)) if term == first => {}
            written => return Err(format!("{first:?} wrote in {second:?}: {written:?}")),
        }
    }
    // The one that leads finds all as it has left it.
    assert_eq!(other.write(second, 2, &[taken(4, 1)]).unwrap(), 2);
    other.resign(second);
    let (third, durable) = elected(&mut one);
    assert!(third > second);
    let history = [taken(1, 10), leased(1), taken(4, 1)];
    assert_eq!(durable, Durable::of(history));
    Ok(())
}

#[test]
fn a_deposed_leader_writes_nothing() {
    deposed(|_| {}).unwrap();
}

#[test]
fn writes_that_are_taken_whoever_leads_are_found() {
    let why = deposed(|store| store.plant(Mutant::WritesWhoeverLeads)).unwrap_err();
    assert!(why.contains("wrote in"), "{why}");
}

#[test]
fn a_lease_runs_out_unless_it_is_renewed() {
    let etcd = Etcd::start(1);
    let settings = EtcdSettings {
        lease: Duration::from_secs(6),
        ..settings(&etcd)
    };
    let mut one = EtcdStore::open(&settings).unwrap();
    let mut other = EtcdStore::open(&settings).unwrap();
    let (term, _) = elected(&mut one);
    let mut renewer = one.renewer().unwrap();
    // By etcd's own clock: leases as long that nobody renews run out, one after the other.
    let mut client = Client::new(&settings.address).unwrap();
    for _ in 0..2 {
        let unrenewed = client.grant(6).unwrap();
        let key = b"/elsewhere".to_vec();
        let stands = TxnRequest {
            success: vec![put(key.clone(), Vec::new(), unrenewed)],
            ..TxnRequest::default()
        };
        client.txn(&stands).unwrap();
        until("a lease that nobody renews runs out", || {
            assert!(renewer.renew(term).unwrap());
            assert!(matches!(other.campaign().unwrap(), Campaign::Taken(_)));
            client.get(&key).unwrap().is_none()
        });
    }
    assert_eq!(one.write(term, 1, &[taken(1, 1)]).unwrap(), 1);
    let (later, _) = elected(&mut other);
    assert!(later > term && !renewer.renew(term).unwrap());
    assert!(one.write(term, 2, &[taken(2, 1)]).is_err());
}

#[test]
fn more_than_a_transaction_takes_is_written_and_read() {
    let etcd = Etcd::start(1);
    let settings = settings(&etcd);
    let mut one = EtcdStore::open(&settings).unwrap();
    let (term, _) = elected(&mut one);
    let mut history: Vec<Record> = (1..=700).map(|number| taken(number, 100)).collect();
    history.extend((701..=706).map(|number| taken(number, DESCRIPTION_MAX)));
    history.extend((701..=706).map(|number| Record::Result {
        attempt: AttemptId {
            job: job(number),
            number: 1,
            token: 4,
        },
        worker: WorkerId(5),
        result: Arc::from(vec![9; DESCRIPTION_MAX]),
    }));
    history.extend((1..=300).map(|number| Record::Over { job: job(number) }));
    history.push(Record::Banned {
        worker: WorkerId(9),
    });
    let mut from = 1;
    for part in history.chunks(400) {
        let through = one.write(term, from, part).unwrap();
        from += part.len() as u64;
        assert_eq!(through + 1, from);
    }
    one.resign(term);
    let mut other = EtcdStore::open(&settings).unwrap();
    let (_, durable) = elected(&mut other);
    assert!(
        durable == Durable::of(history),
        "something is missing, or too much"
    );
}

/// As when etcd's word of a write is lost, and the write is sent again with more behind it.
#[test]
fn a_write_whose_answer_was_lost_counts_once() {
    let etcd = Etcd::start(1);
    let settings = settings(&etcd);
    let mut one = EtcdStore::open(&settings).unwrap();
    let (term, _) = elected(&mut one);
    let history = [
        taken(1, 1),
        leased(1),
        Record::Over { job: job(1) },
        taken(2, 1),
    ];
    let keys = Keys::below(&settings.prefix);
    let mut success = keys.changes(&Durable::default(), &history[..2]).unwrap();
    success.push(put(keys.written(), b"2".to_vec(), 0));
    let unheard = TxnRequest {
        success,
        ..TxnRequest::default()
    };
    Client::new(&settings.address)
        .unwrap()
        .txn(&unheard)
        .unwrap();
    assert_eq!(one.write(term, 1, &history).unwrap(), 4);
    assert_eq!(one.write(term, 1, &history).unwrap(), 4);
    assert_eq!(one.write(term, 9, &history).unwrap(), 4);
    one.resign(term);
    assert_eq!(elected(&mut one).1, Durable::of(history));
}

#[test]
fn a_state_that_somebody_else_has_changed_is_not_written_to() {
    let etcd = Etcd::start(1);
    let settings = settings(&etcd);
    let mut one = EtcdStore::open(&settings).unwrap();
    let (term, _) = elected(&mut one);
    one.write(term, 1, &[taken(1, 1)]).unwrap();
    let keys = Keys::below(&settings.prefix);
    let meddled = TxnRequest {
        success: vec![put(keys.written(), b"0".to_vec(), 0)],
        ..TxnRequest::default()
    };
    Client::new(&settings.address)
        .unwrap()
        .txn(&meddled)
        .unwrap();
    let refused = one.write(term, 2, &[leased(1)]).unwrap_err();
    assert!(matches!(refused, StoreError::Deposed(_)), "{refused}");
}

#[test]
fn what_cannot_be_read_is_left_alone_and_named() {
    let etcd = Etcd::start(1);
    let settings = settings(&etcd);
    let mut one = EtcdStore::open(&settings).unwrap();
    let (term, _) = elected(&mut one);
    one.write(term, 1, &[taken(1, 1)]).unwrap();
    one.resign(term);
    let keys = Keys::below(&settings.prefix);
    let broken = keys.changes(&Durable::default(), &[taken(1, 2)]).unwrap();
    let mut client = Client::new(&settings.address).unwrap();
    for operation in broken {
        let Some(manxdb_etcd::api::request_op::Request::RequestPut(mut one)) = operation.request
        else {
            panic!("a job is put");
        };
        one.value[0] ^= 1;
        let success = vec![put(one.key, one.value, 0)];
        let broken = TxnRequest {
            success,
            ..TxnRequest::default()
        };
        client.txn(&broken).unwrap();
    }
    let refused = one.campaign().unwrap_err().to_string();
    assert!(
        refused.contains("jobs/") && refused.contains("damaged"),
        "{refused}"
    );
    let refused = EtcdStore::open(&settings)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(refused.contains("damaged"), "{refused}");
}

#[test]
fn who_is_not_let_in_finds_out_why() {
    let etcd = Etcd::start(1);
    let refused = |settings: &EtcdSettings| {
        let refused = EtcdStore::open(settings).map(|_| ());
        refused.unwrap_err().to_string()
    };
    let ours = |user: &str| {
        let given = Settings::default().with("etcd", etcd.members());
        roles::etcd(&given.changed(&[("user", user)]))
    };
    // Nobody listens there.
    let nowhere = roles::etcd(&Settings::default().with("etcd", "127.0.0.1:1"));
    let why = refused(&nowhere);
    assert!(
        why.contains("127.0.0.1:1") && why.contains("refused"),
        "{why}"
    );
    let why = refused(&roles::etcd(&Settings::default().with("etcd", "localhost")));
    assert!(why.contains("HOST:PORT"), "{why}");
    // A password where none is asked for.
    let why = refused(&ours("root:secret"));
    assert!(why.contains("authentication is not enabled"), "{why}");
    etcd.ask_for_password("secret");
    for user in ["", "root:wrong", "nobody:secret"] {
        let why = refused(&ours(user));
        assert!(
            why.contains("--etcd-user") && why.contains(&etcd.members()),
            "{why}"
        );
    }
    let mut store = EtcdStore::open(&ours("root:secret")).unwrap();
    let (term, _) = elected(&mut store);
    assert_eq!(store.write(term, 1, &[taken(1, 1)]).unwrap(), 1);
    assert!(store.renewer().unwrap().renew(term).unwrap());
}

#[test]
fn etcd_may_ask_for_certificates() {
    let authority = Authority::new("etcd");
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = authority.sign("127.0.0.1", false);
    for (name, text) in [
        ("member.ca", &authority.pem),
        ("member.cert", &certificate),
        ("member.key", &key),
    ] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let etcd = Etcd::with_tls(&directory.path().join("member"));
    let with = |authority: &Authority, own| {
        let mut settings = settings(&etcd);
        let authority = authority.pem.clone();
        settings.address.tls = Some(EtcdTls { authority, own });
        EtcdStore::open(&settings)
    };
    let own = || Some(authority.sign("us", false));
    let mut store = with(&authority, own()).unwrap();
    let (term, _) = elected(&mut store);
    assert_eq!(store.write(term, 1, &[taken(1, 1)]).unwrap(), 1);
    let others = Authority::new("others");
    let other_authority = Some(others.sign("us", false));
    for refused in [
        with(&others, own()),
        with(&authority, other_authority),
        with(&authority, None),
    ] {
        let why = refused.map(|_| ()).unwrap_err().to_string();
        assert!(why.contains(&etcd.members()), "{why}");
    }
    let plain = EtcdStore::open(&settings(&etcd)).map(|_| ());
    assert!(plain.is_err());
}
