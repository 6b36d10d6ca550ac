//! What is kept in `docs/results`, walked: no claim that no data refute.

use super::*;

/// Results that are kept.
fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results")
}

fn results(experiment: Any) -> Box<dyn Results> {
    let file = directory_of(experiment, &kept()).join(DATA);
    let text = fs::read_to_string(&file).unwrap_or_else(|error| {
        panic!(
            "{}: {error}: an experiment without results has no test of its claims",
            file.display()
        )
    });
    experiment.read(&text).unwrap()
}

#[test]
fn every_claim_of_every_experiment_can_be_refuted_by_data() {
    let unmoved: Vec<String> = experiments()
        .flat_map(|one| results(one).unmoved())
        .collect();
    assert!(unmoved.is_empty(), "{unmoved:#?}");
}

#[test]
fn no_kept_data_are_implausible() {
    for experiment in experiments() {
        for claim in results(experiment).claims() {
            let name = experiment.name();
            assert_ne!(
                claim.verdict(),
                ClaimVerdict::Implausible,
                "{name}: {claim:?}"
            );
        }
    }
}

#[test]
fn kept_reports_say_what_this_code_says_of_kept_data() {
    for experiment in experiments() {
        let directory = directory_of(experiment, &kept());
        let pictures = results(experiment).pictures(&origin(&directory)).unwrap();
        let report = pictures.iter().find(|one| one.name == "report.md").unwrap();
        let now = String::from_utf8(report.bytes.clone()).unwrap();
        let then = fs::read_to_string(directory.join("report.md")).unwrap();
        if now != then && std::env::var_os("LAB_GOLDEN").is_some_and(|value| value == "write") {
            draw(&*results(experiment), &directory).unwrap();
            write_index(experiment.part(), &kept()).unwrap();
            continue;
        }
        assert!(
            now == then,
            "{}: manxdb lab figure {0} --out docs/results, or LAB_GOLDEN=write with this test",
            experiment.name()
        );
    }
}

fn claim(name: &str, says: &str) -> Claim {
    let experiment = experiments().find(|one| one.name() == name).unwrap();
    let claims = results(experiment).claims().into_iter();
    let mut found = claims.filter(|claim| claim.says.starts_with(says));
    found.next().unwrap()
}

#[test]
fn peaks_are_compared_at_the_peak_of_each() {
    let claim = claim(
        "rsi-scale",
        "RSI: 56 times the checkouts of Trad-SI over Ethernet",
    );
    assert_eq!(claim.verdict(), ClaimVerdict::Fails, "{claim:?}");
    assert!(claim.measured.contains("44.6 times"), "{claim:?}");
}

#[test]
fn what_was_calibrated_or_is_of_another_load_is_no_result() {
    for (name, says, why) in [
        ("n-clients", "A shard executes 2,000 to 2,500", "circular"),
        ("caas-fillrandom", "Kvrocks: 20 % more", "another load"),
        (
            "caas-crossdc",
            "Kvrocks over data centres: 28 %",
            "another load",
        ),
        ("rsi-scale", "RSI: 1.6 times the checkouts", "another load"),
    ] {
        let claim = claim(name, says);
        // Where the kept points do not load the servers fully, there is nothing to judge either.
        let is_open = claim.verdict() == ClaimVerdict::Open && claim.measured.contains("busy");
        if !is_open {
            assert_eq!(claim.verdict(), ClaimVerdict::NotAResult, "{claim:?}");
            assert!(claim.measured.contains(why), "{claim:?}");
        }
    }
}
