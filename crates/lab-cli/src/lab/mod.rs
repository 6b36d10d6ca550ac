//! `manxdb lab`: runs experiments on the machine's cores and writes what comes of them.

mod argus;
mod columns;
mod curp;
mod fill;
mod lobsters;
mod machine;
mod olap;
mod pool;
mod rack;
mod recovery;
mod redis;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use manxdb_lab::experiment::{
    Claim, ClaimVerdict, Experiment, Origin, Plan, Results, SIMULATED, Scale, index,
};

use crate::cli::{EVERY, LabCommand, LabRun};
use crate::fault::Fault;

const DATA: &str = "data.json";
const RUN: &str = "run.json";
/// Leads to all results of a part.
const INDEX: &str = "README.md";

/// An experiment of any kind.
type Any = &'static dyn Experiment;

/// All experiments, in the order of the list: those that are simulated, then those that need
/// processes, files or clocks.
pub fn experiments() -> impl Iterator<Item = Any> {
    let of_rack = rack::ALL.into_iter().chain(recovery::ALL).chain(olap::ALL);
    let of_sites = lobsters::ALL.into_iter().chain(redis::ALL);
    let of_curp = curp::ALL.into_iter().chain(argus::ALL);
    let in_processes = fill::ALL
        .into_iter()
        .chain(of_rack)
        .chain(of_sites)
        .chain(of_curp);
    SIMULATED.into_iter().chain(in_processes)
}

