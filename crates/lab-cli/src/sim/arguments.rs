//! From flags to a scenario, and what is wrong with them.

use manxdb_common::Level;
use manxdb_core::Nanos;
use manxdb_dast::Crossing;
use manxdb_dast::options::lead_of_millis;
use manxdb_lab::scenario::Scenario;
use manxdb_lab::systems::SystemName;
use manxdb_sim::{ClockOptions, CostModel, Fault as SimFault, Link};
use manxdb_workloads::{Topology, Workload, append, tpcc};

use super::reach::within;
use manxdb::cli::TpccScale;

use crate::cli::{CpuChoice, LevelChoice, PaymentSumsChoice, SimRun, WorkloadChoice};
use crate::fault::Fault;

/// Nodes of one run, clients among them: links are kept for every pair.
const NODES_MAX: u32 = 5_000;

/// Lists one call of `append` can read: the most operations a call has.
const LISTS_MAX: u32 = 64;

/// The scenario that is asked for.
///
/// # Errors
/// [`Fault::Other`] that names the flag, what is wrong with it and what would be right.
pub fn scenario(args: &SimRun) -> Result<Scenario, Fault> {
    let topology = Topology {
        regions: args.regions,
        shards_per_region: args.shards,
    };
    let clients = args.clients * topology.shards();
    let mut scenario = Scenario::new(topology, workload(args)?);
    scenario.system = args.system;
    (scenario.crossing, scenario.lead) = crossing(args)?;
    let can = args.survive.with(args.crossing, args.regions);
    can.map_err(|wrong| Fault::Other(format!("--survive {}: {wrong}", args.survive.name())))?;
    scenario.survive = args.survive;
    let servers = scenario.shape().servers();
    if servers + clients > NODES_MAX {
        return Err(Fault::Other(format!(
            "--clients {} makes {clients} clients beside {servers} servers; a run has at most \
             {NODES_MAX} nodes, so --clients {} at most here",
            args.clients,
            NODES_MAX.saturating_sub(servers) / topology.shards()
        )));
    }
    let minute = 60_000.0;
    let link = |round_trip: (&str, f64), jitter: (&str, f64)| -> Result<Link, Fault> {
        let delay = Nanos(number(round_trip.0, round_trip.1, 0.0, minute)?.0 / 2);
        let jitter = number(jitter.0, jitter.1, 0.0, minute)?;
        Ok(Link::after(delay).with_jitter(jitter))
    };
    scenario.lan = link(
        ("--lan-ms", args.lan_ms),
        ("--lan-jitter-ms", args.lan_jitter_ms),
    )?;
    scenario.wan = link(
        ("--wan-ms", args.wan_ms),
        ("--wan-jitter-ms", args.wan_jitter_ms),
    )?;
    scenario.clocks = ClockOptions {
        offset_max: number("--clock-offset-ms", args.clock_offset_ms, 0.0, minute)?,
        drift_max_ppm: args.clock_drift_ppm,
    };
    scenario.cost = match args.cpu {
        CpuChoice::Modelled => CostModel::default(),
        CpuChoice::Free => CostModel::free(),
    };
    scenario.level = match args.level {
        LevelChoice::Serializable => Level::Serializable,
        LevelChoice::Session => Level::Session,
        LevelChoice::Strict => Level::Strict,
    };
    if scenario.level > args.system.promises() {
        return Err(Fault::Other(format!(
            "--level {}: {} promises serializable; dast, janus and tapir promise session and strict",
            format!("{:?}", args.level).to_lowercase(),
            args.system.name()
        )));
    }
    if args.level != LevelChoice::Serializable && args.outstanding > 1 {
        return Err(Fault::Other(format!(
            "--outstanding {} makes calls of one session overlap, which have no order to keep: \
             with --level session or strict it is 1",
            args.outstanding
        )));
    }
    let day = 86_400.0;
    scenario.measured = number("--seconds", args.seconds, 0.001, day)? * 1_000;
    scenario.warm_up = number("--warm-up", args.warm_up, 0.0, day)? * 1_000;
    scenario.scale = args.tpcc_scale.unwrap_or(TpccScale::Full).scale();
    scenario.payment_sums = match args.payment_sums {
        Some(PaymentSumsChoice::Published) => tpcc::PaymentSums::Published,
        Some(PaymentSumsChoice::Tpcc) | None => tpcc::PaymentSums::Tpcc,
    };
    scenario.clients_per_shard = args.clients;
    scenario.outstanding = args.outstanding;
    scenario.seed = args.seed;
    for text in &args.fault {
        scenario.faults.push(fault(text, &scenario)?);
    }
    Ok(scenario)
}

