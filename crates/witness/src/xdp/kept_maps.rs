//! The maps that a witness's process leaves behind, and finds again when it restarts.

use aya::Ebpf;
use aya::maps::{Array, MapData};

use super::objects::{loader, program, refused_load, refused_map, refused_program, take};
use crate::checksum::crc_tables;
use crate::error::CarrierError;
use crate::kind::Place;
use crate::layout::{CONFIG_BYTES, CRC_TABLES_BYTES, Config, LAYOUT_VERSION};
use crate::pin_paths::{MAPS, PinPaths};

const WITNESS: &[u8] = aya::include_bytes_aligned!("../../bpf/witness.bpf.o");

/// Loads the witness's program with the maps that an earlier process has left for it, records and all, or with
/// new ones: none were left, or they are of another witness.
pub(super) fn load_with_kept_maps(
    pins: &PinPaths,
    place: &Place,
) -> Result<(Ebpf, Config), CarrierError> {
    pins.make()?;
    let mut ebpf = load_witness(pins)?;
    let mut config = take(&mut ebpf, "config")?;
    if !is_ours(&config, place)? {
        let removed = pins.remove_maps();
        removed.map_err(CarrierError::refused("take away another cluster's maps"))?;
        pins.make()?;
        ebpf = load_witness(pins)?;
        config = take(&mut ebpf, "config")?;
    }
    let config = introduce(&mut ebpf, config, place)?;
    Ok((ebpf, config))
}

fn load_witness(pins: &PinPaths) -> Result<Ebpf, CarrierError> {
    let mut loader = loader();
    for name in MAPS {
        loader.map_pin_path(name, pins.map(name));
    }
    let mut ebpf = loader.load(WITNESS).map_err(refused_load)?;
    program(&mut ebpf, "witness")?
        .load()
        .map_err(refused_program)?;
    Ok(ebpf)
}

/// Whether maps are new, or left by a witness of the same cluster at the same place.
fn is_ours(
    config: &Array<MapData, [u8; CONFIG_BYTES]>,
    place: &Place,
) -> Result<bool, CarrierError> {
    let config = read_config(config)?;
    if config.layout == 0 {
        return Ok(true);
    }
    Ok(config.layout == LAYOUT_VERSION
        && config.cluster == place.cluster
        && config.port == place.address.port()
        && Some(config.address) == ipv4_of(place))
}

/// Writes who the witness is into new maps; of kept ones it is read.
fn introduce(
    ebpf: &mut Ebpf,
    mut map: Array<MapData, [u8; CONFIG_BYTES]>,
    place: &Place,
) -> Result<Config, CarrierError> {
    let mut tables: Array<MapData, [u8; CRC_TABLES_BYTES]> = take(ebpf, "crc_tables")?;
    let tables_written = tables.set(0, *crc_tables(), 0);
    tables_written.map_err(refused_map)?;
    let found = read_config(&map)?;
    if found.layout == LAYOUT_VERSION {
        return Ok(found);
    }
    assert_eq!(found.layout, 0, "another layout's maps were thrown away");
    let address = ipv4_of(place).ok_or(CarrierError::Address(place.address))?;
    let config = Config {
        address,
        port: place.address.port(),
        cluster: place.cluster,
        life: place.life,
        layout: LAYOUT_VERSION,
    };
    map.set(0, config.encode(), 0).map_err(refused_map)?;
    Ok(config)
}

fn read_config(config: &Array<MapData, [u8; CONFIG_BYTES]>) -> Result<Config, CarrierError> {
    let bytes = config.get(&0, 0).map_err(refused_map)?;
    Ok(Config::decode(&bytes))
}

fn ipv4_of(place: &Place) -> Option<[u8; 4]> {
    match place.address.ip() {
        std::net::IpAddr::V4(address) => Some(address.octets()),
        std::net::IpAddr::V6(_) => None,
    }
}
