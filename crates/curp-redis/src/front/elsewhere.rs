//! Other clusters, which a front asks as a client of their own protocol: a command is executed once there too,
//! whatever fails, and takes one round trip from here.
//!
//! What a cluster is found by is its name, which MOVED tells: where its Redis clients connect. Who answers
//! there says in INFO who its coordinators are, and they tell the rest. A thread asks, as that may take
//! seconds; commands wait for it meanwhile.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use manxdb_curp::slots::Group;
use manxdb_curp_client::{CallError, Client};

use crate::command::ReplicatedCommand;
use crate::machine::RedisMachine;

/// The line of INFO that names the coordinators of a front's cluster.
pub(super) const COORDINATORS: &str = "curp_coordinators";
/// How long a front of another cluster may take for each step of its answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of its answer: the section has some 20 short lines.
const INFO_BYTES_MAX: usize = 64 << 10;

/// Why a command that was to be executed in another cluster has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ElsewhereError {
    /// It was not asked.
    #[error(
        "CLUSTERDOWN the cluster at {group}, which has the keys of this command, cannot be reached: {why}. \
         The command was not executed"
    )]
    Unreachable {
        /// Which.
        group: Group,
        /// Why.
        why: String,
    },
    /// It was asked.
    #[error("ERR {why} (the cluster at {group} was asked)")]
    Unknown {
        /// Which.
        group: Group,
        /// Why.
        why: CallError,
    },
}

enum Told {
    Found(Group, Result<Box<Client<RedisMachine>>, String>),
    Answered(u64, Result<Vec<u8>, ElsewhereError>),
}

enum Known {
    /// A thread looks for it; commands that wait for that, by their numbers.
    Sought(Vec<(u64, Vec<u8>)>),
    Found(Box<Client<RedisMachine>>),
}

/// Tells the front's thread something.
#[derive(Clone)]
struct Teller {
    told: Sender<Told>,
    bell: Arc<UnixStream>,
}

impl Teller {
    fn tell(&self, told: Told) {
        // A front that has ended waits for nothing; a bell that is full rings already.
        let _ = self.told.send(told);
        let _ = (&*self.bell).write(&[0]);
    }
}

/// Clusters that commands were sent to.
pub(super) struct Elsewhere {
    clusters: BTreeMap<Group, Known>,
    told: Receiver<Told>,
    rung: UnixStream,
    teller: Teller,
    next: u64,
}

impl Elsewhere {
    /// None so far.
    ///
    /// # Errors
    /// The operating system's.
    pub(super) fn new() -> std::io::Result<Self> {
        let (bell, rung) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        rung.set_nonblocking(true)?;
        let (tell, told) = mpsc::channel();
        let teller = Teller {
            told: tell,
            bell: Arc::new(bell),
        };
        Ok(Self {
            clusters: BTreeMap::new(),
            told,
            rung,
            teller,
            next: 0,
        })
    }

    /// What is readable when there are answers.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.rung.as_fd()
    }

    /// Asks a cluster for a command; the number that its answer will have. Numbers grow.
    pub(super) fn ask(&mut self, group: &Group, command: Vec<u8>) -> u64 {
        self.next += 1;
        let number = self.next;
        match self.clusters.get_mut(group) {
            Some(Known::Found(client)) => ask(client, group, (number, command), &self.teller),
            Some(Known::Sought(waiting)) => waiting.push((number, command)),
            None => {
                let waiting = Known::Sought(vec![(number, command)]);
                self.clusters.insert(group.clone(), waiting);
                self.seek(group);
            }
        }
        number
    }

    fn seek(&self, group: &Group) {
        let (sought, teller) = (group.clone(), self.teller.clone());
        let thread = std::thread::Builder::new().name("curp-find".to_owned());
        let started = thread.spawn(move || {
            let found = find(&sought);
            teller.tell(Told::Found(sought, found));
        });
        if let Err(error) = started {
            let why = format!("no thread can be started: {error}");
            let told = Told::Found(group.clone(), Err(why));
            self.teller.tell(told);
        }
    }

    /// Answers since it was last asked for them, by the numbers of commands.
    pub(super) fn take(&mut self) -> Vec<(u64, Result<Vec<u8>, ElsewhereError>)> {
        // The bell says that there are some; more of its bytes say nothing else.
        let _ = self.rung.read(&mut [0; 256]);
        let mut answers = Vec::new();
        while let Ok(told) = self.told.try_recv() {
            match told {
                Told::Answered(number, answer) => answers.push((number, answer)),
                Told::Found(group, found) => self.found(&group, found, &mut answers),
            }
        }
        answers
    }

    fn found(
        &mut self,
        group: &Group,
        found: Result<Box<Client<RedisMachine>>, String>,
        answers: &mut Vec<(u64, Result<Vec<u8>, ElsewhereError>)>,
    ) {
        let waiting = match self.clusters.remove(group) {
            Some(Known::Sought(waiting)) => waiting,
            other => {
                assert!(other.is_none(), "a cluster is found once");
                return; // it was given up meanwhile
            }
        };
        match found {
            Ok(client) => {
                tracing::info!(cluster = %group, "asks another cluster, to which slots have moved");
                for asked in waiting {
                    ask(&client, group, asked, &self.teller);
                }
                self.clusters.insert(group.clone(), Known::Found(client));
            }
            Err(why) => {
                tracing::warn!(cluster = %group, why, "another cluster cannot be found");
                let group = group.clone();
                let error = ElsewhereError::Unreachable { group, why };
                let refused = waiting.into_iter();
                answers.extend(refused.map(|(number, _)| (number, Err(error.clone()))));
            }
        }
    }

    /// A cluster that was found has been silent for too long: what it was asked has an unknown outcome, and
    /// it is looked for anew.
    pub(super) fn give_up(&mut self, group: &Group) {
        if let Some(Known::Found(_)) = self.clusters.get(group) {
            self.clusters.remove(group);
        }
    }
}

