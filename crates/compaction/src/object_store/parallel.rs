//! Several requests at a time: a store that is far away answers each of them late, and as soon as
//! it would answer one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

/// Requests of one job on their way at a time, of up to [`crate::object_store::objects`]' eight MiB each.
const REQUESTS_MAX: usize = 4;

/// Does something with each of several things, a few at a time.
///
/// # Errors
/// The first one; nothing new is begun after it, and all that was begun has ended.
pub(crate) fn each<T: Sync, E: Send>(
    things: &[T],
    one: impl Fn(&T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    let work = || {
        while failed.lock().is_none() {
            let Some(thing) = things.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            if let Err(error) = one(thing) {
                failed.lock().get_or_insert(error);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..things.len().min(REQUESTS_MAX) {
            let helper = thread::Builder::new().name("parallel".to_owned());
            if helper.spawn_scoped(scope, work).is_err() {
                break; // this thread does the rest
            }
        }
        work();
    });
    failed.into_inner().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn everything_is_done_once() {
        for count in [0, 1, 2, 3, 100] {
            let things: Vec<usize> = (0..count).collect();
            let done = Mutex::new(Vec::new());
            let all: Result<(), ()> = each(&things, |thing| {
                done.lock().push(*thing);
                Ok(())
            });
            let mut done = done.into_inner();
            done.sort_unstable();
            assert_eq!((all, done), (Ok(()), things));
        }
    }

    #[test]
    fn several_are_on_their_way_at_a_time() {
        let all_there = Barrier::new(REQUESTS_MAX);
        let done: Result<(), ()> = each(&[(); REQUESTS_MAX], |()| {
            all_there.wait(); // for ever, if they came one after the other
            Ok(())
        });
        assert_eq!(done, Ok(()));
    }

    #[test]
    fn after_an_error_nothing_new_is_begun() {
        let begun = AtomicUsize::new(0);
        let failed = each(&[(); 1_000], |()| {
            begun.fetch_add(1, Ordering::Relaxed);
            Err("away")
        });
        assert_eq!(failed, Err("away"));
        assert!(begun.into_inner() <= REQUESTS_MAX);
    }
}
