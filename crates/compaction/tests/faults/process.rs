//! A process of a test: started, asked, killed, frozen.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::settings::{Settings, VARIABLE};

/// What a process says begins like this; the rest of its output is the test harness's.
pub const MARK: &str = "@ ";

/// Only against hanging: nothing is expected to happen within it.
const LIMIT: Duration = Duration::from_secs(120);

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LIMIT, "still not: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[derive(Default)]
struct Said {
    lines: Mutex<(Vec<String>, bool)>,
    news: Condvar,
}

pub struct Process {
    pub name: String,
    pub log: PathBuf,
    child: Child,
    input: ChildStdin,
    said: Arc<Said>,
}

impl Process {
    /// Starts a process, which says `ready` and what it likes to add.
    pub fn start(name: &str, directory: &Path, settings: &Settings) -> (Self, String) {
        let log = directory.join(format!("{name}.log"));
        let stderr = File::options().create(true).append(true).open(&log);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["process", "--exact", "--nocapture", "--test-threads=1"])
            .env(VARIABLE, settings.text())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr.unwrap())
            .spawn()
            .unwrap();
        let said = Arc::new(Said::default());
        let (output, hears) = (child.stdout.take().unwrap(), Arc::clone(&said));
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The harness's own words stand before the first one.
                if let Some(place) = line.find(MARK) {
                    let line = line[place + MARK.len()..].to_owned();
                    hears.lines.lock().unwrap().0.push(line);
                    hears.news.notify_all();
                }
            }
            hears.lines.lock().unwrap().1 = true;
            hears.news.notify_all();
        });
        let process = Self {
            name: name.to_owned(),
            log,
            input: child.stdin.take().unwrap(),
            child,
            said,
        };
        let ready = process.hear("ready");
        (process, ready)
    }

    /// Waits for a line that begins with a word; the rest of it.
    pub fn hear(&self, word: &str) -> String {
        self.hear_before_end(word)
            .unwrap_or_else(|| panic!("{} ended without '{word}':\n{}", self.name, self.log_text()))
    }

    /// The same; none if the process ends before.
    pub fn hear_before_end(&self, word: &str) -> Option<String> {
        let mut lines = self.said.lines.lock().unwrap();
        loop {
            let begins = |line: &String| line.split(' ').next() == Some(word);
            if let Some(place) = lines.0.iter().position(begins) {
                let line = lines.0.remove(place);
                return Some(line[word.len()..].trim().to_owned());
            }
            if lines.1 {
                return None;
            }
            let (next, late) = self.said.news.wait_timeout(lines, LIMIT).unwrap();
            assert!(!late.timed_out(), "{} never said '{word}'", self.name);
            lines = next;
        }
    }

    /// Tells it something that it does not answer.
    pub fn tell(&mut self, command: &str) {
        let _ = writeln!(self.input, "{command}"); // it ended: whoever waits for it finds out
    }

    /// Asks it something.
    pub fn ask(&mut self, command: &str) -> String {
        self.tell(command);
        self.hear(command.split(' ').next().unwrap())
    }

    /// A number of what it says of itself.
    pub fn count(&mut self, key: &str) -> u64 {
        let status = self.ask("status");
        let value = status
            .split(' ')
            .find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
        value.map_or(0, |value| value.parse().unwrap())
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        let _ = self.child.kill(); // it has ended by itself
        self.child.wait().unwrap();
    }

    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Waits until it ends by itself.
    pub fn ended(&mut self) {
        until(&format!("{} has ended", self.name), || {
            self.child.try_wait().unwrap().is_some()
        });
    }

    pub fn log_text(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Waits until its log has a line with all these words.
    pub fn logs(&self, words: &[&str]) -> String {
        let mut found = None;
        until(&format!("{} logs {words:?}", self.name), || {
            let text = self.log_text();
            let has_all = |line: &&str| words.iter().all(|word| line.contains(word));
            found = text.lines().find(has_all).map(ToOwned::to_owned);
            found.is_some()
        });
        found.unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let text = self.log_text();
            let tail: Vec<&str> = text.lines().rev().take(15).collect();
            println!("--- {}:", self.name);
            for line in tail.iter().rev() {
                println!("{line}");
            }
        }
    }
}
