//! Opening a carrier, or the next best one that can be had.

use crate::error::CarrierError;
use crate::kind::{Carrier, CarrierKind, Place};
use crate::user::UserCarrier;
use crate::xdp::XdpCarrier;

/// Opens a carrier. What an earlier process has left in the kernel for the same cluster is taken up.
///
/// # Errors
/// What is missing, and how to get it.
pub fn open(kind: CarrierKind, place: &Place) -> Result<Box<dyn Carrier>, CarrierError> {
    Ok(match kind {
        CarrierKind::User => Box::new(UserCarrier::bind(place.address, place.life)?),
        CarrierKind::Xdp | CarrierKind::XdpGeneric => Box::new(XdpCarrier::open(kind, place)?),
    })
}

/// Opens a carrier, or the next best one that can be had. Each that could not is told to `missed`.
///
/// # Errors
/// The last one's, when there is none.
pub fn open_or_fall_back(
    kind: CarrierKind,
    place: &Place,
    mut missed: impl FnMut(CarrierKind, &CarrierError),
) -> Result<Box<dyn Carrier>, CarrierError> {
    let mut kind = kind;
    loop {
        let error = match open(kind, place) {
            Ok(carrier) => return Ok(carrier),
            Err(error) => error,
        };
        let Some(next) = kind.next() else {
            return Err(error);
        };
        missed(kind, &error);
        kind = next;
    }
}
