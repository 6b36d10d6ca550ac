//! One end of a connection: the only place that calls the shim (shim.c), and so libfabric.
//!
//! What libfabric touches beside its own memory is the memory of a port, which lives as long as
//! the port is open: [`Words`], which others may change at any time. Every piece is checked
//! against its bounds here.
#![allow(unsafe_code)] // each block says why it is sound

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::needs::Needs;
use super::shape::Kind;
use crate::address::WORD;
use crate::memory::words::Words;

/// Bytes of the longest name of a port, and a zero.
const NAME_MAX: usize = 256;
const _: () = assert!(
    NAME_MAX - 1 <= u8::MAX as usize,
    "a server says the whole name of a port, after its length in a byte"
);

/// Bytes of the operands of a swap or an addition, and where its outcome is.
pub(super) const OPERANDS: u64 = 2 * WORD;

/// A call.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Call {
    /// Comes back when it is over.
    pub(super) token: u64,
    /// Whom it asks.
    pub(super) peer: Peer,
    /// Where, as the other side counts.
    pub(super) address: u64,
    /// The other side's key.
    pub(super) key: u64,
    /// Where in this port's memory, in bytes: what is sent, or where goes what is read; a multiple
    /// of [`WORD`].
    pub(super) local: u64,
    /// How many; a multiple of [`WORD`]. One word for swaps and additions.
    pub(super) bytes: u64,
    /// What.
    pub(super) kind: Kind,
}

const _: () = assert!(
    size_of::<Call>() == 7 * size_of::<u64>(),
    "a call is laid out as shim.c has it"
);

/// The other side, as a port knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Peer(u64);

/// An error number of libfabric's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code(c_int);

impl Code {
    /// What the shim returns is zero, or an error as a negative number.
    fn of(returned: c_int) -> Result<(), Self> {
        if returned == 0 {
            Ok(())
        } else {
            Err(Self(returned.saturating_abs()))
        }
    }

    fn of_long(returned: i64) -> Self {
        let code = returned.unsigned_abs();
        Self(c_int::try_from(code).unwrap_or(c_int::MAX))
    }

    /// The other side does not take the key.
    pub(super) fn is_refusal(self) -> bool {
        // SAFETY: compares a number with others.
        unsafe { manx_is_refusal(self.0) != 0 }
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: fi_strerror takes any number, and returns a text that ends and is never freed.
        // (Some are made in a buffer that all callers share: two threads may garble a text.)
        let text = unsafe { CStr::from_ptr(manx_error(self.0)) };
        f.write_str(&text.to_string_lossy())
    }
}

#[repr(C)]
struct RawAsk {
    provider: *const c_char,
    at: *const c_char,
    needs: u32,
    depth: u32,
}

#[repr(C)]
struct RawOffer {
    info: *mut RawInfo,
    provider: [c_char; 64],
    order_bytes: u64,
    message_bytes: u64,
    key_bytes: u64,
}

const _: () = assert!(
    size_of::<RawAsk>() == 2 * size_of::<*const c_char>() + 2 * size_of::<u32>(),
    "an ask is laid out as shim.c has it"
);
const _: () = assert!(
    size_of::<RawOffer>() == size_of::<*mut RawInfo>() + 64 + 3 * size_of::<u64>(),
    "an offer is laid out as shim.c has it"
);

/// `struct fi_info`.
#[repr(C)]
struct RawInfo {
    _nobody_looks_into_it: [u8; 0],
}

/// `struct manx_port`.
#[repr(C)]
struct RawPort {
    _nobody_looks_into_it: [u8; 0],
}

unsafe extern "C" {
    fn manx_offer(ask: *const RawAsk, offer: *mut RawOffer) -> c_int;
    fn manx_offer_free(info: *mut RawInfo);
    fn manx_port_open(
        info: *mut RawInfo,
        memory: *mut c_void,
        bytes: usize,
        is_shared: c_int,
        key: *mut u64,
        base: *mut u64,
        opened: *mut *mut RawPort,
        step: *mut *const c_char,
    ) -> c_int;
    fn manx_port_close(port: *mut RawPort) -> c_int;
    fn manx_port_words(port: *mut RawPort, kind: u32) -> i64;
    fn manx_port_name(port: *mut RawPort, name: *mut c_void, bytes: *mut usize) -> c_int;
    fn manx_port_peer(port: *mut RawPort, name: *const c_void, peer: *mut u64) -> c_int;
    fn manx_port_post(port: *mut RawPort, call: *const Call) -> i64;
    fn manx_port_poll(port: *mut RawPort, token: *mut u64, error: *mut c_int) -> i64;
    fn manx_is_refusal(error: c_int) -> c_int;
    fn manx_error(error: c_int) -> *const c_char;
}

