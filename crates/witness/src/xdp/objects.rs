//! The compiled objects: reading their programs and maps, and what the kernel refuses of them.

use std::io;

use aya::maps::{Array, Map, MapData, MapError};
use aya::programs::{ProgramError, Xdp};
use aya::sys::SyscallError;
use aya::{Ebpf, EbpfError, EbpfLoader};

use crate::error::{CarrierError, with_causes};

pub(super) fn loader() -> EbpfLoader<'static> {
    let mut loader = EbpfLoader::new();
    // Nothing is relocated by the kernel's types, and reading them takes long.
    loader.btf(None);
    loader
}

pub(super) fn program<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp, CarrierError> {
    let program = ebpf.program_mut(name).ok_or_else(|| missing("a program"));
    program?.try_into().map_err(refused_program)
}

pub(super) fn missing(what: &'static str) -> CarrierError {
    let why = format!("the object has no {what}: it is of another build");
    CarrierError::Refused {
        what: "read the program",
        why,
    }
}

/// A map of the object, whose values have to be as long as we think.
pub(super) fn take<V: aya::Pod>(
    ebpf: &mut Ebpf,
    name: &'static str,
) -> Result<Array<MapData, V>, CarrierError> {
    let map: Map = ebpf.take_map(name).ok_or_else(|| missing(name))?;
    Array::try_from(map).map_err(refused_map)
}

/// The error number of the kernel, if it was the kernel.
pub(super) fn system_error(error: &ProgramError) -> Option<i32> {
    match error {
        ProgramError::SyscallError(SyscallError { io_error, .. })
        | ProgramError::LoadError { io_error, .. } => io_error.raw_os_error(),
        _ => None,
    }
}

/// The kernel refuses, and does not say which right it misses.
fn no_right() -> CarrierError {
    CarrierError::Right {
        missing: vec!["a right that the kernel asks for (CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN)"],
    }
}

pub(super) fn refused_program(error: ProgramError) -> CarrierError {
    match system_error(&error).map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::PERM) => no_right(),
        _ => CarrierError::Refused {
            what: "load the program",
            why: with_causes(&error),
        },
    }
}

pub(super) fn refused_map(error: MapError) -> CarrierError {
    CarrierError::Refused {
        what: "use a map of the witness",
        why: with_causes(&error),
    }
}

pub(super) fn refused_load(error: EbpfError) -> CarrierError {
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(inner) = cause {
        let number = inner
            .downcast_ref::<io::Error>()
            .and_then(io::Error::raw_os_error);
        match number.map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::NOSYS) => {
                return CarrierError::KernelWithoutBpf(io::Error::from(rustix::io::Errno::NOSYS));
            }
            Some(rustix::io::Errno::PERM) => return no_right(),
            _ => cause = inner.source(),
        }
    }
    CarrierError::Refused {
        what: "load the program",
        why: with_causes(&error),
    }
}
