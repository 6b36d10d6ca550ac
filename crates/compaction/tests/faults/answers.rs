//! Workers that answer what is not so, and those that should not be asked.

use crate::cluster::Cluster;
use crate::process::until;

/// A worker that plays a trick is found out and gets nothing more; the database is as it should be.
fn found_out(trick: &str, words: &str) {
    let mut cluster = Cluster::new();
    let bad = cluster.bad_worker(trick);
    let mut database = cluster.database(&[("load", "once")]);
    until("it is found out", || database.count("refused") > 0);
    let line = database.logs(&["a worker's outputs are refused"]);
    assert!(line.contains(words), "{line}");
    until("it is banned", || cluster.report().banned == [bad.id]);
    cluster.control().logs(&["gets nothing more"]);
    let refused = database.count("refused");
    let _good = cluster.worker(&[]);
    let before = database.count("installed");
    until("the others work on", || {
        database.count("installed") > before + 2
    });
    assert_eq!(database.count("refused"), refused);
    cluster.finish(vec![database]);
}

#[test]
fn a_flipped_bit_is_found_out() {
    found_out("flipped", "is not what the worker wrote");
}

#[test]
fn a_bit_that_flips_while_the_worker_is_still_at_it_is_found_out() {
    found_out("flipped_early", "is not what the worker wrote");
}

#[test]
fn a_bad_block_under_a_right_sum_is_found_out() {
    found_out("bad_block", "RocksDB cannot read the outputs");
}

#[test]
fn a_file_cut_short_is_found_out() {
    found_out("short", "bytes, RocksDB described");
}

#[test]
fn a_missing_file_is_found_out() {
    found_out("missing", "cannot be read");
}

#[test]
fn exchanged_files_are_found_out() {
    found_out("exchanged", "output");
}

#[test]
fn the_answer_of_another_job_is_found_out() {
    found_out("replayed", "");
}

#[test]
fn entries_that_are_missing_are_found_out() {
    found_out("miscounted", "the worker counted");
}

#[test]
fn an_answer_damaged_on_its_way_is_found_out() {
    found_out("damaged", "is not what the worker sent");
}

#[test]
fn an_answer_that_is_none_is_found_out() {
    found_out("noise", "the answer");
}

/// All good answers are installed, so the trick is what the tests above are about.
#[test]
fn a_worker_made_of_the_same_parts_that_plays_no_trick_is_trusted() {
    let mut cluster = Cluster::new();
    let _worker = cluster.bad_worker("none");
    let mut database = cluster.database(&[("load", "once")]);
    until("it works", || database.count("installed") > 2);
    assert_eq!(database.count("refused"), 0);
    cluster.finish(vec![database]);
}

#[test]
fn a_worker_with_another_engine_is_never_asked() {
    let mut cluster = Cluster::new();
    let _other = cluster.bad_worker("other_engine");
    let mut database = cluster.database(&[]);
    until("it compacts at home", || database.count("no_worker") > 1);
    assert_eq!(cluster.report().done, 0);
    let _right = cluster.worker(&[]);
    until("the right one is asked", || database.count("installed") > 1);
    cluster.finish(vec![database]);
}

#[test]
fn a_worker_that_does_not_know_the_filter_is_never_asked() {
    let mut cluster = Cluster::new();
    let mut worker = cluster.worker(&[]);
    let mut database = cluster.database(&[("profile", "other")]);
    until("it compacts at home", || database.count("no_worker") > 0);
    assert_eq!(
        (worker.count("failed"), database.count("installed")),
        (0, 0)
    );
    cluster.finish(vec![database]);
}

#[test]
fn a_database_with_blob_files_compacts_at_home_and_says_why() {
    let mut cluster = Cluster::new();
    let mut worker = cluster.worker(&[]);
    let mut database = cluster.database(&[("blobs", "yes")]);
    until("it compacts at home", || database.count("unfit") > 1);
    database.logs(&["stays at home", "keeps values in blob files"]);
    database = cluster.again_with(database, &[("blobs", "")]);
    until("it compacts at home", || database.count("unfit") > 1);
    database.logs(&["stays at home", "the database has blob files"]);
    assert_eq!((worker.count("finished"), worker.count("failed")), (0, 0));
    assert_eq!(cluster.report().taken, 0);
    cluster.finish(vec![database]);
}

#[test]
fn a_job_has_one_name_in_all_logs() {
    let mut cluster = Cluster::new();
    let worker = cluster.worker(&[]);
    let mut database = cluster.database(&[]);
    until("the pool works", || database.count("installed") > 0);
    let line = database.logs(&["installed", "trace="]);
    let trace = line
        .split(' ')
        .find(|word| word.starts_with("trace="))
        .unwrap();
    database.logs(&["asked for", trace]);
    cluster.control().logs(&["given to a worker", trace]);
    cluster.control().logs(&["the database is told", trace]);
    worker.logs(&["a compaction is done", trace]);
    // RocksDB writes its log now and then.
    let log = database.path().join("LOG");
    until("RocksDB's own log has it too", || {
        let text = std::fs::read_to_string(&log).unwrap();
        text.contains(&trace["trace=".len()..])
    });
    cluster.finish(vec![database]);
}
