//! The procedure, and what its values say.

use std::ops::Bound;

use manxdb_checker::append::Operation as Observed;
use manxdb_storage::KeyRange;
use manxdb_txn::procedure::{
    Placement, Procedure, ProcedureError, ProcedurePiece, RowView, Slot, Touch, Values,
};

use super::args::{Args, Form, Kind, List, OPERATIONS_MAX, Operation};
use crate::codec::{Cursor, malformed, strange_row};

/// Name of the procedure.
pub const NAME: &str = "append";

/// Reads lists and appends to lists.
#[derive(Debug, Default, Clone, Copy)]
pub struct Append;

/// One of the pieces a transaction is cut into.
///
/// Its part number, also that of its value, is twice the index of the first operation on its
/// partition, and one more if it is the deferred half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    first: usize,
    is_deferred: bool,
}

impl Part {
    fn of(operation: Operation, args: Args<'_>) -> Self {
        let is_same = |other: Operation| other.list.partition == operation.list.partition;
        Self {
            first: args.operations().position(is_same).unwrap_or_default(),
            is_deferred: args.form == Form::Deferred && !operation.is_read(),
        }
    }

    fn of_number(number: u32) -> Option<Self> {
        let first = usize::try_from(number / 2).ok()?;
        (first < OPERATIONS_MAX).then_some(Self {
            first,
            is_deferred: number % 2 == 1,
        })
    }

    #[allow(clippy::cast_possible_truncation)] // a transaction has at most 64 operations
    fn number(self) -> u32 {
        2 * self.first as u32 + u32::from(self.is_deferred)
    }

    fn slot(self) -> Slot {
        Slot(self.number())
    }
}

