//! Faults as text, so that a failing plan fits on one line: `1500ms+2s crash n3`.

use std::fmt::{self, Display};
use std::str::FromStr;

use manxdb_core::{Nanos, NodeId};

use super::{Between, Fault, FaultKind, Group};
use crate::time::SimTime;
use crate::topology::{Ppm, RegionId};

/// A text that is no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no {expected}")]
pub struct TextError {
    expected: &'static str,
    text: String,
}

impl TextError {
    /// `text` should have been an `expected`.
    pub(crate) fn new(expected: &'static str, text: &str) -> Self {
        let text = text.to_string();
        Self { expected, text }
    }
}

const UNITS: [(&str, u64); 4] = [
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("s", 1_000_000_000),
];

/// A span in the largest unit that is exact.
struct Span(u64);

impl Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |(_, nanos): &&(&str, u64)| self.0.is_multiple_of(*nanos);
        let unit = UNITS.iter().filter(exact).max_by_key(|(_, nanos)| *nanos);
        let (name, nanos) = unit.unwrap_or(&UNITS[2]);
        write!(formatter, "{}{name}", self.0 / nanos)
    }
}

fn span(text: &str) -> Result<u64, TextError> {
    let error = || TextError::new("span such as 20ms", text);
    for (name, nanos) in UNITS {
        if let Some(number) = text.strip_suffix(name) {
            let number: u64 = number.parse().map_err(|_| error())?;
            return number.checked_mul(nanos).ok_or_else(error);
        }
    }
    Err(error())
}

fn signed_span(text: &str) -> Result<i64, TextError> {
    let nanos = span(text.trim_start_matches('-'))?;
    let nanos = i64::try_from(nanos).map_err(|_| TextError::new("span", text))?;
    Ok(if text.starts_with('-') { -nanos } else { nanos })
}

impl Display for Group {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => write!(formatter, "*"),
            Self::Region(region) => write!(formatter, "r{}", region.0),
            Self::Nodes(nodes) => {
                let names: Vec<_> = nodes.iter().map(|node| format!("n{}", node.0)).collect();
                write!(formatter, "{}", names.join(","))
            }
        }
    }
}

fn node(text: &str) -> Result<NodeId, TextError> {
    let number = text
        .strip_prefix('n')
        .and_then(|number| number.parse().ok());
    number
        .map(NodeId)
        .ok_or_else(|| TextError::new("node such as n3", text))
}

fn region(text: &str) -> Result<Option<RegionId>, TextError> {
    if text == "*" {
        return Ok(None);
    }
    let number = text
        .strip_prefix('r')
        .and_then(|number| number.parse().ok());
    let region = number.map(RegionId);
    region
        .map(Some)
        .ok_or_else(|| TextError::new("region such as r1, or *", text))
}

fn group(text: &str) -> Result<Group, TextError> {
    if text.starts_with('n') {
        let nodes: Result<_, _> = text.split(',').map(node).collect();
        return nodes.map(Group::Nodes);
    }
    Ok(region(text)?.map_or(Group::All, Group::Region))
}

impl Display for Between {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |region: Option<RegionId>| region.map_or(Group::All, Group::Region);
        write!(formatter, "{}>{}", side(self.from), side(self.to))
    }
}

fn between(text: &str) -> Result<Between, TextError> {
    let error = || TextError::new("pair of regions such as r0>r1", text);
    let (from, to) = text.split_once('>').ok_or_else(error)?;
    let (from, to) = (region(from)?, region(to)?);
    Ok(Between { from, to })
}

fn suffixed<T: FromStr>(text: &str, suffix: &str) -> Result<T, TextError> {
    let number = text
        .strip_suffix(suffix)
        .and_then(|number| number.parse().ok());
    number.ok_or_else(|| TextError::new("number with its unit", text))
}

fn times(text: &str) -> Result<u32, TextError> {
    let number = text
        .strip_prefix('x')
        .and_then(|number| number.parse().ok());
    number.ok_or_else(|| TextError::new("factor such as x10", text))
}

