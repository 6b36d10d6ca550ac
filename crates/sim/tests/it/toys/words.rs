//! What a history of [`super::chatter`] must look like between any two lives.

use std::collections::BTreeMap;

use manxdb_core::channel::Life;
use manxdb_core::{LocalTime, NodeId};

use super::chatter::{Entry, Word};

/// What a run left behind.
pub struct History {
    pub log: Vec<Entry>,
    pub lives: BTreeMap<NodeId, Life>,
    pub digest: u64,
}

/// The words from one life to another, in the order of arrival.
pub type Streams = BTreeMap<(NodeId, Life, NodeId, Life), Vec<Word>>;

pub fn streams(log: &[Entry]) -> Streams {
    let mut streams = Streams::new();
    for entry in log {
        if let Entry::Heard {
            from,
            to,
            to_life,
            word,
            ..
        } = *entry
        {
            let stream = streams.entry((from, word.life, to, to_life));
            stream.or_default().push(word);
        }
    }
    streams
}

/// No word twice, none out of order, no hole; what follows reached a later life.
pub fn check_order(streams: &Streams) -> Result<(), String> {
    let mut last: BTreeMap<(NodeId, Life, NodeId), u64> = BTreeMap::new();
    for ((from, life, to, to_life), words) in streams {
        let last = last.entry((*from, *life, *to)).or_default();
        if words[0].number <= *last {
            return Err(format!(
                "{from:?} {life:?} → {to:?} {to_life:?}: {:?} again",
                words[0]
            ));
        }
        *last = words[0].number - 1;
        for word in words {
            *last += 1;
            if word.number != *last {
                return Err(format!(
                    "{from:?} {life:?} → {to:?} {to_life:?}: {word:?}, not {last}"
                ));
            }
        }
    }
    Ok(())
}

/// Between the last lives everything arrives; from the first word on, if the sender started last.
pub fn check_complete(history: &History, streams: &Streams) -> Result<(), String> {
    let mut sent: BTreeMap<(NodeId, Life, NodeId), u64> = BTreeMap::new();
    let mut order = Vec::new();
    for entry in &history.log {
        match *entry {
            Entry::Sent { from, to, word } => {
                sent.insert((from, word.life, to), word.number);
            }
            Entry::Started { node, life, .. } => order.push((node, life)),
            Entry::Heard { .. } => {}
        }
    }
    let started = |node, life| order.iter().position(|one| *one == (node, life));
    for ((from, life, to), last) in &sent {
        if history.lives[from] != *life {
            continue;
        }
        let to_life = history.lives[to];
        let empty = Vec::new();
        let words = streams.get(&(*from, *life, *to, to_life)).unwrap_or(&empty);
        let unheard =
            format!("{from:?} {life:?} → {to:?} {to_life:?}: sent {last}, heard {words:?}");
        let later = started(*from, *life) >= started(*to, to_life);
        if later && words.first().map(|word| word.number) != Some(1) {
            return Err(unheard);
        }
        if !words.is_empty() && words.last().map(|word| word.number) != Some(*last) {
            return Err(unheard);
        }
    }
    Ok(())
}

/// A word to a life that is known reaches no later one.
pub fn check_lives(log: &[Entry]) -> Result<(), String> {
    let mut starts: BTreeMap<(NodeId, Life), LocalTime> = BTreeMap::new();
    // When a life of a node first heard of a life of another.
    let mut known: BTreeMap<(NodeId, Life, NodeId, Life), LocalTime> = BTreeMap::new();
    for entry in log {
        match *entry {
            Entry::Started { node, life, at } => {
                starts.insert((node, life), at);
            }
            Entry::Heard {
                from,
                to,
                to_life,
                word,
                at,
            } => {
                known.entry((to, to_life, from, word.life)).or_insert(at);
                let of_old = (1..to_life.0).any(|old| {
                    // All nodes know of the first lives when they are born with them.
                    let at_birth = word.life == Life(1) && old == 1;
                    let heard = known.get(&(from, word.life, to, Life(old)));
                    at_birth || heard.is_some_and(|heard| *heard < word.sent)
                });
                if of_old && word.sent < starts[&(to, to_life)] {
                    return Err(format!(
                        "{from:?} → {to:?} {to_life:?}: {word:?} is of an old life"
                    ));
                }
            }
            Entry::Sent { .. } => {}
        }
    }
    Ok(())
}

/// All of them.
pub fn check_words(history: &History) -> Result<(), String> {
    let streams = streams(&history.log);
    check_order(&streams)?;
    check_complete(history, &streams)?;
    check_lives(&history.log)
}
