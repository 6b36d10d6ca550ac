//! Arguments of a list-append transaction.

use manxdb_txn::procedure::ProcedureError;

use super::NAME;
use crate::Partition;
use crate::codec::{Cursor, malformed};

/// Most operations of one transaction.
pub(super) const OPERATIONS_MAX: usize = 64;

/// A list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct List {
    /// Where it lives.
    pub partition: Partition,
    /// Its number there.
    pub row: u32,
}

impl List {
    /// The checker's name of it.
    #[must_use]
    pub fn name(self) -> u64 {
        (u64::from(self.partition.0) << 32) | u64::from(self.row)
    }

    pub(super) fn key(self) -> [u8; 9] {
        let mut key = [TABLE; 9];
        key[..4].copy_from_slice(&self.partition.prefix());
        key[5..].copy_from_slice(&self.row.to_be_bytes());
        key
    }

    pub(super) fn of_key(key: &[u8]) -> Option<Self> {
        let key: &[u8; 9] = key.try_into().ok()?;
        let row = key.last_chunk::<4>()?;
        (key[4] == TABLE).then_some(Self {
            partition: Partition::of(key),
            row: u32::from_be_bytes(*row),
        })
    }
}

const TABLE: u8 = 0x10;

/// How a transaction is cut into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One piece a partition.
    Together,
    /// Appending pieces wait for the values of all reading ones.
    Deferred,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads the list.
    Read,
    /// Appends this element to it.
    Append(u64),
    /// Appends this element to it or to one of the `choices` − 1 lists after it (at least 1),
    /// by what the pieces it waits for found; if there are none, to it.
    AppendChosen {
        /// What is appended.
        element: u64,
        /// Among how many lists.
        choices: u8,
    },
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// On what.
    pub list: List,
    /// What.
    pub kind: Kind,
}

impl Operation {
    pub(super) fn is_read(self) -> bool {
        self.kind == Kind::Read
    }
}

/// Bytes of an operation: kind or choices, partition, row, element.
const OPERATION_BYTES: usize = 17;
const READ: u8 = 0;
const FORM_TOGETHER: u8 = 0;
const FORM_DEFERRED: u8 = 1;

/// The arguments of a transaction; at most 64 operations.
#[must_use]
pub fn encode(form: Form, operations: &[Operation]) -> Vec<u8> {
    debug_assert!(operations.len() <= OPERATIONS_MAX);
    let mut out = Vec::with_capacity(1 + operations.len() * OPERATION_BYTES);
    out.push(match form {
        Form::Together => FORM_TOGETHER,
        Form::Deferred => FORM_DEFERRED,
    });
    for operation in operations {
        let (tag, element) = match operation.kind {
            Kind::Read => (READ, 0),
            Kind::Append(element) => (1, element),
            Kind::AppendChosen { element, choices } => (choices.max(2), element),
        };
        out.push(tag);
        out.extend_from_slice(&operation.list.partition.0.to_le_bytes());
        out.extend_from_slice(&operation.list.row.to_le_bytes());
        out.extend_from_slice(&element.to_le_bytes());
    }
    out
}

/// Arguments that were checked; operations are read from the bytes as they are asked for.
#[derive(Clone, Copy)]
pub(super) struct Args<'a> {
    pub(super) form: Form,
    operations: &'a [[u8; OPERATION_BYTES]],
}

impl<'a> Args<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, ProcedureError> {
        Self::read(bytes).ok_or_else(|| malformed(NAME))
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (form, rest) = bytes.split_first()?;
        let (operations, rest) = rest.as_chunks();
        let form = match *form {
            FORM_TOGETHER => Form::Together,
            FORM_DEFERRED => Form::Deferred,
            _ => return None,
        };
        let args = Self { form, operations };
        let rows_exist = args.operations().all(|operation| match operation.kind {
            Kind::AppendChosen { choices, .. } => {
                operation.list.row.checked_add(choices.into()).is_some()
            }
            _ => true,
        });
        (rest.is_empty() && operations.len() <= OPERATIONS_MAX && rows_exist).then_some(args)
    }

    pub(super) fn operations(self) -> impl Iterator<Item = Operation> + 'a {
        self.operations.iter().map(operation)
    }

    pub(super) fn get(self, index: usize) -> Option<Operation> {
        self.operations.get(index).map(operation)
    }
}

fn operation(bytes: &[u8; OPERATION_BYTES]) -> Operation {
    let mut input = Cursor::new(bytes);
    let tag = input.u8().unwrap_or_default();
    let partition = Partition(input.u32().unwrap_or_default());
    let row = input.u32().unwrap_or_default();
    let element = input.u64().unwrap_or_default();
    let kind = match tag {
        READ => Kind::Read,
        1 => Kind::Append(element),
        choices => Kind::AppendChosen { element, choices },
    };
    let list = List { partition, row };
    Operation { list, kind }
}

/// The transaction of [`encode`].
///
/// # Errors
/// [`ProcedureError::Arguments`] when the bytes are not the arguments of one.
pub fn decode(args: &[u8]) -> Result<(Form, Vec<Operation>), ProcedureError> {
    let args = Args::parse(args)?;
    Ok((args.form, args.operations().collect()))
}
