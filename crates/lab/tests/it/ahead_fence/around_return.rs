//! What happens while a region comes back, or soon behind that: its return is not heard of, another
//! region is silent too, managers lose their memory.

use manxdb_core::Random;
use manxdb_dast::Level;
use manxdb_dast::mutants::Mutant;
use manxdb_test_harness::seeds;

use super::{LEVELS, run_lossy, survives};

/// Region 0 is cut off while its return is agreed on, and fenced again by those who know of that.
/// Before it is heard the managers that have told it of the return fail, so that it is told anew.
#[test]
fn a_region_that_has_not_heard_of_its_return_and_is_fenced_again_hears_of_both() {
    for step in 0..seeds(3) {
        let at = 1_940 + step % 5 * 40;
        let faults = format!(
            "600ms+600ms part r0 *; {at}ms+2500ms part r0 *; 4s+300ms wipe n12; 4s+300ms wipe n15"
        );
        survives(step, LEVELS[usize::try_from(step % 3).unwrap()], &faults);
    }
}

/// It is heard again before it hears of the fence, and learns how far the others are: that is not how
/// far they have run its own orders.
#[test]
fn a_region_that_does_not_know_of_its_fence_forgets_no_orders() {
    let faults = "600ms+600ms part r0 *; 4542ms+300ms wipe n12; 2319ms+2500ms part r0 *; \
                  3496ms+300ms wipe n15; 2214ms+900ms cut r0 *";
    survives(127, Level::Session, faults);
}

/// Region 2 is silent before what was moved for the return of region 0 has run.
const AMID_RETURN: &str = "600ms+600ms part r0 *; 2272ms+600ms cut r2 *; 2137ms+600ms part r1 r2";

#[test]
fn a_fence_amid_another_regions_return_is_found() {
    let mutant = Mutant::FenceAmidReturn;
    let ran = run_lossy(42, Level::Serializable, AMID_RETURN, Some(mutant));
    assert!(ran.is_err_and(|wrong| wrong.contains("broken at level Serializable")));
    survives(42, Level::Serializable, AMID_RETURN);
}

/// It is not fenced, whether it has heard of that return or not, and all go on once it is heard.
#[test]
fn a_region_that_is_cut_off_amid_anothers_return_is_waited_for() {
    for step in 0..seeds(3) {
        let at = 1_940 + step % 5 * 40;
        let faults = format!(
            "600ms+600ms part r0 *; {at}ms+1500ms part r2 *; 3s+300ms wipe n9; 3s+300ms wipe n12"
        );
        survives(step, LEVELS[usize::try_from(step % 3).unwrap()], &faults);
    }
}

/// Cuts and lost memories at any time around the return of region 0, which is agreed on about two
/// seconds into the run.
fn around_the_return(seed: u64) -> String {
    let mut random = Random::stream(seed, &[77]);
    let mut faults = vec!["600ms+600ms part r0 *".to_owned()];
    for _ in 0..2 + random.below(3) {
        let at = 1_700 + random.below(3_000);
        let cut_millis =
            [60, 200, 600, 900, 1_500, 2_500][usize::try_from(random.below(6)).unwrap()];
        let (what, lasts) = match random.below(8) {
            0 => (format!("wipe n{}", 9 + random.below(9)), 300),
            1 => (format!("wipe n{}", 9 + 3 * random.below(3)), 300),
            2 => (format!("part r{} r2", random.below(2)), cut_millis),
            3 => (format!("cut r{} *", random.below(3)), cut_millis),
            4 => (format!("cut * r{}", random.below(3)), cut_millis),
            _ => (format!("part r{} *", random.below(3)), cut_millis),
        };
        faults.push(format!("{at}ms+{lasts}ms {what}"));
    }
    faults.join("; ")
}

#[test]
fn whatever_is_cut_around_a_return_is_survived() {
    for seed in 0..seeds(6) {
        let level = LEVELS[usize::try_from(seed % 3).unwrap()];
        survives(seed, level, &around_the_return(seed));
    }
}
