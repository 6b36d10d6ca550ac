//! RocksDB's hook: a job done elsewhere makes the same database as one done at home, and whatever
//! goes wrong, or is made to, ends with a compaction at home.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;
#[path = "common/damage.rs"]
mod damage;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::{content, fill, options};
use damage::{Part, flip, summed_again};
use manxdb_compaction::answer::Answer;
use manxdb_compaction::database::outputs::{Expected, listed, verify};
use manxdb_compaction::edge::{
    Cancel, JobInfo, Service, Waited, linked_tables, open_and_compact, set_service,
};
use manxdb_compaction::object_store::objects::Moved;
use manxdb_compaction::rocksdb_files::text::{Fields, with_raw};
use rocksdb::DB;

/// Against hanging: nothing is decided by how long something takes.
const HANGS: Duration = Duration::from_secs(120);

/// What becomes of a worker's answer before the database sees it.
type Tamper = Box<dyn Fn(&mut Answer, &Path, &mut Vec<Answer>) + Send + Sync>;

/// Runs jobs on the thread that waits for them, and checks what they made.
struct Here {
    staging: PathBuf,
    tamper: Tamper,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    jobs: Vec<(JobInfo, Vec<u8>)>,
    /// Answers, as tampered with.
    answers: Vec<Answer>,
    refusals: Vec<String>,
    installed: usize,
}

