//! Shares of a core for processes, by Linux's control groups.
//!
//! Version 1 and 2 are both tried, as the machine has them mounted; without the right to make
//! groups there are no quotas, and runs say so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Microseconds in which a quota is spent and given anew.
const PERIOD: u32 = 100_000;

/// What holds processes to their share of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Quotas {
    /// Nothing: the machine does not let us.
    #[serde(rename = "none")]
    None,
    /// `cpu.cfs_quota_us` of control groups, version 1.
    #[serde(rename = "cgroup v1")]
    Version1,
    /// `cpu.max` of control groups, version 2.
    #[serde(rename = "cgroup v2")]
    Version2,
}

impl Quotas {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Version1 => "cgroup v1, cpu.cfs_quota_us",
            Self::Version2 => "cgroup v2, cpu.max",
        }
    }

    /// What this machine lets us use.
    pub fn here() -> Self {
        let works = |quotas: &Quotas| Group::make(*quotas, "probe", 0.5).is_some();
        let found = [Self::Version1, Self::Version2].into_iter().find(works);
        found.unwrap_or(Self::None)
    }

    fn root(self) -> Option<&'static Path> {
        match self {
            Self::None => None,
            Self::Version1 => Some(Path::new("/sys/fs/cgroup/cpu")),
            Self::Version2 => Some(Path::new("/sys/fs/cgroup")),
        }
    }
}

/// A group with a quota; removed when this is dropped, which its processes must not outlive.
#[derive(Debug)]
pub struct Group(PathBuf);

/// Tells groups of one process apart.
static MADE: AtomicU64 = AtomicU64::new(0);

impl Group {
    /// A group whose processes get `cpus` of a core together; none when it cannot be made.
    pub fn make(quotas: Quotas, name: &str, cpus: f64) -> Option<Self> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("manxdb-lab-{}-{number}-{name}", std::process::id());
        let root = quotas.root()?;
        if quotas == Quotas::Version2 {
            // It is there already, or may not be given: the quota tells.
            let _ = fs::write(root.join("cgroup.subtree_control"), "+cpu");
        }
        let path = root.join(name);
        fs::create_dir(&path).ok()?;
        let group = Self(path);
        let quota = quota(cpus);
        let done = match quotas {
            Quotas::None => return None,
            Quotas::Version1 => fs::write(group.0.join("cpu.cfs_period_us"), PERIOD.to_string())
                .and_then(|()| fs::write(group.0.join("cpu.cfs_quota_us"), quota.to_string())),
            Quotas::Version2 => fs::write(group.0.join("cpu.max"), format!("{quota} {PERIOD}")),
        };
        done.is_ok().then_some(group)
    }

    /// A command that runs `program` in this group from its first instruction on.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(self.0.join("cgroup.procs"))
            .arg(program);
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0); // what is left is empty
    }
}

/// Microseconds of a period that a share of a core is; the system takes no fewer than 1,000.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a float saturates
fn quota(cpus: f64) -> u32 {
    ((cpus * f64::from(PERIOD)).round() as u32).max(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_microseconds_of_each_period() {
        assert_eq!(
            [0.5, 1.0, 1.5, 0.0].map(quota),
            [50_000, 100_000, 150_000, 1_000]
        );
    }

    #[test]
    fn a_group_is_gone_when_it_is_dropped_and_there_is_none_without_quotas() {
        assert!(Group::make(Quotas::None, "test", 1.0).is_none());
        let Some(group) = Group::make(Quotas::here(), "test", 0.5) else {
            return; // not on this machine
        };
        let path = group.0.clone();
        assert!(path.join("cgroup.procs").exists());
        drop(group);
        assert!(!path.exists());
    }
}