/// How cross-region transactions get their places.
fn crossing(args: &SimRun) -> Result<(Crossing, Option<Nanos>), Fault> {
    let is_ahead = args.crossing == Crossing::Ahead;
    if is_ahead && args.system != SystemName::Dast {
        return Err(Fault::Other(format!(
            "--crossing ahead is of dast, not of {}, which has one way to order",
            args.system.name()
        )));
    }
    let Some(millis) = args.lead_ms else {
        return Ok((args.crossing, None));
    };
    if !is_ahead {
        return Err(Fault::Other(
            "--lead-ms is for --crossing ahead: anticipated timestamps have no lead".to_owned(),
        ));
    }
    let lead = lead_of_millis(millis);
    let lead = lead.map_err(|wrong| Fault::Other(format!("--lead-ms: {wrong}")))?;
    Ok((args.crossing, Some(lead)))
}

/// A number of milliseconds within bounds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // held within bounds
fn number(flag: &str, value: f64, least: f64, most: f64) -> Result<Nanos, Fault> {
    if (least..=most).contains(&value) {
        return Ok(Nanos((value * 1e6).round() as u64));
    }
    Err(Fault::Other(format!(
        "{flag} {value} is not {least} to {most}"
    )))
}

/// A flag in percent as a share of one.
fn share(flag: &str, percent: f64) -> Result<f64, Fault> {
    if (0.0..=100.0).contains(&percent) {
        return Ok(percent / 100.0);
    }
    Err(Fault::Other(format!("{flag} {percent} is not 0 to 100")))
}

fn workload(args: &SimRun) -> Result<Workload, Fault> {
    use WorkloadChoice::{Append, Payment, Tpca, Tpcc};
    let all: [(&str, bool, &[WorkloadChoice]); 8] = [
        (
            "--crt-percent",
            args.crt_percent.is_some(),
            &[Payment, Tpca, Append],
        ),
        ("--theta", args.theta.is_some(), &[Tpca]),
        ("--lists", args.lists.is_some(), &[Append]),
        (
            "--deferred-percent",
            args.deferred_percent.is_some(),
            &[Append],
        ),
        ("--standard", args.standard, &[Tpcc]),
        ("--remote-payments", args.remote_payments.is_some(), &[Tpcc]),
        (
            "--payment-sums",
            args.payment_sums.is_some(),
            &[Tpcc, Payment],
        ),
        ("--tpcc-scale", args.tpcc_scale.is_some(), &[Tpcc, Payment]),
    ];
    for (flag, is_given, workloads) in all {
        if is_given && !workloads.contains(&args.workload) {
            let names: Vec<String> = workloads.iter().map(|it| name(*it)).collect();
            return Err(Fault::Other(format!(
                "{flag} is for --workload {}, not for {}",
                names.join(" or "),
                name(args.workload)
            )));
        }
    }
    let cross_region = share("--crt-percent", args.crt_percent.unwrap_or(10.0))?;
    if args.regions == 1 && args.crt_percent.is_some_and(|percent| percent > 0.0) {
        return Err(Fault::Other(
            "--crt-percent is of calls that touch several regions: with --regions 1 it is 0"
                .to_owned(),
        ));
    }
    Ok(match args.workload {
        Payment => Workload::Payment { cross_region },
        Tpca => Workload::Tpca {
            cross_region,
            theta: theta(args.theta.unwrap_or(0.5))?,
        },
        Tpcc => Workload::Tpcc(parameters(args)?),
        Append => Workload::Append(append::Settings {
            lists_per_shard: lists(args.lists.unwrap_or(32))?,
            cross_region,
            deferred: share("--deferred-percent", args.deferred_percent.unwrap_or(20.0))?,
            ..append::Settings::default()
        }),
    })
}

fn name(workload: WorkloadChoice) -> String {
    format!("{workload:?}").to_lowercase()
}

/// The exponent of a Zipf distribution over finitely many keys, of which any not negative one makes
/// sense; beyond 4 all calls are about one key.
pub fn theta(theta: f64) -> Result<f64, Fault> {
    if (0.0..=4.0).contains(&theta) {
        return Ok(theta);
    }
    Err(Fault::Other(format!("--theta {theta} is not 0 to 4")))
}

fn lists(lists: u32) -> Result<u32, Fault> {
    if (1..=LISTS_MAX).contains(&lists) {
        return Ok(lists);
    }
    Err(Fault::Other(format!(
        "--lists {lists} is not 1 to {LISTS_MAX}"
    )))
}

fn parameters(args: &SimRun) -> Result<tpcc::Parameters, Fault> {
    let mut parameters = if args.standard {
        tpcc::Parameters::standard()
    } else {
        tpcc::Parameters::as_published()
    };
    if let Some(percent) = args.remote_payments {
        parameters.remote_payments = share("--remote-payments", percent)?;
    }
    Ok(parameters)
}

/// A fault that can happen to the scenario's cluster.
fn fault(text: &str, scenario: &Scenario) -> Result<SimFault, Fault> {
    let wrong = |what: String| Fault::Other(format!("--fault '{text}': {what}"));
    let fault: SimFault = text.parse().map_err(|error| wrong(format!("{error}")))?;
    within(&fault.kind, scenario.shape()).map_err(wrong)?;
    scenario.system.survives(&fault.kind).map_err(wrong)?;
    let (_, until) = scenario.span();
    if fault.at >= until {
        return Err(wrong(format!("it begins after the run's end at {until}")));
    }
    Ok(fault)
}
