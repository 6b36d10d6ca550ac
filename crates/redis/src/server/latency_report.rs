//! LATENCY GRAPH and DOCTOR: times of slow events for people.

use super::latency::History;
use super::state::Server;

/// Columns of a graph, which shows the latest times.
const COLUMNS: usize = 80;
/// Its rows.
const ROWS: u64 = 4;

/// Columns of the latest times of an event, as high as they are long, the newest at the right.
pub(super) fn graph(name: &str, history: &History) -> String {
    let skipped = history.times().len().saturating_sub(COLUMNS);
    let millis: Vec<u64> = history
        .times()
        .skip(skipped)
        .map(|(_, millis)| millis)
        .collect();
    let most = millis.iter().copied().max().unwrap_or(0);
    let least = millis.iter().copied().min().unwrap_or(0);
    let mut text = format!(
        "{name} - high {most} ms, low {least} ms (all time high {} ms)\n",
        history.most()
    );
    text.push_str(&"-".repeat(COLUMNS));
    text.push('\n');
    for row in (0..ROWS).rev() {
        let is_filled = |millis: &u64| {
            let height = (millis * ROWS).div_ceil(most.max(1));
            height > row || row == 0
        };
        let columns = millis.iter();
        let columns = columns.map(|millis| if is_filled(millis) { '#' } else { ' ' });
        let line: String = columns.collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// What is known of slow events, and where to look further.
pub(super) fn doctor(server: &Server) -> String {
    let threshold = server.settings.latency_threshold_millis;
    if threshold == 0 {
        return "Times are not watched: CONFIG SET latency-monitor-threshold <milliseconds> begins to.\n"
            .to_owned();
    }
    let mut text = String::new();
    for (name, history) in server.latency.histories() {
        let times = history.times().len() as u64;
        let sum: u64 = history.times().map(|(_, millis)| millis).sum();
        let average = sum.checked_div(times).unwrap_or(0);
        text.push_str(&format!(
            "{name}: {times} times above {threshold} ms, {average} ms on average, {} ms at most.\n",
            history.most()
        ));
    }
    if text.is_empty() {
        return format!("Nothing took longer than {threshold} ms.\n");
    }
    text.push_str(
        "SLOWLOG SPLIT tells of single commands where their time went, INFO latencystats how long \
         commands take.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use crate::server::{LatencyEvent, Server, Settings};
    use crate::{Command, Keyspace, Reply, Stamp};

    fn ask(server: &mut Server, words: &str) -> String {
        let id = server.connect("a".into(), 0);
        let command = Command::of(&words.split(' ').collect::<Vec<_>>());
        match server.handle(id, &command, Stamp::new(1, 1)).reply {
            Reply::Verbatim(text) => text,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn graph_and_doctor_tell_what_took_long() {
        let mut server = Server::new(Keyspace::new(), Settings::default(), 0);
        assert!(ask(&mut server, "LATENCY DOCTOR").starts_with("Times are not watched"));
        ask(&mut server, "CONFIG SET latency-monitor-threshold 10");
        assert_eq!(
            ask(&mut server, "LATENCY DOCTOR"),
            "Nothing took longer than 10 ms.\n"
        );
        assert!(ask(&mut server, "LATENCY GRAPH command").contains("No samples available"));
        for (second, millis) in [(1, 20), (2, 80), (3, 40)] {
            let stamp = Stamp::new(second * 1000, 1);
            server.lasted(LatencyEvent::Command, millis * 1000, stamp);
        }
        let doctor = ask(&mut server, "LATENCY DOCTOR");
        let told = "command: 3 times above 10 ms, 46 ms on average, 80 ms at most.\n";
        assert!(doctor.starts_with(told), "{doctor}");
        let graph = ask(&mut server, "LATENCY GRAPH COMMAND");
        let head = "command - high 80 ms, low 20 ms (all time high 80 ms)\n";
        assert!(graph.starts_with(head), "{graph}");
        assert!(graph.ends_with("\n #\n #\n ##\n###\n"), "{graph}");
    }
}
