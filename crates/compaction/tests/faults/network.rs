//! Connections that are held or cut, storage that is away, words said twice, words too large.

use std::collections::BTreeMap;

use manxdb_compaction::transport::wire::proto::pool_client::PoolClient;
use manxdb_compaction::transport::wire::proto::word::Word as Kind;
use manxdb_compaction::transport::wire::proto::{
    Ability, Alive, AttemptId, Beat, Ended, Facts, JobId, Spec, Submit, Word, ended,
};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use crate::cluster::{Cluster, Member};
use crate::process::until;
use crate::proxy::Proxy;

fn working() -> (Cluster, Member, Member) {
    let mut cluster = Cluster::new();
    let worker = cluster.worker(&[]);
    let mut database = cluster.database(&[]);
    until("the pool works", || database.count("installed") > 0);
    (cluster, worker, database)
}

fn goes_on(database: &mut Member) {
    let before = database.count("installed");
    until("it goes on", || database.count("installed") > before + 1);
}

#[test]
fn a_database_cut_off_from_the_control_plane_compacts_at_home() {
    for part in [Proxy::hold, Proxy::cut] {
        let (cluster, _worker, mut database) = working();
        part(&database.road);
        until("it compacts at home", || database.count("away") > 2);
        database.road.open();
        goes_on(&mut database);
        cluster.finish(vec![database]);
    }
}

#[test]
fn a_worker_cut_off_from_the_control_plane_loses_its_jobs_to_another() {
    for part in [Proxy::hold, Proxy::cut] {
        let (mut cluster, mut worker, mut database) = working();
        part(&worker.road);
        let _second = cluster.worker(&[]);
        goes_on(&mut database);
        until("it is missed", || {
            let workers = cluster.report().workers;
            workers.iter().all(|line| line.worker != worker.id)
        });
        worker.road.open();
        let before = worker.count("finished");
        until("it works again", || worker.count("finished") > before);
        cluster.finish(vec![database]);
    }
}

#[test]
fn a_worker_without_its_storage_fails_and_the_database_compacts_at_home() {
    let mut cluster = Cluster::new();
    let mount = cluster.path().join("mount");
    std::os::unix::fs::symlink(cluster.path().join("volume"), &mount).unwrap();
    let mut worker = cluster.worker(&[("volume", mount.to_str().unwrap())]);
    let mut database = cluster.database(&[]);
    until("the pool works", || database.count("installed") > 0);
    std::fs::remove_file(&mount).unwrap();
    until("attempts fail", || worker.count("failed") > 2);
    until("it compacts at home", || {
        database.count("attempts") + database.count("poison") > 0
    });
    assert!(!mount.exists(), "the worker wrote where nothing is mounted");
    std::os::unix::fs::symlink(cluster.path().join("volume"), &mount).unwrap();
    goes_on(&mut database);
    cluster.finish(vec![database]);
}

#[test]
fn a_job_larger_than_other_servers_take_is_done_and_one_too_large_for_any_message_stays() {
    let (mut cluster, mut worker, former) = working();
    cluster.finish(vec![former]);
    // tonic's own limit is 4 MB.
    let mut large = cluster.database(&[("parameters_bytes", "6000000")]);
    until("large descriptions are taken", || {
        large.count("unfit") == 0 && worker.count("failed") > 0
    });
    let mut too_large = cluster.database(&[("parameters_bytes", "17000000")]);
    until("it stays at home", || too_large.count("unfit") > 1);
    too_large.logs(&["stays at home", "17000", "a message at most"]);
    assert_eq!(too_large.count("away"), 0);
    for log in [large.log_text(), worker.log_text()] {
        assert!(!log.contains("the connection ended"), "{log}");
    }
    cluster.finish(vec![large, too_large]);
}

/// Says things as a database and as a worker at once, each of them twice.
struct Twice {
    out: tokio::sync::mpsc::Sender<Word>,
    heard: tonic::Streaming<Word>,
}

impl Twice {
    async fn say(&self, kind: Kind) {
        for _ in 0..2 {
            let word = Some(kind.clone());
            self.out.send(Word { word }).await.unwrap();
        }
    }

    /// The next word of a kind.
    async fn hear<T>(&mut self, which: impl Fn(Kind) -> Option<T>) -> T {
        loop {
            let word = self.heard.next().await.unwrap().unwrap();
            if let Some(found) = which(word.word.unwrap()) {
                return found;
            }
        }
    }
}

#[test]
fn whatever_is_said_twice_counts_once() {
    let cluster = Cluster::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let address = format!("http://{}", cluster.address);
        let mut client = PoolClient::connect(address).await.unwrap();
        let (out, outgoing) = tokio::sync::mpsc::channel(64);
        let heard = client
            .talk(ReceiverStream::new(outgoing))
            .await
            .unwrap()
            .into_inner();
        let mut twice = Twice { out, heard };
        let (database, session) = (7, 8);
        let alive = |beat, waiting| Alive {
            database,
            session,
            beat,
            weight: 1,
            next: 2,
            waiting,
            ..Alive::default()
        };
        let job = JobId {
            database,
            session,
            number: 1,
        };
        twice
            .say(Kind::Alive(Alive {
                next: 1,
                ..alive(1, vec![])
            }))
            .await;
        let facts = Some(Facts {
            bytes: 1 << 20,
            ..Facts::default()
        });
        let spec = Some(Spec {
            facts,
            input: b"input".to_vec(),
        });
        twice
            .say(Kind::Submit(Submit {
                job: Some(job),
                spec,
            }))
            .await;
        let ability = Ability {
            fingerprints: vec![0],
            slots: 4,
            memory: 1 << 40,
            ..Ability::default()
        };
        let beat = Beat {
            worker: 9,
            beat: 1,
            ability: Some(ability),
            ..Beat::default()
        };
        twice.say(Kind::Beat(beat)).await;
        let attempt: AttemptId = twice
            .hear(|word| match word {
                Kind::Run(run) => run.attempt,
                _ => None,
            })
            .await;
        let end = Some(ended::End::Finished(b"result".to_vec()));
        let ended = Ended {
            worker: 9,
            attempt: Some(attempt),
            end,
        };
        twice.say(Kind::Ended(ended)).await;
        let mut heard = BTreeMap::new();
        // Both ends are answered; the database is told once, and again when it asks.
        while heard.get("recorded") != Some(&2) {
            let what = twice
                .hear(|word| match word {
                    Kind::Done(done) if done.result == b"result" => Some("done"),
                    Kind::Recorded(_) => Some("recorded"),
                    Kind::Run(_) => Some("run"),
                    _ => None,
                })
                .await;
            *heard.entry(what).or_insert(0) += 1;
        }
        assert_eq!(heard, BTreeMap::from([("done", 1), ("recorded", 2)]));
        twice.say(Kind::Alive(alive(2, vec![]))).await;
        twice
            .hear(|word| matches!(word, Kind::Heard(2)).then_some(()))
            .await;
    });
    let report = cluster.report();
    assert_eq!((report.taken, report.done, report.late), (1, 1, 0));
    assert_eq!(report.jobs, []);
}
