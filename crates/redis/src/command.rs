//! A command: its name and arguments as they came.

/// Arguments in one piece of memory, so that a connection decodes into the same one again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Command {
    /// A command of these words.
    pub fn of<T: AsRef<[u8]>>(words: &[T]) -> Self {
        let mut command = Self::default();
        for word in words {
            command.push(word.as_ref());
        }
        command
    }

    /// Adds an argument; the first one is the name.
    pub fn push(&mut self, argument: &[u8]) {
        self.bytes.extend_from_slice(argument);
        self.ends.push(self.bytes.len());
    }

    /// Removes all arguments; memory of a large command is given back.
    pub fn clear(&mut self) {
        const KEPT_BYTES: usize = 64 << 10;
        self.bytes.clear();
        self.ends.clear();
        if self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
    }

    /// Number of arguments, the name included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is not even a name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Argument `place`, or nothing behind the last: arity is checked before commands run.
    #[must_use]
    pub fn arg(&self, place: usize) -> &[u8] {
        let Some(&end) = self.ends.get(place) else {
            return &[];
        };
        let start = match place {
            0 => 0,
            _ => self.ends[place - 1],
        };
        &self.bytes[start..end]
    }

    /// The name, as written.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.arg(0)
    }

    /// Arguments from `place` on.
    pub fn args_from(&self, place: usize) -> impl Iterator<Item = &[u8]> {
        (place..self.len()).map(|place| self.arg(place))
    }

    /// Whether argument `place` is `word`, which is in capitals, in any case.
    #[must_use]
    pub fn is_word(&self, place: usize, word: &str) -> bool {
        place < self.len() && self.arg(place).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<usize>()
    }
}