/// What a provider grants.
pub(super) struct Offer {
    info: NonNull<RawInfo>,
    /// Its whole name, with what it is layered upon.
    pub(super) provider: String,
    /// Remote writes up to so many bytes are placed in their order.
    pub(super) order_bytes: u64,
    /// Bytes of the longest operation.
    pub(super) message_bytes: u64,
    /// Bytes of a key.
    pub(super) key_bytes: u64,
}

// SAFETY: the structure belongs to this value alone, and libfabric only reads it.
unsafe impl Send for Offer {}
// SAFETY: as above; nothing is changed through a reference, by however many threads.
unsafe impl Sync for Offer {}

impl Offer {
    /// Asks a provider, which may be reached at an address of this machine.
    ///
    /// # Errors
    /// It is not there, or does not grant all of it.
    pub(super) fn ask(
        provider: &CStr,
        at: Option<&CStr>,
        needs: Needs,
        depth: u32,
    ) -> Result<Self, Code> {
        let ask = RawAsk {
            provider: provider.as_ptr(),
            at: at.map_or(ptr::null(), CStr::as_ptr),
            needs: needs.0,
            depth,
        };
        let mut raw = RawOffer {
            info: ptr::null_mut(),
            provider: [0; 64],
            order_bytes: 0,
            message_bytes: 0,
            key_bytes: 0,
        };
        // SAFETY: both structures are laid out as the shim has them and live during the call; the
        // texts of the first end in zero.
        Code::of(unsafe { manx_offer(&raw const ask, &raw mut raw) })?;
        // SAFETY: the shim ended the text inside its 64 bytes.
        let name = unsafe { CStr::from_ptr(raw.provider.as_ptr()) };
        Ok(Self {
            info: NonNull::new(raw.info).ok_or(Code(0))?,
            provider: name.to_string_lossy().into_owned(),
            order_bytes: raw.order_bytes,
            message_bytes: raw.message_bytes,
            key_bytes: raw.key_bytes,
        })
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        // SAFETY: it came from fi_getinfo, and ports have copied what they need of it.
        unsafe { manx_offer_free(self.info.as_ptr()) }
    }
}

/// Who may touch the memory of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    /// Operations of this port.
    Own,
    /// Those of others too who have the key; it is this one, unless the provider makes its own.
    Shared {
        /// The key.
        key: u64,
    },
}

/// What became of a call that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// It is under way; its token will come.
    Started,
    /// There is no room, or no connection yet: to be made again after a poll.
    Later,
    /// It is not under way.
    Failed(Code),
}

/// A call that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Over {
    /// Which.
    pub(super) token: u64,
    /// Whether it was done; after an error nobody knows.
    pub(super) result: Result<(), Code>,
}

/// One end of a connection.
pub(super) struct Port {
    /// Open until [`Port::shut`], after which nobody asks for it.
    raw: *mut RawPort,
    memory: Arc<Words>,
    /// The key of its memory.
    pub(super) key: u64,
    /// What others call the first byte of its memory.
    pub(super) base: u64,
}

// SAFETY: a port is alone in its libfabric domain, which was opened for use by one thread at a
// time: whoever owns the value.
unsafe impl Send for Port {}

/// A step of opening a port went wrong.
#[derive(Debug)]
pub(super) struct OpenError {
    pub(super) step: &'static str,
    pub(super) code: Code,
}

impl Port {
    /// Opens an endpoint with a piece of memory.
    ///
    /// # Errors
    /// [`OpenError`]: the provider, or the system, has no room for it.
    pub(super) fn open(
        offer: &Offer,
        memory: Arc<Words>,
        access: Memory,
    ) -> Result<Self, OpenError> {
        let (first, bytes) = memory.region();
        let (is_shared, mut key) = match access {
            Memory::Own => (0, 0),
            Memory::Shared { key } => (1, key),
        };
        let (mut base, mut raw) = (0, ptr::null_mut());
        let mut step: *const c_char = c"".as_ptr();
        // SAFETY: the memory is a mapping of so many bytes, which outlives the port: `Words` is
        // kept below until the port is closed, or for ever. All else lives during the call.
        let opened = Code::of(unsafe {
            manx_port_open(
                offer.info.as_ptr(),
                first.cast(),
                bytes,
                is_shared,
                &raw mut key,
                &raw mut base,
                &raw mut raw,
                &raw mut step,
            )
        });
        // SAFETY: the shim names its steps by constants that end in zero.
        let step = unsafe { CStr::from_ptr(step) }.to_str().unwrap_or_default();
        if step == "fi_close" {
            mem::forget(Arc::clone(&memory)); // it may still be touched: it stays for ever
        }
        opened.map_err(|code| OpenError { step, code })?;
        assert!(!raw.is_null(), "a port that was opened is there");
        Ok(Self {
            raw,
            memory,
            key,
            base,
        })
    }

