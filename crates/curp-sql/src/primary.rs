//! When a server is the primary: from the claim of the rows to the loss of the mastership.
//!
//! | state | leaves it when |
//! |---|---|
//! | standby | its process is the CURP master and serves: it claims the rows for a new owner |
//! | claiming | the claim is on all backups: all that earlier owners have written is in the rows now, and nothing of theirs will come. It begins with those rows |
//! | reigning | its process is not that master any more, or a commit was refused or forgotten: it ends, and nothing that it orders is confirmed any more |
//!
//! The claim is what makes failover safe for commits, leases what makes it safe for reads: a commit of an
//! owner whose time is over does nothing wherever it arrives, be it from a witness or from a process
//! that stood still.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_core::RequestId;
use manxdb_curp::ids::Epoch;
use manxdb_curp::server::Server;
use manxdb_curp::{ClientAnswer, Completion};
use manxdb_storage::Version;

use crate::commits::Commits;
use crate::effects::{Effects, Outcome, Owner, SqlCommand};
use crate::machine::{RowsView, SqlMachine};

/// Claims that one master can make; more are those of a defect.
const CLAIMS_BITS: u32 = 16;

enum State {
    Standby,
    Claiming {
        elected: Epoch,
        owner: Owner,
        is_answered: bool,
    },
    Reigning {
        elected: Epoch,
        commits: Arc<Commits>,
    },
}

/// What a request that is under way is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Claim(Owner),
    Commit(Owner, Version),
    Show,
}

/// What is to be done.
pub enum Step {
    /// Ask the client for this, and tell [`Primary::asked`].
    Ask(SqlCommand),
    /// A reign begins with these rows.
    Begin(Owner, RowsView),
    /// It is over.
    End,
}

/// How commits were completed, for reports and for tests that count round trips.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommitCounts {
    /// All witnesses had it: one round trip.
    pub fast: u64,
    /// It was too large, or conflicts with one that was not synced: one round trip to the backups.
    pub at_backups: u64,
    /// A witness refused or was slow: the backups were waited for after that.
    pub after_refusal: u64,
}

/// One server's way to being the primary and back.
pub struct Primary {
    state: State,
    asked: BTreeMap<RequestId, Asked>,
    claims: u64,
    counts: CommitCounts,
}

impl Default for Primary {
    fn default() -> Self {
        Self {
            state: State::Standby,
            asked: BTreeMap::new(),
            claims: 0,
            counts: CommitCounts::default(),
        }
    }
}

impl Primary {
    /// How commits were completed.
    #[must_use]
    pub fn counts(&self) -> CommitCounts {
        self.counts
    }

    /// The commits of the reign, if this is the primary.
    #[must_use]
    pub fn commits(&self) -> Option<&Arc<Commits>> {
        match &self.state {
            State::Reigning { commits, .. } => Some(commits),
            State::Standby | State::Claiming { .. } => None,
        }
    }

    /// Whether it reigns, as the master of that epoch.
    #[must_use]
    pub fn reigns_in(&self, epoch: Epoch) -> bool {
        matches!(&self.state, State::Reigning { elected, .. } if *elected == epoch)
    }

    /// Looks at the server of its process.
    pub fn look(&mut self, server: &Server<SqlMachine>) -> Option<Step> {
        let now = server.elected();
        match &self.state {
            State::Standby => {
                let elected = now.filter(|_| server.serves().is_some())?;
                self.claims += 1;
                assert!(
                    self.claims >> CLAIMS_BITS == 0,
                    "a process claims a few times"
                );
                let owner = Owner(elected.0 << CLAIMS_BITS | self.claims);
                self.state = State::Claiming {
                    elected,
                    owner,
                    is_answered: false,
                };
                Some(Step::Ask(SqlCommand::Claim(owner)))
            }
            State::Claiming { elected, .. } if now != Some(*elected) => {
                self.state = State::Standby;
                None
            }
            State::Claiming {
                owner, is_answered, ..
            } => {
                let served = server.served().filter(|_| *is_answered)?;
                // Another master may have answered; and a view of rows on disk has what is settled alone.
                let own = *owner;
                (served.settled_owner() == own).then(|| Step::Begin(own, served.view()))
            }
            State::Reigning { elected, .. } if now != Some(*elected) => {
                self.end("another server is master now");
                Some(Step::End)
            }
            State::Reigning { elected, commits } => {
                assert_eq!(
                    commits.owner().0 >> CLAIMS_BITS,
                    elected.0,
                    "a reign is of one life of a master"
                );
                let lost = commits.is_lost();
                if !lost && let Some(served) = server.served() {
                    commits.note_rows(served.memory_bytes());
                }
                lost.then(|| {
                    self.state = State::Standby;
                    Step::End
                })
            }
        }
    }

