//! The most that a system keeps up with.

use super::trial::Probe;

/// A rate below this share of what a system does flat out is not tried.
const LEAST: f64 = 1.0 / 16.0;

/// The largest rate that `keeps_up` says yes to, between a part of `flat_out` and all of it, to a
/// factor that a probe's steps decide. Where it says no to everything, the least that was tried.
///
/// # Errors
/// Those of `keeps_up`.
pub fn largest<E>(
    flat_out: f64,
    probe: Probe,
    mut keeps_up: impl FnMut(f64) -> Result<bool, E>,
) -> Result<f64, E> {
    assert!(flat_out > 0.0, "a system that ran did something");
    let mut low = flat_out / 4.0;
    while low > flat_out * LEAST && !keeps_up(low)? {
        low /= 2.0;
    }
    let mut high = flat_out.min(low * 4.0);
    for _ in 0..probe.steps {
        let middle = (low * high).sqrt();
        if keeps_up(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn found(capacity: f64, steps: u32) -> (f64, Vec<f64>) {
        let mut tried = Vec::new();
        let probe = Probe {
            seconds: 1.0,
            steps,
        };
        let found = largest(1_000.0, probe, |rate| {
            tried.push(rate);
            Ok::<_, Infallible>(rate <= capacity)
        });
        (found.unwrap(), tried)
    }

    #[test]
    fn the_largest_rate_is_found_to_a_few_percent_from_below() {
        for capacity in [100.0, 260.0, 500.0, 900.0, 2_000.0] {
            let (rate, _) = found(capacity, 4);
            let most = f64::min(capacity, 1_000.0);
            assert!(rate <= capacity && rate > most / 1.1, "{capacity}: {rate}");
        }
    }

    #[test]
    fn what_keeps_up_with_nothing_is_asked_for_little_and_ends() {
        let (rate, tried) = found(0.0, 3);
        assert!((rate - 62.5).abs() < 1e-9, "{rate}");
        assert_eq!(tried.len(), 2 + 3, "{tried:?}");
    }
}
