//! Giving the programs to an interface.

use std::io;

use aya::Ebpf;
use aya::maps::{Array, Map, MapData, MapError, PerCpuArray, ProgramArray};
use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::xdp::{XdpLink, XdpMode};
use aya::programs::{ProgramError, Xdp};
use aya::sys::SyscallError;

use crate::error::{CarrierError, with_causes};
use crate::kind::{CarrierKind, Place};
use crate::layout::{COUNTERS, Config, PAYLOAD_BYTES, SET_BYTES, SETS, VIEWS_BYTES};
use crate::pin_paths::PinPaths;
use crate::xdp::kept_maps::load_with_kept_maps;
use crate::xdp::objects::{
    loader, missing, program, refused_load, refused_map, refused_program, system_error, take,
};

const DISPATCH: &[u8] = aya::include_bytes_aligned!("../../bpf/dispatch.bpf.o");

/// The kernel's word for a link whose interface is gone (ENOLINK).
const LINK_GONE: i32 = 67;

/// What a process holds of a witness in the kernel.
pub(super) struct Loaded {
    pub(super) config: Config,
    pub(super) views: Array<MapData, [u8; VIEWS_BYTES]>,
    pub(super) rounds: Array<MapData, u64>,
    pub(super) sets: Array<MapData, [u8; SET_BYTES]>,
    pub(super) payloads: Array<MapData, [u8; PAYLOAD_BYTES]>,
    pub(super) counters: PerCpuArray<MapData, u64>,
    /// The number of the program at the interface.
    pub(super) dispatch: u32,
}

/// Loads a witness with the maps that an earlier process has left for it, or new ones, and gives it to the
/// interface. The program is always the one of this build; it goes into service with one map entry.
pub(super) fn load(
    kind: CarrierKind,
    place: &Place,
    pins: &PinPaths,
) -> Result<Loaded, CarrierError> {
    let (mut ebpf, config) = load_with_kept_maps(pins, place)?;
    assert_eq!(config.cluster, place.cluster, "records are of this cluster");
    assert_eq!(config.port, place.address.port(), "and of this port");
    let views = take(&mut ebpf, "views")?;
    let rounds = take(&mut ebpf, "rounds")?;
    let sets: Array<MapData, [u8; SET_BYTES]> = take(&mut ebpf, "sets")?;
    let payloads = take(&mut ebpf, "payloads")?;
    assert_eq!(sets.len(), SETS, "a table has its sets");
    let counters = ebpf.take_map("counters").ok_or_else(|| missing("counters"));
    let counters = PerCpuArray::try_from(counters?).map_err(refused_map)?;
    assert_eq!(counters.len() as usize, COUNTERS, "a counter an outcome");
    let dispatch = attach(kind, place, pins, &mut ebpf)?;
    Ok(Loaded {
        config,
        views,
        rounds,
        sets,
        payloads,
        counters,
        dispatch,
    })
}

/// Gives the interface its program, and that program the witness. The number of the interface's program.
fn attach(
    kind: CarrierKind,
    place: &Place,
    pins: &PinPaths,
    witness: &mut Ebpf,
) -> Result<u32, CarrierError> {
    let mut loader = loader();
    loader.map_pin_path("witnesses", pins.witnesses());
    let mut ebpf = loader.load(DISPATCH).map_err(refused_load)?;
    let witnesses = ebpf
        .take_map("witnesses")
        .ok_or_else(|| missing("witnesses"));
    let mut witnesses = ProgramArray::try_from(witnesses?).map_err(refused_map)?;
    let dispatch = program(&mut ebpf, "dispatch")?;
    dispatch.load().map_err(refused_program)?;
    let number = dispatch.info().map_err(refused_program)?.id();
    if !take_over(dispatch, pins)? {
        attach_new(dispatch, kind, place, pins)?;
    }
    let witness = program(witness, "witness")?;
    let program = witness.fd().map_err(refused_program)?;
    witnesses
        .set(place.address.port().into(), program, 0)
        .map_err(refused_map)?;
    Ok(number)
}

/// Takes a witness's program from the interface: datagrams to it go their usual way.
pub(super) fn unlist(place: &Place, pins: &PinPaths) -> Result<(), CarrierError> {
    let Ok(map) = MapData::from_pin(pins.witnesses()) else {
        return Ok(()); // there never was one
    };
    let map = Map::from_map_data(map).map_err(refused_map)?;
    let mut witnesses = ProgramArray::try_from(map).map_err(refused_map)?;
    match witnesses.clear_index(&u32::from(place.address.port())) {
        Err(MapError::SyscallError(SyscallError { io_error, .. }))
            if io_error.kind() == io::ErrorKind::NotFound =>
        {
            Ok(())
        }
        done => done.map_err(refused_map),
    }
}

/// Puts the program into the place of the one that is attached; false when there is none.
fn take_over(dispatch: &mut Xdp, pins: &PinPaths) -> Result<bool, CarrierError> {
    let Ok(pinned) = PinnedLink::from_pin(pins.dispatch()) else {
        return Ok(false);
    };
    let link = XdpLink::try_from(FdLink::from(pinned));
    let link = link.map_err(CarrierError::refused("read the interface's link"))?;
    match dispatch.attach_to_link(link) {
        Ok(_) => Ok(true),
        Err(error) if system_error(&error) == Some(LINK_GONE) => {
            // The interface was taken away, and another one has its name now.
            std::fs::remove_file(pins.dispatch())
                .map_err(CarrierError::refused("take away a dead link"))?;
            Ok(false)
        }
        Err(error) => Err(refused_program(error)),
    }
}

fn attach_new(
    dispatch: &mut Xdp,
    kind: CarrierKind,
    place: &Place,
    pins: &PinPaths,
) -> Result<(), CarrierError> {
    assert!(kind.is_in_kernel(), "a process has no interface");
    let mode = match kind {
        CarrierKind::Xdp => XdpMode::Driver,
        CarrierKind::XdpGeneric | CarrierKind::User => XdpMode::Skb,
    };
    let attached = dispatch.attach(&place.interface, mode);
    let id = attached.map_err(|error| refused_attach(error, &place.interface))?;
    let link = dispatch.take_link(id).map_err(refused_program)?;
    let link = FdLink::try_from(link);
    let link = link.map_err(CarrierError::refused("keep the program attached"))?;
    link.pin(pins.dispatch())
        .map_err(CarrierError::refused("keep the program attached"))?;
    Ok(())
}

fn refused_attach(error: ProgramError, interface: &str) -> CarrierError {
    use rustix::io::Errno;
    let interface = interface.to_owned();
    let number = system_error(&error).map(Errno::from_raw_os_error);
    match (&error, number) {
        (ProgramError::UnknownInterface { .. }, _) => CarrierError::Interface(interface),
        (_, Some(Errno::OPNOTSUPP)) => CarrierError::Driver(interface),
        (_, Some(Errno::BUSY | Errno::EXIST)) => CarrierError::Taken(interface),
        _ => CarrierError::Refused {
            what: "give the interface the program",
            why: with_causes(&error),
        },
    }
}