impl Display for FaultKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.name())?;
        if let Some(node) = self.node() {
            write!(formatter, " n{}", node.0)?;
        }
        match self {
            Self::Slow { times, .. } | Self::DiskSlow { times, .. } => {
                write!(formatter, " x{times}")
            }
            Self::ClockStep { by, .. } => {
                let sign = if *by < 0 { "-" } else { "" };
                write!(formatter, " {sign}{}", Span(by.unsigned_abs()))
            }
            Self::ClockDrift { ppm, .. } => write!(formatter, " {ppm}ppm"),
            Self::Cut { from, to } => write!(formatter, " {from} {to}"),
            Self::Part { one, other } => write!(formatter, " {one} {other}"),
            Self::Loss { between, share }
            | Self::Duplicate { between, share }
            | Self::Flip { between, share } => {
                write!(formatter, " {between} {}ppm", share.0)
            }
            Self::Reorder { between, share, by } => {
                write!(formatter, " {between} {}ppm {}", share.0, Span(by.0))
            }
            Self::Delay { between, extra } => write!(formatter, " {between} {}", Span(extra.0)),
            _ => Ok(()),
        }
    }
}

impl FromStr for FaultKind {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let share = |text| suffixed(text, "ppm").map(Ppm);
        let crash = |text, disk_lost| node(text).map(|node| Self::Crash { node, disk_lost });
        Ok(match words[..] {
            ["crash", name] => crash(name, false)?,
            ["wipe", name] => crash(name, true)?,
            ["pause", name] => Self::Pause { node: node(name)? },
            ["slow", name, factor] => Self::Slow {
                node: node(name)?,
                times: times(factor)?,
            },
            ["step", name, by] => Self::ClockStep {
                node: node(name)?,
                by: signed_span(by)?,
            },
            ["drift", name, rate] => Self::ClockDrift {
                node: node(name)?,
                ppm: suffixed(rate, "ppm")?,
            },
            ["freeze", name] => Self::ClockFreeze { node: node(name)? },
            ["disk-slow", name, factor] => Self::DiskSlow {
                node: node(name)?,
                times: times(factor)?,
            },
            ["disk-full", name] => Self::DiskFull { node: node(name)? },
            ["disk-fails", name] => Self::DiskFails { node: node(name)? },
            ["cut", from, to] => Self::Cut {
                from: group(from)?,
                to: group(to)?,
            },
            ["part", one, other] => Self::Part {
                one: group(one)?,
                other: group(other)?,
            },
            ["loss", links, part] => Self::Loss {
                between: between(links)?,
                share: share(part)?,
            },
            ["duplicate", links, part] => Self::Duplicate {
                between: between(links)?,
                share: share(part)?,
            },
            ["reorder", links, part, by] => Self::Reorder {
                between: between(links)?,
                share: share(part)?,
                by: Nanos(span(by)?),
            },
            ["flip", links, part] => Self::Flip {
                between: between(links)?,
                share: share(part)?,
            },
            ["delay", links, extra] => Self::Delay {
                between: between(links)?,
                extra: Nanos(span(extra)?),
            },
            _ => return Err(TextError::new("fault", text)),
        })
    }
}

impl Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, lasts) = (Span(self.at.0), Span(self.lasts.0));
        write!(formatter, "{at}+{lasts} {}", self.kind)
    }
}

impl FromStr for Fault {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let error = || TextError::new("fault such as 1s+20ms crash n3", text);
        let (when, kind) = text.trim().split_once(' ').ok_or_else(error)?;
        let (at, lasts) = when.split_once('+').ok_or_else(error)?;
        Ok(Self {
            at: SimTime(span(at)?),
            lasts: Nanos(span(lasts)?),
            kind: kind.parse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_fault_reads_back_as_it_was_written() {
        for text in [
            "1s+300ms crash n3",
            "1500ms+2s wipe n0",
            "0s+7us pause n12",
            "1ns+1ns slow n1 x10",
            "1s+0s step n1 -500ms",
            "1s+0s step n1 10s",
            "1s+1s drift n1 -200ppm",
            "1s+1s freeze n1",
            "1s+1s disk-slow n1 x100",
            "1s+1s disk-full n1",
            "1s+1s disk-fails n1",
            "1s+1s cut n1,n2 r0",
            "1s+1s part r0 *",
            "1s+1s loss r0>r1 200000ppm",
            "1s+1s duplicate *>r1 1ppm",
            "1s+1s reorder *>* 5000ppm 20ms",
            "1s+1s flip *>* 100000ppm",
            "1s+1s delay r0>* 80ms",
        ] {
            let fault: Fault = text.parse().unwrap();
            assert_eq!(fault.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_fault_is_named() {
        let error = "1s+1s crash x3".parse::<Fault>().unwrap_err();
        assert_eq!(error.to_string(), "'x3' is no node such as n3");
        for text in [
            "",
            "crash n1",
            "1s crash n1",
            "1s+1 crash n1",
            "1s+1s melt n1",
        ] {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
    }
}