fn ask(
    client: &Client<RedisMachine>,
    group: &Group,
    (number, command): (u64, Vec<u8>),
    teller: &Teller,
) {
    let (group, teller) = (group.clone(), teller.clone());
    client.ask(command, move |told| {
        let told = told.map_err(|why| ElsewhereError::Unknown { group, why });
        teller.tell(Told::Answered(number, told));
    });
}

/// A client of the cluster of that name.
fn find(group: &Group) -> Result<Box<Client<RedisMachine>>, String> {
    let address = group.name().parse::<SocketAddr>();
    let address = address.map_err(|_| "its name is no ADDRESS:PORT".to_owned())?;
    let coordinators = coordinators(address)?;
    let nothing = ReplicatedCommand::nothing().encode();
    let client = Client::connect(&coordinators, nothing).map_err(|error| error.to_string())?;
    Ok(Box::new(client))
}

/// Who coordinates the cluster whose front is there.
fn coordinators(front: SocketAddr) -> Result<Vec<SocketAddr>, String> {
    let info = info(front).map_err(|error| error.to_string())?;
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(COORDINATORS)?.strip_prefix(':'));
    let Some(line) = line else {
        let said: String = info.chars().take(80).collect();
        return Err(format!(
            "who answers there is no proxy or server of such a cluster of this version: {:?}",
            said.trim_end()
        ));
    };
    let parsed: Result<Vec<SocketAddr>, _> = line.split(',').map(str::parse).collect();
    parsed.map_err(|_| format!("it names '{line}' as its coordinators"))
}

/// What a front says of its cluster.
fn info(front: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&front, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"*2\r\n$4\r\nINFO\r\n$4\r\ncurp\r\n*1\r\n$4\r\nQUIT\r\n")?;
    let mut bytes = Vec::new();
    let read = stream.take(INFO_BYTES_MAX as u64).read_to_end(&mut bytes);
    match read {
        // It need not close the connection.
        Err(error) if bytes.is_empty() => Err(match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => ErrorKind::TimedOut.into(),
            _ => error,
        }),
        _ => Ok(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// The error of one command, at a place that says `said` to whoever connects.
    fn refused(name: &str) -> String {
        let mut elsewhere = Elsewhere::new().unwrap();
        let group = Group::new(name).unwrap();
        let numbers = [0, 1].map(|_| elsewhere.ask(&group, Vec::new()));
        let mut answers = Vec::new();
        while answers.len() < numbers.len() {
            answers.extend(elsewhere.take());
            std::thread::yield_now();
        }
        let told = answers.iter().map(|(number, _)| *number);
        assert!(
            told.eq(numbers),
            "each of those that waited, in their order"
        );
        let (_, Err(error)) = answers.remove(0) else {
            panic!("nobody executes it");
        };
        assert!(matches!(error, ElsewhereError::Unreachable { .. }));
        assert!(
            elsewhere.clusters.is_empty(),
            "the next command looks again"
        );
        error.to_string()
    }

    fn says(said: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = listener.local_addr().unwrap().to_string();
        let front = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 64]);
            stream.write_all(said).unwrap();
        });
        let refused = refused(&name);
        front.join().unwrap();
        refused
    }

    #[test]
    fn a_cluster_that_cannot_be_found_is_named_with_the_reason() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = listener.local_addr().unwrap().to_string();
        drop(listener);
        let error = refused(&name);
        assert!(
            error.contains(&name) && error.contains("refused"),
            "{error}"
        );
        assert!(error.ends_with("was not executed"), "{error}");
        let error = refused("nowhere");
        assert!(error.contains("no ADDRESS:PORT"), "{error}");
        let error = says(b"-NOAUTH Authentication required.\r\n");
        assert!(error.contains("NOAUTH Authentication required"), "{error}");
        let error = says(b"$9\r\n# Server\r\n\r\n");
        assert!(error.contains("no proxy or server"), "{error}");
        let error = says(b"$30\r\n# Curp\r\ncurp_coordinators:home\r\n\r\n");
        assert!(error.contains("'home'"), "{error}");
        let error = says(b"");
        assert!(error.contains("no proxy or server"), "{error}");
    }
}