    /// The reign that [`Step::Begin`] announced begins with these commits.
    pub fn begin(&mut self, commits: Arc<Commits>) {
        let State::Claiming { elected, owner, .. } = self.state else {
            return;
        };
        assert_eq!(commits.owner(), owner, "who claims is who reigns");
        self.state = State::Reigning { elected, commits };
    }

    /// The process ends, or its primary cannot go on.
    pub fn end(&mut self, why: &str) {
        if let State::Reigning { commits, .. } = &self.state {
            commits.lose(why);
        }
        self.state = State::Standby;
    }

    /// Effects that were handed over, to be asked for.
    #[must_use]
    pub fn handed_over(&self) -> Vec<SqlCommand> {
        let Some(commits) = self.commits() else {
            return Vec::new();
        };
        let effects = commits.take();
        let is_own = |effects: &Effects| effects.owner == commits.owner();
        assert!(effects.iter().all(is_own), "a reign replicates its own");
        effects.into_iter().map(SqlCommand::Commit).collect()
    }

    /// The client was asked for a command.
    pub fn asked(&mut self, id: RequestId, command: &SqlCommand) {
        let asked = match command {
            SqlCommand::Claim(owner) => Asked::Claim(*owner),
            SqlCommand::Commit(effects) => Asked::Commit(effects.owner, effects.version()),
            SqlCommand::Show => Asked::Show,
        };
        let earlier = self.asked.insert(id, asked);
        assert!(earlier.is_none(), "a request has a number of its own");
    }

    /// Whether the master is being shown that its client is there.
    #[must_use]
    pub fn is_showing(&self) -> bool {
        self.asked.values().any(|asked| *asked == Asked::Show)
    }

    /// The client has an answer.
    pub fn answered(&mut self, id: RequestId, answer: &ClientAnswer) {
        let Some(asked) = self.asked.remove(&id) else {
            return;
        };
        let known = answer.answer.as_ref();
        let outcome = known.and_then(|(bytes, _)| Outcome::of(bytes));
        match asked {
            Asked::Show => {}
            Asked::Claim(of) => self.claim_answered(of, outcome),
            Asked::Commit(of, version) => {
                let Some(commits) = self.commits().filter(|commits| commits.owner() == of) else {
                    return; // of an earlier reign: its sessions were told
                };
                match (outcome, known) {
                    (Some(Outcome::Done), Some((_, completion))) => {
                        commits.confirmed(version);
                        let count = match completion {
                            Completion::Fast => &mut self.counts.fast,
                            Completion::AtMaster => &mut self.counts.at_backups,
                            Completion::Sync => &mut self.counts.after_refusal,
                        };
                        *count += 1;
                    }
                    // Not done, or forgotten: what comes after it is not to be shown either.
                    _ => commits.lose("a commit was not replicated: another server is master now"),
                }
            }
        }
    }

    fn claim_answered(&mut self, of: Owner, outcome: Option<Outcome>) {
        if let State::Claiming {
            owner, is_answered, ..
        } = &mut self.state
            && *owner == of
        {
            if outcome == Some(Outcome::Done) {
                *is_answered = true;
            } else {
                self.state = State::Standby; // tried again under another name
            }
        }
    }
}