impl Here {
    /// Also after a panic, which one of the tests is about.
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service for Here {
    fn schedule(&self, info: &JobInfo, input: &[u8]) -> Option<String> {
        let mut seen = self.seen();
        seen.jobs.push((info.clone(), input.to_vec()));
        Some((seen.jobs.len() - 1).to_string())
    }

    fn wait(&self, job: &str) -> Waited {
        let place: usize = job.parse().unwrap();
        let (info, input) = self.seen().jobs[place].clone();
        let output = self.staging.join(job);
        fs::create_dir_all(&output).unwrap();
        let database = Path::new(&info.database);
        let cancel = Cancel::default();
        let described = open_and_compact(database, &output, &input, &options(), &cancel);
        let Ok(description) = described else {
            return Waited::Local;
        };
        let files = listed(&description).unwrap();
        let mut answer = Answer {
            description,
            files,
            moved: Moved::default(),
            notes: Vec::new(),
        };
        let mut seen = self.seen();
        (self.tamper)(&mut answer, &output, &mut seen.answers);
        let asked = Fields::of(&input).unwrap();
        let expected = Expected {
            output_level: asked.number("output_level").unwrap(),
            ..Expected::default()
        };
        match verify(&answer, &expected, &output, &linked_tables()) {
            Ok(description) => Waited::Done(description),
            Err(refusal) => {
                seen.refusals.push(refusal.to_string());
                assert_eq!(left_over(&output), [""; 0]);
                Waited::Local
            }
        }
    }

    fn cancel(&self) {}

    fn installed(&self, _: &str, is_installed: bool) {
        self.seen().installed += usize::from(is_installed);
    }
}

/// Fills a database at home and one with a service; they must be equal, and go on working.
fn compare(tamper: impl Fn(&mut Answer, &Path, &mut Vec<Answer>) + Send + Sync + 'static) -> Seen {
    let directory = tempfile::tempdir().unwrap();
    let home = DB::open(&options(), directory.path().join("home")).unwrap();
    fill(&home, 1);
    let here = Arc::new(Here {
        staging: directory.path().join("staging"),
        tamper: Box::new(tamper),
        seen: Mutex::default(),
    });
    let mut with_service = options();
    set_service(&mut with_service, here.clone());
    let away = DB::open(&with_service, directory.path().join("away")).unwrap();
    fill(&away, 1);
    assert_eq!(content(&home), content(&away));
    away.put(b"it", b"writes").unwrap();
    away.flush().unwrap();
    drop(away);
    DB::open(&options(), directory.path().join("away")).unwrap();
    std::mem::take(&mut here.seen())
}

/// Files of an attempt that are neither outputs nor its log: those of the check are removed with it.
fn left_over(directory: &Path) -> Vec<String> {
    let paths = fs::read_dir(directory).unwrap();
    let paths = paths.map(|entry| entry.unwrap().path());
    let is_known =
        |path: &PathBuf| path.extension().is_some_and(|end| end == "sst") || path.ends_with("LOG");
    let left = paths.filter(|path| !is_known(path));
    left.map(|path| path.display().to_string()).collect()
}

fn output(directory: &Path, place: usize) -> PathBuf {
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sst"))
        .collect();
    files.sort();
    files[place].clone()
}

/// All answers are refused, in these words, and nothing is installed.
fn refuses(
    tamper: impl Fn(&mut Answer, &Path, &mut Vec<Answer>) + Send + Sync + 'static,
    words: &str,
) {
    let seen = compare(tamper);
    assert_eq!(seen.refusals.len(), seen.jobs.len(), "{:?}", seen.refusals);
    for refusal in &seen.refusals {
        assert!(refusal.contains(words), "{refusal}");
    }
    assert_eq!(seen.installed, 0);
}

#[test]
fn jobs_done_elsewhere_make_the_same_database() {
    let seen = compare(|_, _, _| {});
    assert_eq!(seen.refusals, [""; 0]);
    assert!(seen.jobs.len() >= 3, "{:?}", seen.jobs);
    assert_eq!(seen.installed, seen.jobs.len());
    let (info, _) = &seen.jobs[0];
    assert!(info.database.ends_with("away") && info.family == "default");
    assert!(!info.database_id.is_empty() && !info.session.is_empty() && info.is_manual);
}

#[test]
fn a_service_that_fails_changes_nothing() {
    let seen = compare(|_, _, _| panic!("a service of ours failed"));
    assert_eq!(seen.installed, 0);
}

/// It does not matter when the bit flips: what was computed is known from before any disk had it.
#[test]
fn a_flipped_bit_is_refused_wherever_it_is() {
    for part in Part::ALL {
        refuses(
            move |_, directory, _| flip(&output(directory, 0), part),
            "is not what the worker wrote",
        );
    }
}

/// As it would be if the worker's memory had flipped it, or the worker lied.
#[test]
fn a_bad_block_is_refused_though_the_sum_of_its_file_is_right() {
    for part in Part::ALL {
        refuses(
            move |answer, directory, _| {
                flip(&output(directory, 0), part);
                answer.description = summed_again(&answer.description, directory);
            },
            "output",
        );
    }
}

#[test]
fn a_file_of_another_identity_is_refused() {
    refuses(
        |answer, _, _| {
            let fields = Fields::of(&answer.description).unwrap();
            let id = fields.list("output_files").unwrap()[0]
                .raw("unique_id")
                .unwrap();
            let changed = with_raw(&answer.description, "unique_id", id, &[]).unwrap();
            let text = String::from_utf8(changed).unwrap();
            answer.description = text
                .replacen("unique_id=;", "unique_id=7:8;", 1)
                .into_bytes();
        },
        "RocksDB cannot read the outputs",
    );
}

#[test]
fn an_output_without_a_sum_of_when_it_was_written_is_refused() {
    refuses(
        |answer, _, _| {
            let text = String::from_utf8_lossy(&answer.description).into_owned();
            let changed = text.replacen("file_checksum=", "file_checksum=00", 1);
            answer.description = changed.into_bytes();
        },
        "has no sum that was made as it was written",
    );
}

#[test]
fn a_shortened_file_is_refused() {
    refuses(
        |_, directory, _| {
            let path = output(directory, 0);
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        },
        "bytes, RocksDB described",
    );
}

#[test]
fn a_missing_file_is_refused() {
    refuses(
        |_, directory, _| fs::remove_file(output(directory, 0)).unwrap(),
        "cannot be read",
    );
}

#[test]
fn two_files_in_each_others_place_are_refused() {
    refuses(
        |_, directory, _| {
            let (one, other) = (output(directory, 0), output(directory, 1));
            let between = directory.join("between");
            fs::rename(&one, &between).unwrap();
            fs::rename(&other, &one).unwrap();
            fs::rename(&between, &other).unwrap();
        },
        "output",
    );
}

/// The first answer is good; each later one is the first again.
#[test]
fn the_answer_of_another_job_is_refused() {
    let seen = compare(|answer, _, answers| match answers.first() {
        Some(first) => *answer = first.clone(),
        None => answers.push(answer.clone()),
    });
    assert_eq!(
        (seen.installed, seen.refusals.len() + 1),
        (1, seen.jobs.len())
    );
}

#[test]
fn an_entry_that_is_not_accounted_for_is_refused() {
    refuses(
        |answer, _, _| {
            let text = String::from_utf8_lossy(&answer.description).into_owned();
            let changed = text.replacen("num_output_records=", "num_output_records=9", 1);
            answer.description = changed.into_bytes();
        },
        "the worker counted",
    );
}

#[test]
fn a_name_that_leads_elsewhere_is_refused() {
    refuses(
        |answer, _, _| {
            let text = String::from_utf8_lossy(&answer.description).into_owned();
            // "0" becomes "/": the name of a file in another directory.
            let changed = text.replace("file_name=30", "file_name=2F");
            answer.description = changed.into_bytes();
            for file in &mut answer.files {
                file.name.replace_range(..1, "/");
            }
        },
        "is no name of a file",
    );
}

/// A pool whose queue does not move until level 0 is relieved: jobs that start there are done at
/// home at once, the others wait.
#[derive(Default)]
struct Queue {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Default)]
struct Now {
    /// A job of the base level waits.
    waits: bool,
    /// Meanwhile one was asked for that starts on level 0 and ends there.
    is_relieved: bool,
    is_closing: bool,
}

