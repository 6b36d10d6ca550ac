//! What the loss of memory servers means for a server whose rows they have, for people.

use manxdb_gateway::admin::HealthReport;

use super::health::StoreHealth;

/// The memory servers of a database, as one that has rows there sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryServers {
    /// How many there are to be.
    pub count: u16,
    /// Whether each row is on several.
    pub is_replicated: bool,
    /// Whether what is committed is written to disk.
    pub is_kept: bool,
}

/// Servers that are with their rows always: with fewer nobody agrees on a loss.
const LEFT_LEAST: usize = 2;

impl MemoryServers {
    /// How the database is when these servers do not answer.
    pub fn health(self, missing: &[u16], known: &StoreHealth) -> HealthReport {
        let refusal = known.read_refusal();
        if missing.is_empty() {
            return known.report();
        }
        let lost = format!("{} of {}", names(missing), self.count);
        let is = if missing.len() == 1 { "is" } else { "are" };
        let left = usize::from(self.count).saturating_sub(missing.len());
        if !self.is_replicated {
            let what =
                format!("statements are not served: {lost} {is} lost, and rows have no replicas");
            return HealthReport::unavailable(what, self.start_again());
        }
        if refusal.is_some() || left < LEFT_LEAST {
            let what = format!("statements are not served: {lost} {is} lost");
            let remedy = format!(
                "if one server only is lost this ends within seconds; otherwise {}",
                self.start_again()
            );
            return HealthReport::unavailable(what, remedy);
        }
        let what = format!("{lost} {is} lost, and rows are served by the other {left}");
        let more = left - LEFT_LEAST;
        let remedy = format!(
            "{more} more may be lost, one after the other; to have all of them again {}",
            self.start_again()
        );
        HealthReport::degraded(what, remedy).or_worse(known.report())
    }

    /// What brings lost servers back.
    fn start_again(self) -> &'static str {
        if self.is_kept {
            "end all memory servers and start them again with the same --disk, which has the rows"
        } else if self.is_replicated {
            "end all memory servers, start them anew and load a dump, which is to be made before while \
             rows are served"
        } else {
            "end all memory servers, start them anew and load a dump: what was in memory is lost"
        }
    }
}

/// As in `memory servers 0, 1 and 3`.
fn names(missing: &[u16]) -> String {
    let numbers: Vec<String> = missing.iter().map(ToString::to_string).collect();
    match numbers.split_last() {
        None => "no memory server".to_owned(),
        Some((only, [])) => format!("memory server {only}"),
        Some((last, before)) => format!("memory servers {} and {last}", before.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: MemoryServers = MemoryServers {
        count: 4,
        is_replicated: true,
        is_kept: false,
    };

    fn said(servers: MemoryServers, missing: &[u16]) -> String {
        servers.health(missing, &StoreHealth::default()).to_string()
    }

    #[test]
    fn a_loss_that_replicas_outlive_is_named_with_how_many_more_may_follow() {
        let said = said(FOUR, &[2]);
        assert!(
            said.starts_with(
                "degraded: memory server 2 of 4 is lost, and rows are served by the other 3: 1 more"
            ),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1);
    }

    #[test]
    fn without_replicas_each_loss_is_that_of_all_rows() {
        let alone = MemoryServers {
            is_replicated: false,
            ..FOUR
        };
        let all_rows = said(alone, &[0, 1]);
        assert!(
            all_rows.starts_with(
                "unavailable: statements are not served: memory servers 0 and 1 of 4 are lost"
            ),
            "{all_rows}"
        );
        assert!(all_rows.contains("what was in memory is lost"));
        let kept = MemoryServers {
            is_kept: true,
            ..alone
        };
        assert!(said(kept, &[3]).contains("same --disk"));
    }

    #[test]
    fn with_one_server_left_nobody_is_served() {
        assert!(said(FOUR, &[0, 1, 3]).starts_with("unavailable"));
        assert_eq!(said(FOUR, &[]), "ok");
    }
}