    /// The port, which is open: only [`Port::shut`] closes it, and takes it away.
    fn open_port(&self) -> *mut RawPort {
        assert!(!self.raw.is_null(), "a port that is closed does nothing");
        self.raw
    }

    /// Words that one call takes at most; none if the provider has no such calls.
    pub(super) fn words_max(&self, kind: Kind) -> u64 {
        // SAFETY: the port is open.
        let count = unsafe { manx_port_words(self.open_port(), kind as u32) };
        u64::try_from(count).unwrap_or(0)
    }

    /// What others reach it by.
    ///
    /// # Errors
    /// It has none.
    pub(super) fn name(&self) -> Result<Vec<u8>, Code> {
        let mut name = vec![0; NAME_MAX - 1];
        let mut bytes = name.len();
        // SAFETY: the port is open, and there are as many bytes as the call is told.
        let found =
            unsafe { manx_port_name(self.open_port(), name.as_mut_ptr().cast(), &raw mut bytes) };
        Code::of(found)?;
        assert!(
            bytes <= name.len(),
            "the name of a port is copied whole: {bytes} bytes"
        );
        name.truncate(bytes);
        Ok(name)
    }

    /// Makes another port known to this one.
    ///
    /// # Errors
    /// It is the name of none.
    pub(super) fn peer(&mut self, name: &[u8]) -> Result<Peer, Code> {
        // Whatever the other side has sent, libfabric reads no further than this, and finds a zero.
        let mut whole = [0; NAME_MAX];
        let (text, _) = whole.split_at_mut(NAME_MAX - 1);
        for (to, from) in text.iter_mut().zip(name) {
            *to = *from;
        }
        let mut peer = 0;
        // SAFETY: the port is open; a provider reads as many bytes as its addresses have, or to
        // the first zero, which are fewer than these.
        let known =
            unsafe { manx_port_peer(self.open_port(), whole.as_ptr().cast(), &raw mut peer) };
        Code::of(known).map(|()| Peer(peer))
    }

    /// Whether a call stays in this port's memory.
    fn holds(&self, call: &Call) -> bool {
        let bytes = match call.kind {
            Kind::Read | Kind::Write | Kind::ReadWords => Some(call.bytes),
            Kind::WriteWords => call.bytes.checked_mul(2),
            Kind::CompareSwap | Kind::FetchAdd => Some(OPERANDS + WORD),
        };
        let end = bytes.and_then(|bytes| call.local.checked_add(bytes));
        let (_, length) = self.memory.region();
        call.local.is_multiple_of(WORD)
            && call.bytes.is_multiple_of(WORD)
            && end.is_some_and(|end| end <= length as u64)
    }

    /// Makes a call. Until its token comes, what it concerns in this port's memory is libfabric's.
    pub(super) fn post(&mut self, call: &Call) -> Made {
        const AGAIN: i64 = -(rustix::io::Errno::AGAIN.raw_os_error() as i64);
        if !self.holds(call) {
            return Made::Failed(Code(rustix::io::Errno::INVAL.raw_os_error()));
        }
        // SAFETY: the port is open, the call is laid out as the shim has it, and it stays inside
        // the memory of the port, as was just checked.
        match unsafe { manx_port_post(self.open_port(), ptr::from_ref(call)) } {
            0 => Made::Started,
            AGAIN => Made::Later,
            other => Made::Failed(Code::of_long(other)),
        }
    }

    /// Lets libfabric do what it has to do, and takes the next call that is over, if there is one.
    ///
    /// # Errors
    /// The port is of no use any more.
    pub(super) fn poll(&mut self) -> Result<Option<Over>, Code> {
        let (mut token, mut error) = (0, 0);
        // SAFETY: the port is open, and both numbers live during the call.
        match unsafe { manx_port_poll(self.open_port(), &raw mut token, &raw mut error) } {
            0 => Ok(None),
            1 => Ok(Some(Over {
                token,
                result: Code::of(error),
            })),
            other => Err(Code::of_long(other)),
        }
    }

    /// Closes it: when this returns nothing touches its memory any more.
    ///
    /// # Errors
    /// The provider has kept it open, and may go on.
    pub(super) fn close(mut self) -> Result<(), Code> {
        self.shut()
    }

    fn shut(&mut self) -> Result<(), Code> {
        let raw = mem::replace(&mut self.raw, ptr::null_mut());
        if raw.is_null() {
            return Ok(());
        }
        // SAFETY: the port is open, and nobody can name it any more.
        let closed = Code::of(unsafe { manx_port_close(raw) });
        if closed.is_err() {
            mem::forget(Arc::clone(&self.memory)); // it may still be touched: it stays for ever
        }
        closed
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let _ = self.shut(); // who wants to know has closed it
    }
}
