//! Deep trees get a stack of their own, also for being dropped.

use std::ops::Deref;

/// Runs `body` with at least `bytes` of stack; 0 means that any thread's will do.
pub(crate) fn with_stack<T>(bytes: usize, body: impl FnOnce() -> T) -> T {
    if bytes == 0 {
        return body();
    }
    stacker::maybe_grow(bytes, bytes, body)
}

/// A value whose drop may recurse as deeply as `stack_bytes` says.
#[derive(Debug)]
pub(crate) struct Deep<T> {
    /// Always there, until drop takes it.
    value: Option<Box<T>>,
    stack_bytes: usize,
}

impl<T> Deep<T> {
    pub(crate) fn new(value: T, stack_bytes: usize) -> Self {
        Self {
            value: Some(Box::new(value)),
            stack_bytes,
        }
    }

    /// Stack that handling the value may need.
    pub(crate) fn stack_bytes(&self) -> usize {
        self.stack_bytes
    }
}

impl<T> Deref for Deep<T> {
    type Target = T;

    #[allow(clippy::expect_used)] // `value` is only taken by drop, after which nobody derefs
    fn deref(&self) -> &T {
        self.value.as_deref().expect("there until dropped")
    }
}

impl<T> Drop for Deep<T> {
    fn drop(&mut self) {
        let value = self.value.take();
        with_stack(self.stack_bytes, || drop(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Chain {
        _next: Option<Box<Chain>>,
    }

    #[test]
    fn a_chain_longer_than_the_stack_is_dropped_in_peace() {
        let mut chain = None;
        for _ in 0..400_000 {
            chain = Some(Box::new(Chain { _next: chain }));
        }
        drop(Deep::new(chain, 512 << 20));
    }
}