/// The operations of one part, in order.
fn operations_of(part: u32, args: Args<'_>) -> Option<impl Iterator<Item = Operation> + '_> {
    let part = Part::of_number(part)?;
    let partition = args.get(part.first)?.list.partition;
    let is_of_part = move |operation: &Operation| {
        let is_deferred = args.form == Form::Deferred && !operation.is_read();
        operation.list.partition == partition && is_deferred == part.is_deferred
    };
    Some(args.operations().filter(is_of_part))
}

impl Procedure for Append {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(
        &self,
        args: &[u8],
        placement: &dyn Placement,
    ) -> Result<Vec<ProcedurePiece>, ProcedureError> {
        let args = Args::parse(args)?;
        let mut pieces: Vec<ProcedurePiece> = Vec::new();
        let mut found = Vec::new();
        for operation in args.operations() {
            let part = Part::of(operation, args);
            let mut known = pieces.iter_mut();
            if let Some(piece) = known.find(|piece| piece.part == part.number()) {
                piece.steps += 1;
                continue;
            }
            if !part.is_deferred {
                found.push(part.slot());
            }
            pieces.push(ProcedurePiece {
                part: part.number(),
                shard: placement.shard_of(&operation.list.key()),
                needs: Vec::new(),
                gives: vec![part.slot()],
                steps: 1,
            });
        }
        for piece in &mut pieces {
            if piece.part % 2 == 1 {
                piece.needs.clone_from(&found);
            }
        }
        Ok(pieces)
    }

    fn run(
        &self,
        piece: &ProcedurePiece,
        args: &[u8],
        inputs: &Values,
        rows: &mut dyn RowView,
    ) -> Result<Values, ProcedureError> {
        let args = Args::parse(args)?;
        let operations = operations_of(piece.part, args).ok_or_else(|| malformed(NAME))?;
        let mut found = Vec::new();
        for operation in operations {
            match operation.kind {
                Kind::Read => {
                    let list = elements(&operation.list.key(), rows)?;
                    let length = u32::try_from(list.len()).unwrap_or(u32::MAX);
                    found.extend_from_slice(&length.to_le_bytes());
                    found.extend_from_slice(&list);
                }
                Kind::Append(element) => append(operation.list, element, rows, &mut found)?,
                Kind::AppendChosen { element, choices } => {
                    let list = chosen(operation.list, choices, inputs);
                    append(list, element, rows, &mut found)?;
                }
            }
        }
        Ok(Values::from([(Slot(piece.part), found)]))
    }

    fn touches(&self, piece: &ProcedurePiece, args: &[u8]) -> Vec<Touch> {
        let Ok(args) = Args::parse(args) else {
            return vec![Touch::everything()];
        };
        let operations = operations_of(piece.part, args).into_iter().flatten();
        operations.map(touch).collect()
    }

    /// Appends to lists that the arguments name, whose elements the client is not shown.
    fn predetermined(&self, piece: &ProcedurePiece, args: &[u8]) -> Option<Values> {
        let args = Args::parse(args).ok()?;
        let mut found = Vec::new();
        for operation in operations_of(piece.part, args)? {
            match operation.kind {
                Kind::Append(_) => found.extend_from_slice(&operation.list.row.to_le_bytes()),
                Kind::Read | Kind::AppendChosen { .. } => return None,
            }
        }
        Some(Values::from([(Slot(piece.part), found)]))
    }
}

fn touch(operation: Operation) -> Touch {
    let key = operation.list.key();
    match operation.kind {
        Kind::Read => Touch::read(&key),
        Kind::Append(_) => Touch::write(&key),
        Kind::AppendChosen { choices, .. } => {
            let mut last = operation.list;
            last.row += u32::from(choices) - 1;
            Touch {
                range: KeyRange {
                    start: Bound::Included(key.to_vec()),
                    end: Bound::Included(last.key().to_vec()),
                },
                writes: true,
            }
        }
    }
}

/// The stored bytes of a list.
fn elements(key: &[u8], rows: &mut dyn RowView) -> Result<Vec<u8>, ProcedureError> {
    let list = rows.get(key)?.unwrap_or_default();
    if list.len().is_multiple_of(8) {
        return Ok(list);
    }
    Err(strange_row(key))
}

/// Appends, and says to which row.
fn append(
    list: List,
    element: u64,
    rows: &mut dyn RowView,
    found: &mut Vec<u8>,
) -> Result<(), ProcedureError> {
    let key = list.key();
    let mut elements = rows.get_for_update(&key)?.unwrap_or_default();
    elements.extend_from_slice(&element.to_le_bytes());
    rows.write(key.to_vec(), Some(elements))?;
    found.extend_from_slice(&list.row.to_le_bytes());
    Ok(())
}

/// One of `choices` lists, by the values that came in.
fn chosen(mut list: List, choices: u8, inputs: &Values) -> List {
    let bytes = inputs.values().flatten();
    let sum = bytes.fold(0_u32, |sum, byte| sum.wrapping_add(u32::from(*byte)));
    list.row += sum % u32::from(choices.max(1));
    list
}

/// What a transaction did, for the checker: its arguments, and the values of its call.
///
/// # Errors
/// [`ProcedureError::Arguments`] when the two do not belong together.
pub fn observe(args: &[u8], values: &Values) -> Result<Vec<Observed>, ProcedureError> {
    let args = Args::parse(args)?;
    let read = || {
        let mut observed = Vec::new();
        // What is deferred comes last.
        for deferred in [false, true] {
            let mut parts = Vec::new();
            for operation in args.operations() {
                let part = Part::of(operation, args);
                if part.is_deferred == deferred && !parts.contains(&part) {
                    parts.push(part);
                    observe_part(part, args, values, &mut observed)?;
                }
            }
        }
        Some(observed)
    };
    read().ok_or_else(|| malformed(NAME))
}

fn observe_part(
    part: Part,
    args: Args<'_>,
    values: &Values,
    observed: &mut Vec<Observed>,
) -> Option<()> {
    let mut found = Cursor::new(values.get(&part.slot())?);
    for operation in operations_of(part.number(), args)? {
        let mut list = operation.list;
        match operation.kind {
            Kind::Read => {
                let length = usize::try_from(found.u32()?).ok()?;
                let (bytes, rest) = found.rest().split_at_checked(length)?;
                found = Cursor::new(rest);
                let key = list.name();
                let list = parse_elements(bytes)?;
                observed.push(Observed::Read { key, list });
            }
            Kind::Append(element) | Kind::AppendChosen { element, .. } => {
                list.row = found.u32()?;
                let key = Some(list.name());
                observed.push(Observed::Append { key, element });
            }
        }
    }
    found.is_at_end().then_some(())
}

fn parse_elements(bytes: &[u8]) -> Option<Vec<u64>> {
    let (elements, rest) = bytes.as_chunks();
    let numbers = elements.iter().copied().map(u64::from_le_bytes);
    rest.is_empty().then(|| numbers.collect())
}

/// What a transaction may have done about whose end nothing is known.
///
/// # Errors
/// [`ProcedureError::Arguments`].
pub fn sent(args: &[u8]) -> Result<Vec<Observed>, ProcedureError> {
    let args = Args::parse(args)?;
    let observed = args.operations().filter_map(|operation| {
        let key = Some(operation.list.name());
        match operation.kind {
            Kind::Read => None,
            Kind::Append(element) => Some(Observed::Append { key, element }),
            Kind::AppendChosen { element, .. } => Some(Observed::Append { key: None, element }),
        }
    });
    Ok(observed.collect())
}

/// The list in a row, with its name for the checker; `None` for rows of other workloads.
#[must_use]
pub fn list_of(key: &[u8], value: &[u8]) -> Option<(u64, Vec<u64>)> {
    Some((List::of_key(key)?.name(), parse_elements(value)?))
}
