//! `manxdb lab`: runs experiments on the machine's cores and writes what comes of them.

mod machine;
mod pool;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use manxdb_lab::data::{Data, Record};
use manxdb_lab::experiment::{ALL, Claim, Experiment, Scale, Verdict, index};
use manxdb_lab::trial::Trial;

use crate::cli::{EVERY, LabCommand, LabRun};
use crate::fault::Fault;

const DATA: &str = "data.json";
const RUN: &str = "run.json";
/// Leads to all results of a directory.
const INDEX: &str = "README.md";

/// Runs one of the lab's commands.
pub fn run(command: &LabCommand) -> Result<ExitCode, Fault> {
    match command {
        LabCommand::List => list(),
        LabCommand::Run(args) => {
            for experiment in chosen(&args.experiment) {
                run_one(experiment, args)?;
                write_index(&args.out)?;
            }
        }
        LabCommand::Figure { experiment, out } => {
            for experiment in chosen(experiment) {
                draw_again(experiment, out)?;
            }
            write_index(out)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The command line allows no other names.
fn chosen(name: &str) -> impl Iterator<Item = &'static Experiment> {
    ALL.iter()
        .filter(move |experiment| name == EVERY || experiment.name == name)
}

fn list() {
    for experiment in &ALL {
        println!("{:<12} {}", experiment.name, experiment.about);
        let sizes = Scale::ALL.map(|scale| {
            let trials = experiment.plan(scale, 1).len();
            format!("{} {trials}", scale.name())
        });
        println!("{:<12} trials: {}\n", "", sizes.join(", "));
    }
    println!("manxdb lab run EXPERIMENT [--scale laptop] [--out results]");
}

/// The trials that were asked for.
fn plan(experiment: &Experiment, scale: Scale, args: &LabRun) -> Result<Vec<Trial>, Fault> {
    let mut trials = experiment.plan(scale, args.seed);
    if let Some(seeds) = args.seeds {
        trials.retain(|trial| trial.seed.wrapping_sub(args.seed) < seeds);
    }
    if !args.at.is_empty() {
        let wanted = |trial: &Trial| {
            args.at
                .iter()
                .any(|at| (at - experiment.at(trial)).abs() < 1e-9)
        };
        let mut known: Vec<String> = trials
            .iter()
            .map(|trial| experiment.at(trial).to_string())
            .collect();
        known.dedup();
        trials.retain(wanted);
        if trials.is_empty() {
            return Err(Fault::Other(format!(
                "{} has no point at {:?}; {} goes over {}",
                experiment.name,
                args.at,
                experiment.swept,
                known.join(", ")
            )));
        }
    }
    Ok(trials)
}

fn run_one(experiment: &'static Experiment, args: &LabRun) -> Result<(), Fault> {
    // The command line allows no other names.
    let scale = Scale::named(&args.scale).unwrap_or(Scale::Laptop);
    let trials = plan(experiment, scale, args)?;
    let directory = args.out.join(experiment.name);
    let threads = args
        .threads
        .map_or_else(machine::cores, usize::from)
        .min(trials.len());
    // Before hours of work, not after them.
    make_directory(&directory)?;
    let started = Instant::now();
    write(
        &directory,
        RUN,
        machine::run_file(args, threads, None).as_bytes(),
    )?;
    println!(
        "{}: {} trials at scale {}, {threads} at a time",
        experiment.name,
        trials.len(),
        scale.name()
    );
    let outcomes = pool::run(experiment, &trials, threads)?;
    let records = trials.into_iter().zip(outcomes);
    let data = Data {
        experiment: experiment.name.into(),
        scale,
        seed: args.seed,
        version: env!("CARGO_PKG_VERSION").into(),
        records: records
            .map(|(trial, outcome)| Record { trial, outcome })
            .collect(),
    };
    write(&directory, DATA, data.to_json().as_bytes())?;
    write(&directory, "data.csv", data.to_csv().as_bytes())?;
    draw(experiment, &data, &directory)?;
    let events: u64 = data
        .records
        .iter()
        .map(|record| record.outcome.events)
        .sum();
    let took = machine::Took {
        wall: started.elapsed(),
        events,
    };
    write(
        &directory,
        RUN,
        machine::run_file(args, threads, Some(&took)).as_bytes(),
    )?;
    println!(
        "{}: {took}; results in {}\n",
        experiment.name,
        directory.display()
    );
    Ok(())
}

/// The page over all results that are there.
fn write_index(out: &Path) -> Result<(), Fault> {
    let known = ALL.iter().filter_map(|experiment| {
        let file = out.join(experiment.name).join(DATA);
        // What cannot be read is told when that experiment is asked for.
        let data = Data::from_json(&fs::read_to_string(file).ok()?).ok()?;
        Some((experiment, data))
    });
    let known: Vec<_> = known.collect();
    write(out, INDEX, index(&known).as_bytes())
}

fn draw_again(experiment: &Experiment, out: &Path) -> Result<(), Fault> {
    let directory = out.join(experiment.name);
    let file = directory.join(DATA);
    let text = fs::read_to_string(&file).map_err(|error| {
        let context = format!("reading {} (run the experiment first)", file.display());
        Fault::io(context, error)
    })?;
    let data = Data::from_json(&text)
        .map_err(|error| Fault::Other(format!("{}: {error}", file.display())))?;
    if data.experiment != experiment.name {
        return Err(Fault::Other(format!(
            "{} has data of {}",
            file.display(),
            data.experiment
        )));
    }
    draw(experiment, &data, &directory)?;
    println!(
        "{}: figure and report in {}",
        experiment.name,
        directory.display()
    );
    Ok(())
}

/// Figure and report of data, and what became of the claims.
fn draw(experiment: &Experiment, data: &Data, directory: &Path) -> Result<(), Fault> {
    let pictures = experiment.pictures(data);
    let pictures =
        pictures.map_err(|error| Fault::Other(format!("{}: {error}", experiment.name)))?;
    for picture in pictures {
        write(directory, picture.name, &picture.bytes)?;
    }
    for claim in experiment.claims(data) {
        say(&claim);
    }
    Ok(())
}

fn say(claim: &Claim) {
    let verdict = match claim.verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "FAILS",
        Verdict::Open => "open",
    };
    println!("  {verdict:<6} {}\n         {}", claim.says, claim.measured);
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
