//! A worker that does not do what it should, made of the parts of a good one.

use std::fs;
use std::path::{Path, PathBuf};

use manxdb_compaction::actor::{Actor, Handle};
use manxdb_compaction::answer::Answer;
use manxdb_compaction::database::outputs::listed;
use manxdb_compaction::edge::{Cancel, open_and_compact};
use manxdb_compaction::object_store::objects::Moved;
use manxdb_compaction::order::{Order, STAGING, below, fingerprint};
use manxdb_compaction::seal::{seal, unseal};
use manxdb_compaction::transport::link::{self, CONTROL, Link};
use manxdb_core::Nanos;
use manxdb_jobs::job::{AttemptId, Fingerprint, Spec, WorkerId};
use manxdb_jobs::message::{Ability, Ended};
use manxdb_jobs::worker::{Given, SlotAsk, Worker};

use crate::damage::{Part, flip, summed_again};
use crate::roles::{Halting, commands, drawn, route, say, volumes};
use crate::settings::Settings;

struct Bad {
    settings: Settings,
    trick: String,
    core: Handle<Worker>,
    /// The first answer it made.
    first: Option<Vec<u8>>,
}

pub fn play(settings: &Settings) {
    let id = WorkerId(drawn());
    let fingerprint = match settings.get("trick") {
        Some("other_engine") => Fingerprint(fingerprint(&Halting::default()).0 + 1),
        _ => fingerprint(&Halting::default()),
    };
    let ability = Ability {
        fingerprints: vec![fingerprint],
        slots: 1,
        bytes_second: 1 << 40, // whoever places jobs likes it best
        memory: 1 << 40,
        ..Ability::default()
    };
    let core = Worker::new(id, CONTROL, Nanos::from_millis(500), ability);
    let (to_control, waiting) = link::queue();
    let actor = Actor::start("worker", core, |_| to_control).unwrap();
    let _link = Link::start(route(settings), waiting, actor.handle()).unwrap();
    let bad = Bad {
        settings: settings.clone(),
        trick: settings.string("trick"),
        core: actor.handle(),
        first: None,
    };
    std::thread::spawn(move || bad.work());
    say(&format!("ready {}", id.0));
    commands().for_each(drop);
}

impl Bad {
    fn work(mut self) {
        while let Ok(given) = self.core.ask(SlotAsk::Next).recv() {
            if let Given::Run(attempt, spec) = given {
                let watch = self.core.ask(SlotAsk::Watch(attempt));
                let (answer, output) = self.run(attempt, &spec);
                self.core
                    .tell(SlotAsk::Ended(attempt, Ended::Finished(answer.into())));
                // It is slow to stop, but what nobody waits for any more it removes.
                if watch.recv() == Ok(Given::Stop) {
                    let _ = fs::remove_dir_all(output); // or its database has
                }
                say("done");
            }
        }
    }

    /// What it answers, and where it has written.
    fn run(&mut self, attempt: AttemptId, spec: &Spec) -> (Vec<u8>, PathBuf) {
        let order: Order = postcard::from_bytes(unseal(&spec.input).unwrap()).unwrap();
        let volume = &volumes(&self.settings)[&order.volume];
        let database = below(volume, &order.database).unwrap();
        let output = database.join(STAGING).join(attempt.to_string());
        fs::create_dir(&output).unwrap();
        (self.answer(&database, &order, &output), output)
    }

    fn answer(&mut self, database: &Path, order: &Order, output: &Path) -> Vec<u8> {
        let (options, cancel) = (rocksdb::Options::default(), Cancel::default());
        let made = open_and_compact(database, output, &order.input, &options, &cancel);
        let Ok(description) = made else {
            return b"nothing".to_vec();
        };
        if self.trick == "flipped_early" {
            let files = outputs(output);
            files
                .first()
                .iter()
                .for_each(|path| flip(path, Part::MiddleBlock));
        }
        let files = listed(&description).unwrap();
        let mut answer = Answer {
            description,
            files,
            moved: Moved::default(),
            notes: Vec::new(),
        };
        self.spoil(&mut answer, output);
        let answer = seal(postcard::to_stdvec(&answer).unwrap());
        let first = self.first.get_or_insert_with(|| answer.clone());
        match self.trick.as_str() {
            // The first answer is good, and given to every other job again.
            "replayed" => first.clone(),
            "noise" => seal(b"what is this".to_vec()),
            "damaged" => {
                let mut answer = answer;
                answer[9] ^= 1;
                answer
            }
            _ => answer,
        }
    }

    fn spoil(&self, answer: &mut Answer, output: &Path) {
        let files = outputs(output);
        let Some(path) = files.first() else {
            return;
        };
        match self.trick.as_str() {
            "flipped" => {
                let mut bytes = fs::read(path).unwrap();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 16;
                fs::write(path, bytes).unwrap();
            }
            // As if its memory had flipped it before RocksDB summed the file.
            "bad_block" => {
                flip(path, Part::MiddleBlock);
                answer.description = summed_again(&answer.description, output);
            }
            "short" => {
                let bytes = fs::read(path).unwrap();
                fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
            }
            "missing" => fs::remove_file(path).unwrap(),
            "exchanged" => {
                // With one output alone, for another file of the same database.
                let other = match files.get(1) {
                    Some(other) => other.clone(),
                    None => outputs(output.parent().unwrap().parent().unwrap())[0].clone(),
                };
                let bytes = fs::read(&other).unwrap();
                if files.len() > 1 {
                    fs::rename(path, &other).unwrap();
                }
                fs::write(path, bytes).unwrap();
            }
            "miscounted" => {
                let text = String::from_utf8_lossy(&answer.description).into_owned();
                let changed = text.replacen("num_output_records=", "num_output_records=9", 1);
                answer.description = changed.into_bytes();
            }
            _ => {}
        }
    }
}

fn outputs(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "sst"))
        .collect();
    files.sort();
    files
}
