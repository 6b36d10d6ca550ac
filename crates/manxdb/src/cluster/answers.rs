//! What the nodes of a cluster say of themselves when they are asked.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use manxdb_net::{Status, StatusError, ask_status};

use super::file::{ClusterFile, Node};

/// How long a node may take to answer a page, at each step.
pub const PATIENCE: Duration = Duration::from_millis(500);
/// For so long what the nodes said counts: a page that many look at asks them no more often.
const FRESH: Duration = Duration::from_secs(1);

/// How a node is; a process of another cluster at its address is none of it. Waits for at most `patience` a
/// step.
///
/// # Errors
/// [`StatusError`].
pub fn ask(file: &ClusterFile, node: &Node, patience: Duration) -> Result<Status, StatusError> {
    let ask = |address| ask_at(file, address, patience);
    // Of several coordinators the one answers that leads.
    let mut answers = file.addresses_of(node).into_iter().map(ask);
    let first = answers.next().unwrap_or_else(|| ask(node.address));
    first.or_else(|why| answers.find_map(Result::ok).ok_or(why))
}

fn ask_at(
    file: &ClusterFile,
    address: SocketAddr,
    patience: Duration,
) -> Result<Status, StatusError> {
    let status = ask_status(address, patience)?;
    if status.cluster == file.id() {
        return Ok(status);
    }
    Err(StatusError::Stranger {
        address,
        reason: "it is of another cluster".to_owned(),
    })
}

/// What all nodes say, in the order of the file, or why they do not. All are asked at the same time: when a
/// region stands still, each of its nodes takes the whole patience.
#[must_use]
pub fn ask_each(file: &ClusterFile, patience: Duration) -> Vec<Result<Status, StatusError>> {
    thread::scope(|threads| {
        let asked = file.nodes.iter().map(|node| {
            let thread = thread::Builder::new().name("ask-status".to_owned());
            let asked = thread.spawn_scoped(threads, move || ask(file, node, patience));
            (node, asked)
        });
        let asked: Vec<_> = asked.collect();
        let answered = asked.into_iter().map(|(node, asked)| {
            let answer = asked.ok().and_then(|thread| thread.join().ok());
            // There was no thread to be had.
            answer.unwrap_or_else(|| ask(file, node, patience))
        });
        answered.collect()
    })
}

/// The same without the reasons of those that do not answer.
#[must_use]
pub fn ask_all(file: &ClusterFile, patience: Duration) -> Vec<Option<Status>> {
    let answers = ask_each(file, patience).into_iter();
    answers.map(Result::ok).collect()
}

/// A node's note by name.
#[must_use]
pub fn note<'a>(status: &'a Status, name: &str) -> Option<&'a str> {
    let node = status.nodes.first()?;
    let note = node.notes.iter().find(|(known, _)| known == name)?;
    Some(&note.1)
}

/// What the nodes said last, and when they had said it.
pub struct Recent<T>(Mutex<Option<(Instant, Arc<T>)>>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Recent<T> {
    /// What they said up to a second ago, or else what `make` has them say now. Whoever asks meanwhile waits
    /// for that.
    pub fn get(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((at, said)) if at.elapsed() < FRESH => Arc::clone(said),
            _ => {
                let said = Arc::new(make());
                *last = Some((Instant::now(), Arc::clone(&said)));
                said
            }
        }
    }

    /// Has them say this for an hour.
    #[cfg(test)]
    pub(crate) fn hold(&self, said: T) {
        let far_ahead = Instant::now() + Duration::from_secs(3_600);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((far_ahead, Arc::new(said)));
    }
}
