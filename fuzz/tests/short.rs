//! A short run of every fuzz target: seeded, the same on every machine, part of `cargo test`.

use manxdb_fuzz::{
    Source, log, mutated, packets, records, resp, samples, sql_text, template, witness,
};

/// Inputs a target gets; seconds, not minutes, in a debug build.
const ROUNDS: usize = 20_000;

#[test]
fn packets_of_any_bytes_are_taken_or_refused() {
    let [login, framed, execute] = &samples("packets")[..] else {
        panic!("three samples");
    };
    let mut source = Source::new(1);
    for _ in 0..ROUNDS {
        packets(&source.bytes(80));
        packets(&mutated(&mut source, framed, execute));
        packets(&mutated(&mut source, login, framed));
        packets(&mutated(&mut source, execute, login));
    }
}

#[test]
fn commands_of_any_bytes_are_refused_or_answered() {
    let good = samples("resp");
    let mut source = Source::new(6);
    for round in 0..ROUNDS / 10 {
        let (one, other) = (&good[round % good.len()], &good[source.below(good.len())]);
        resp(&[&one[..], other].concat());
        resp(&mutated(&mut source, one, other));
        resp(&source.bytes(80));
        resp(&reworded(&mut source, one, other));
    }
}

/// Commands of `one` with words of both in place of theirs: whole ones, which bytes seldom make.
fn reworded(source: &mut Source, one: &[u8], other: &[u8]) -> Vec<u8> {
    let words = |bytes: &[u8]| -> Vec<Vec<u8>> {
        let lines = bytes
            .split(|byte| *byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line).to_vec());
        let is_word =
            |line: &Vec<u8>| !line.is_empty() && !line.starts_with(b"*") && !line.starts_with(b"$");
        lines.filter(is_word).collect()
    };
    let all = [words(one), words(other)].concat();
    let mut out = Vec::new();
    for _ in 0..8 {
        let start = source.below(all.len());
        let length = 1 + source.below(8.min(all.len() - start));
        let mut command = all[start..start + length].to_vec();
        let place = source.below(command.len());
        command[place].clone_from(&all[source.below(all.len())]);
        out.extend(format!("*{length}\r\n").into_bytes());
        for word in command {
            out.extend(format!("${}\r\n", word.len()).into_bytes());
            out.extend([&word[..], b"\r\n"].concat());
        }
    }
    out
}

#[test]
fn text_of_any_kind_is_parsed_or_refused() {
    let mut source = Source::new(2);
    for (good, changed) in texts(&mut source, ROUNDS / 4) {
        sql_text(&good);
        sql_text(&changed);
        sql_text(&source.bytes(60));
    }
}

#[test]
fn texts_and_their_templates_have_one_tree() {
    let mut source = Source::new(4);
    for (good, changed) in texts(&mut source, ROUNDS / 2) {
        template(&good);
        template(&changed);
    }
}

/// Good statements and changes of them.
fn texts(source: &mut Source, count: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let statements = samples("sql_text");
    let texts = (0..count).map(|round| {
        let good = &statements[round % statements.len()];
        let other = &statements[source.below(statements.len())];
        (good.clone(), mutated(source, good, other))
    });
    texts.collect()
}

#[test]
fn deep_nesting_is_refused_not_overflown() {
    for piece in [
        "(",
        "NOT ",
        "- ",
        "SELECT * FROM (",
        "CASE WHEN ",
        "a AND ",
        "EXISTS (SELECT ",
        "1 + ",
        "[",
        "{",
    ] {
        sql_text(format!("SELECT {}", piece.repeat(20_000)).as_bytes());
        sql_text(format!("SELECT {}1{}", piece.repeat(5_000), ")".repeat(5_000)).as_bytes());
    }
}

#[test]
fn stored_records_of_any_bytes_are_read_or_called_damaged() {
    let good = &samples("records")[0];
    let mut source = Source::new(3);
    for _ in 0..ROUNDS {
        let noise = source.bytes(80);
        records(&noise);
        records(&mutated(&mut source, good, &noise));
        let mut started = good.clone();
        started.extend(noise);
        records(&started);
    }
}

#[test]
fn datagrams_of_any_bytes_are_counted_and_leave_the_table_whole() {
    let good = &samples("witness")[0];
    let mut source = Source::new(7);
    for _ in 0..ROUNDS / 10 {
        let noise = source.bytes(80);
        witness(&noise);
        witness(&mutated(&mut source, good, good));
        witness(&mutated(&mut source, good, &noise));
    }
}

#[test]
fn a_commit_log_of_any_bytes_is_an_error_or_all_batches_up_to_some_point() {
    let samples = samples("log");
    let mut source = Source::new(5);
    for round in 0..ROUNDS / 20 {
        let good = &samples[round % samples.len()];
        log(&mutated(&mut source, good, good));
        log(&source.bytes(300));
    }
}