/// What they are about, each once.
pub fn parts() -> Vec<&'static str> {
    let mut parts = Vec::new();
    for part in experiments().map(Experiment::part) {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

/// Runs one of the lab's commands.
pub fn run(command: &LabCommand) -> Result<ExitCode, Fault> {
    match command {
        LabCommand::List => list(),
        LabCommand::Run(args) => {
            for experiment in chosen(&args.experiment) {
                run_one(experiment, args)?;
                write_index(experiment.part(), &args.out)?;
            }
        }
        LabCommand::Figure { experiment, out } => {
            for experiment in chosen(experiment) {
                draw_again(experiment, out)?;
                write_index(experiment.part(), out)?;
            }
        }
        LabCommand::Trial { kind } => {
            let answered = if kind == curp::run::KIND {
                curp::namespace::answer(curp::run::here)
            } else {
                curp::namespace::answer(argus::run::here)
            };
            answered.map_err(Fault::Other)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The command line allows no other names.
fn chosen(name: &str) -> impl Iterator<Item = Any> {
    experiments().filter(move |one| name == EVERY || one.name() == name || one.part() == name)
}

fn directory_of(experiment: Any, out: &Path) -> PathBuf {
    out.join(experiment.part()).join(experiment.name())
}

fn list() {
    for experiment in experiments() {
        println!("{:<15} {}", experiment.name(), experiment.about());
        let sizes = Scale::ALL.map(|scale| {
            let trials = experiment.plan(scale, 1).points().len();
            format!("{} {trials}", scale.name())
        });
        let part = experiment.part();
        println!("{:<15} part {part}; trials: {}\n", "", sizes.join(", "));
    }
    println!("manxdb lab run EXPERIMENT|PART [--scale laptop] [--out results]");
}

/// The trials that were asked for.
fn plan(experiment: Any, scale: Scale, args: &LabRun) -> Result<Box<dyn Plan>, Fault> {
    let mut plan = experiment.plan(scale, args.seed);
    let known = plan.points();
    if let Some(seeds) = args.seeds {
        plan.repeat(seeds);
    }
    if args.regions.is_some() || args.shards.is_some() {
        let name = experiment.name();
        plan.reshape(args.regions, args.shards)
            .map_err(|error| Fault::Other(format!("{name}: {error}")))?;
    }
    if !args.at.is_empty() {
        plan.keep(&|point| args.at.iter().any(|at| (at - point.at).abs() < 1e-9));
    }
    if plan.points().is_empty() {
        let mut known: Vec<String> = known.iter().map(|point| point.at.to_string()).collect();
        known.dedup();
        return Err(Fault::Other(format!(
            "{} has no point at {:?}; {} goes over {}",
            experiment.name(),
            args.at,
            experiment.swept(),
            known.join(", ")
        )));
    }
    Ok(plan)
}

fn run_one(experiment: Any, args: &LabRun) -> Result<(), Fault> {
    // The command line allows no other names.
    let scale = Scale::named(&args.scale).unwrap_or(Scale::Laptop);
    let name = experiment.name();
    let mut plan = plan(experiment, scale, args)?;
    let trials = plan.points().len();
    let directory = directory_of(experiment, &args.out);
    let resumed = if args.resume {
        resume(&mut *plan, &directory)?
    } else {
        machine::Resumed::default()
    };
    let threads = threads(experiment, args).min(trials);
    // Before hours of work, not after them.
    make_directory(&directory)?;
    let started = Instant::now();
    let began = machine::Began::now();
    let run_file = |took| machine::run_file(args, (threads, &resumed, &began), took);
    write(&directory, RUN, run_file(None).as_bytes())?;
    println!(
        "{name}: {trials} trials at scale {}, {threads} at a time, {} of them done before",
        scale.name(),
        resumed.records
    );
    // What has run is kept whatever becomes of the rest: `--resume` goes on from there.
    let keep = || keep(&*plan.results(), &directory);
    pool::run(&*plan, threads, &keep).map_err(|error| Fault::Other(format!("{name}: {error}")))?;
    let results = plan.results();
    keep()?;
    let took = machine::Took {
        wall: started.elapsed(),
        events: results.events(),
    };
    write(&directory, RUN, run_file(Some(&took)).as_bytes())?;
    draw(&*results, &directory)?;
    println!("{name}: {took}; results in {}\n", directory.display());
    Ok(())
}

/// Takes over what an earlier run in a directory has measured.
fn resume(plan: &mut dyn Plan, directory: &Path) -> Result<machine::Resumed, Fault> {
    let file = directory.join(DATA);
    let Ok(text) = fs::read_to_string(&file) else {
        return Ok(machine::Resumed::default()); // nothing was kept: all of it is run
    };
    let records = plan
        .resume(&text)
        .map_err(|error| Fault::Other(format!("{}: {error}", file.display())))?;
    let earlier = origin(directory);
    Ok(machine::Resumed {
        records,
        commit: earlier.commit().map(str::to_owned),
        optimized: earlier.optimized(),
    })
}

/// Of which sources, machine and load the results in a directory are.
fn origin(directory: &Path) -> Origin {
    Origin::of(&fs::read_to_string(directory.join(RUN)).unwrap_or_default())
}

/// Writes what has been measured; a file is never seen half written.
fn keep(results: &dyn Results, directory: &Path) -> Result<(), Fault> {
    for file in results.files() {
        let half = format!("{}.part", file.name);
        write(directory, &half, &file.bytes)?;
        let (from, to) = (directory.join(half), directory.join(file.name));
        fs::rename(&from, &to)
            .map_err(|error| Fault::io(format!("renaming {}", from.display()), error))?;
    }
    Ok(())
}

/// What is measured by a clock runs alone.
fn threads(experiment: Any, args: &LabRun) -> usize {
    if !experiment.is_simulated() {
        return 1;
    }
    args.threads.map_or_else(machine::cores, usize::from)
}

/// The page over all results of a part that are there.
fn write_index(part: &str, out: &Path) -> Result<(), Fault> {
    let of_part = experiments().filter(|experiment| experiment.part() == part);
    let known = of_part.filter_map(|experiment| {
        let file = directory_of(experiment, out).join(DATA);
        // What cannot be read is told when that experiment is asked for.
        experiment.read(&fs::read_to_string(file).ok()?).ok()
    });
    let known: Vec<_> = known.collect();
    write(&out.join(part), INDEX, index(&known).as_bytes())
}

fn draw_again(experiment: Any, out: &Path) -> Result<(), Fault> {
    let directory = directory_of(experiment, out);
    let file = directory.join(DATA);
    let text = fs::read_to_string(&file).map_err(|error| {
        let context = format!("reading {} (run the experiment first)", file.display());
        Fault::io(context, error)
    })?;
    let results = experiment
        .read(&text)
        .map_err(|error| Fault::Other(format!("{}: {error}", file.display())))?;
    draw(&*results, &directory)?;
    println!(
        "{}: figure and report in {}",
        experiment.name(),
        directory.display()
    );
    Ok(())
}

/// Figure and report of results, and what became of the claims.
fn draw(results: &dyn Results, directory: &Path) -> Result<(), Fault> {
    let pictures = results.pictures(&origin(directory));
    let name = results.experiment().name();
    let pictures = pictures.map_err(|error| Fault::Other(format!("{name}: {error}")))?;
    for picture in pictures {
        write(directory, picture.name, &picture.bytes)?;
    }
    for claim in results.claims() {
        say(&claim);
    }
    Ok(())
}

fn say(claim: &Claim) {
    let verdict = match claim.verdict() {
        ClaimVerdict::Holds => "holds",
        ClaimVerdict::Fails => "FAILS",
        ClaimVerdict::Open => "open",
        ClaimVerdict::Implausible => "WRONG DATA",
        ClaimVerdict::NotAResult => "no result",
    };
    println!(
        "  {verdict:<10} {}\n             {}",
        claim.says, claim.measured
    );
}

fn make_directory(directory: &Path) -> Result<(), Fault> {
    fs::create_dir_all(directory).map_err(|error| {
        let context = format!(
            "making {} (choose another place with --out)",
            directory.display()
        );
        Fault::io(context, error)
    })
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), Fault> {
    let file: PathBuf = directory.join(name);
    fs::write(&file, bytes).map_err(|error| {
        let context = format!(
            "writing {} (choose another place with --out)",
            file.display()
        );
        Fault::io(context, error)
    })
}

#[cfg(test)]
mod tests;