impl Service for Queue {
    fn schedule(&self, info: &JobInfo, _: &[u8]) -> Option<String> {
        let mut now = self.now.lock().unwrap();
        now.is_relieved |= now.waits && (info.start_level, info.output_level) == (0, 0);
        self.changed.notify_all();
        (info.start_level > 0).then(|| info.job.to_string())
    }

    fn wait(&self, _: &str) -> Waited {
        let mut now = self.now.lock().unwrap();
        now.waits = true;
        self.changed.notify_all();
        let is_stuck = |now: &mut Now| !now.is_relieved && !now.is_closing;
        drop(self.changed.wait_while(now, is_stuck).unwrap());
        Waited::Local
    }

    fn cancel(&self) {
        self.now.lock().unwrap().is_closing = true;
        self.changed.notify_all();
    }

    fn installed(&self, _: &str, _: bool) {}
}

impl Queue {
    /// Whether it comes to this; waits for it, but not for ever.
    fn comes_to(&self, this: fn(&Now) -> bool, patience: Duration) -> bool {
        let now = self.now.lock().unwrap();
        let waited = self
            .changed
            .wait_timeout_while(now, patience, |now| !this(now));
        this(&waited.unwrap().0)
    }
}

/// A job of the base level that waits keeps level 0 from being compacted into that level. RocksDB
/// asks for compactions inside of level 0 then, so that the database need not take the other back.
#[test]
fn level_0_is_relieved_while_a_job_of_the_base_level_waits() {
    let directory = tempfile::tempdir().unwrap();
    let queue = Arc::new(Queue::default());
    let mut options = options();
    options.set_disable_auto_compactions(false);
    options.set_level_compaction_dynamic_level_bytes(false); // the base level is 1
    options.set_max_bytes_for_level_base(64 << 10);
    options.set_max_background_jobs(6); // as `serve` has it
    set_service(&mut options, queue.clone());
    let db = DB::open(&options, directory.path()).unwrap();
    let mut number = 1_u64;
    let mut flush = || {
        for _ in 0..1_000 {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            db.put(number.to_be_bytes(), number.to_be_bytes().repeat(4))
                .unwrap();
        }
        db.flush().unwrap();
    };
    for _ in 0..1_000 {
        flush();
        if queue.comes_to(|now| now.waits, Duration::ZERO) {
            break;
        }
    }
    assert!(queue.comes_to(|now| now.waits, HANGS));
    // Well below the number at which writes are slowed down.
    (0..12).for_each(|_| flush());
    assert!(queue.comes_to(|now| now.is_relieved, HANGS));
}

