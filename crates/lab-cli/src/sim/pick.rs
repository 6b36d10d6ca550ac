//! Which call to draw: by its name, or by its place among its class.

use manxdb_lab::load::Made;
use manxdb_sim::SimTime;

use super::measure::{Class, measured};

/// A place among the calls of a class, by latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The shortest.
    Fastest,
    /// The one that so many of a hundred do not exceed.
    Percentile(u32),
    /// The longest.
    Slowest,
}

/// A call to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// By its client and its number there.
    Named(u32, u32),
    /// By its place.
    Placed(Place, Class),
}

impl std::str::FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || {
            format!(
                "'{text}' is no call: CLIENT.NUMBER such as 18.5, or fastest, median, p90, p95, \
                 p99 or slowest, and -local or -cross, such as slowest-local"
            )
        };
        if let Some((client, number)) = text.split_once('.') {
            let numbers = (client.parse(), number.parse());
            let (Ok(client), Ok(number)) = numbers else {
                return Err(error());
            };
            return Ok(Self::Named(client, number));
        }
        let (place, class) = text.split_once('-').ok_or_else(error)?;
        let place = match place {
            "fastest" => Place::Fastest,
            "median" | "p50" => Place::Percentile(50),
            "p90" => Place::Percentile(90),
            "p95" => Place::Percentile(95),
            "p99" => Place::Percentile(99),
            "slowest" => Place::Slowest,
            _ => return Err(error()),
        };
        let class = match class {
            "local" => Class::Local,
            "cross" | "cross-region" => Class::Cross,
            _ => return Err(error()),
        };
        Ok(Self::Placed(place, class))
    }
}

/// The call's number for traces.
pub fn txn_of(made: &Made) -> Option<u64> {
    made.answered
        .as_ref()
        .map(|(_, answer)| answer.id.for_traces())
}

/// CLIENT.NUMBER.
pub fn name_of(made: &Made) -> String {
    let number = txn_of(made).map_or(0, |txn| txn & 0xFFFF_FFFF);
    format!("{}.{number}", made.client.0)
}

/// The measured call at a place of its class; of equal ones the first that was asked.
pub fn pick(
    made: &[Made],
    (from, until): (SimTime, SimTime),
    class: Class,
    place: Place,
) -> Option<&Made> {
    let of_class = measured(made, from, until).filter(|made| Class::of(made) == class);
    let answered = of_class.filter(|made| {
        let answer = made.answered.as_ref();
        answer.is_some_and(|(_, answer)| answer.given.is_ok())
    });
    let mut calls: Vec<&Made> = answered.collect();
    calls.sort_by_key(|made| made.latency());
    let longest = calls.last()?.latency();
    let place = match place {
        Place::Fastest => 0,
        Place::Percentile(percent) => (calls.len() * percent as usize).div_ceil(100).max(1) - 1,
        Place::Slowest => calls.partition_point(|made| made.latency() < longest),
    };
    calls.get(place).copied()
}

/// The call that is wanted.
///
/// # Errors
/// Why there is none.
pub fn find(made: &[Made], span: (SimTime, SimTime), wanted: Wanted) -> Result<&Made, String> {
    match wanted {
        Wanted::Placed(place, class) => pick(made, span, class, place).ok_or_else(|| {
            format!(
                "no {} call was asked and answered while it was measured",
                class.name()
            )
        }),
        Wanted::Named(client, number) => {
            let txn = u64::from(client) << 32 | u64::from(number);
            let found = made.iter().find(|made| txn_of(made) == Some(txn));
            found.ok_or_else(|| unknown(made, client, number))
        }
    }
}

fn unknown(made: &[Made], client: u32, number: u32) -> String {
    let of_client = made.iter().filter(|made| made.client.0 == client);
    let count = of_client.filter(|made| made.answered.is_some()).count();
    if count > 0 {
        return format!(
            "client {client} had {count} calls answered, and number {number} is none of them"
        );
    }
    let clients = made.iter().map(|made| made.client.0);
    match (clients.clone().min(), clients.max()) {
        (Some(first), Some(last)) => {
            format!("there is no client {client}: they are {first} to {last}")
        }
        _ => "nothing was asked".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_wanted_by_name_or_by_place() {
        assert_eq!("18.5".parse(), Ok(Wanted::Named(18, 5)));
        let slowest = Wanted::Placed(Place::Slowest, Class::Local);
        assert_eq!("slowest-local".parse(), Ok(slowest));
        let tail = Wanted::Placed(Place::Percentile(99), Class::Cross);
        assert_eq!("p99-cross-region".parse(), Ok(tail));
        for text in ["", "18", "18.x", "p98-local", "slowest-both"] {
            let error = text.parse::<Wanted>().unwrap_err();
            assert!(error.contains("slowest-local"), "{error}");
        }
    }
}