/// Does jobs on the thread that waits for them, and takes the time of the processor.
#[derive(Default)]
struct Timed {
    staging: PathBuf,
    jobs: Mutex<Vec<(PathBuf, Vec<u8>)>>,
    /// Seconds of compactions, and of checks; bytes of the outputs.
    spent: Mutex<(f64, f64, u64)>,
}

/// Seconds of a processor that this thread has had.
fn cpu_seconds() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

impl Service for Timed {
    fn schedule(&self, info: &JobInfo, input: &[u8]) -> Option<String> {
        let mut jobs = self.jobs.lock().unwrap();
        jobs.push((PathBuf::from(&info.database), input.to_vec()));
        Some((jobs.len() - 1).to_string())
    }

    fn wait(&self, job: &str) -> Waited {
        let (database, input) = self.jobs.lock().unwrap()[job.parse::<usize>().unwrap()].clone();
        let output = self.staging.join(job);
        fs::create_dir_all(&output).unwrap();
        let begun = cpu_seconds();
        let cancel = Cancel::default();
        let made = open_and_compact(&database, &output, &input, &options(), &cancel).unwrap();
        let compacted = cpu_seconds();
        let files = listed(&made).unwrap();
        let bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let answer = Answer {
            description: made,
            files,
            moved: Moved::default(),
            notes: Vec::new(),
        };
        let asked = Fields::of(&input).unwrap();
        let expected = Expected {
            output_level: asked.number("output_level").unwrap(),
            ..Expected::default()
        };
        let description = verify(&answer, &expected, &output, &linked_tables()).unwrap();
        let mut spent = self.spent.lock().unwrap();
        spent.0 += compacted - begun;
        spent.1 += cpu_seconds() - compacted;
        spent.2 += bytes;
        Waited::Done(description)
    }

    fn cancel(&self) {}

    fn installed(&self, _: &str, _: bool) {}
}

/// A measurement, for docs/compaction.md.
#[test]
#[ignore = "a measurement: it says what checking costs beside compacting, and judges nothing"]
#[allow(clippy::print_stdout, clippy::cast_precision_loss)]
fn what_checking_costs() {
    let directory = tempfile::tempdir().unwrap();
    let service = Arc::new(Timed {
        staging: directory.path().join("staging"),
        ..Timed::default()
    });
    let mut options = options();
    options.set_target_file_size_base(16 << 20);
    options.set_compression_type(rocksdb::DBCompressionType::Lz4);
    set_service(&mut options, service.clone());
    let db = DB::open(&options, directory.path().join("database")).unwrap();
    let mut number = 1_u64;
    for _ in 0..5 {
        for _ in 0..2 {
            for _ in 0..200_000 {
                number = number
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                // Half of a value is noise.
                let value = [number.to_be_bytes().repeat(6), vec![7; 48]].concat();
                db.put(number.to_be_bytes(), value).unwrap();
            }
            db.flush().unwrap();
        }
        db.compact_range::<&[u8], &[u8]>(None, None);
    }
    let (compacting, checking, bytes) = *service.spent.lock().unwrap();
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    println!(
        "{mebibytes:.0} MiB of outputs: compacting {:.2} ms a MiB, checking {:.2} ms a MiB, {:.1} %",
        compacting * 1e3 / mebibytes,
        checking * 1e3 / mebibytes,
        checking * 100.0 / compacting,
    );
}
