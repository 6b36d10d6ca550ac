//! A veth with its far end in another network namespace: where native XDP can be had without a card.

use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};

use manxdb_witness::kind::Place;
use manxdb_witness::{CarrierError, CarrierKind, XdpCarrier};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The interface at the far end, where witnesses are.
pub const FAR: &str = "vw";
/// Its address.
pub const FAR_ADDRESS: [u8; 4] = [10, 77, 0, 2];

const NEAR: &str = "vc";
const NEAR_ADDRESS: [u8; 4] = [10, 77, 0, 1];

/// The far end; gone, with all that is in it, when this is dropped.
pub struct FarEnd {
    sleeper: Child,
    /// A program at the near end, which native XDP of a veth needs at both.
    _near: XdpCarrier,
}

impl FarEnd {
    /// Makes a veth between the namespace of this process and a new one.
    ///
    /// # Errors
    /// What this machine lacks, in words.
    pub fn new(place: impl Fn(&str, [u8; 4], u16) -> Place) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("no second network namespace: {error}");
        let mut sleeper = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo up; exec sleep 3600"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        // It is in its namespace when it speaks.
        if let Some(said) = &mut sleeper.stdout {
            let mut up = [0; 3];
            std::io::Read::read_exact(said, &mut up).map_err(failed)?;
        }
        match join(sleeper.id()).and_then(|()| {
            let near = place(NEAR, NEAR_ADDRESS, 9);
            XdpCarrier::open(CarrierKind::Xdp, &near).map_err(|error| error.to_string())
        }) {
            Ok(near) => Ok(Self {
                sleeper,
                _near: near,
            }),
            Err(why) => {
                end(&mut sleeper);
                Err(why)
            }
        }
    }

    /// A witness at the far end.
    ///
    /// # Errors
    /// What is missing.
    pub fn open(&self, place: Place) -> Result<XdpCarrier, CarrierError> {
        let namespace = std::fs::File::open(format!("/proc/{}/ns/net", self.sleeper.id()));
        let failed = |source| CarrierError::Socket {
            address: place.address,
            source,
        };
        let namespace = namespace.map_err(failed)?;
        let there = std::thread::Builder::new();
        let inner = place.clone();
        let opened = there.spawn(move || {
            let kind = Some(LinkNameSpaceType::Network);
            let entered = move_into_link_name_space(namespace.as_fd(), kind);
            entered.map_err(|error| CarrierError::Socket {
                address: inner.address,
                source: error.into(),
            })?;
            XdpCarrier::open(CarrierKind::Xdp, &inner)
        });
        let opened = opened.map_err(failed)?.join();
        opened.unwrap_or_else(|_| Err(failed(std::io::ErrorKind::Other.into())))
    }
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        end(&mut self.sleeper);
    }
}

fn end(sleeper: &mut Child) {
    let _ = sleeper.kill();
    let _ = sleeper.wait();
}

fn join(far: u32) -> Result<(), String> {
    let [a, b, c, d] = NEAR_ADDRESS;
    let near = format!("{a}.{b}.{c}.{d}");
    let [a, b, c, d] = FAR_ADDRESS;
    let there = format!("nsenter --target {far} --net");
    let script = format!(
        "ip link add {NEAR} type veth peer name {FAR} && ip link set {FAR} netns {far} \
         && ip addr add {near}/24 dev {NEAR} && ip link set {NEAR} up \
         && {there} ip addr add {a}.{b}.{c}.{d}/24 dev {FAR} && {there} ip link set {FAR} up"
    );
    let ran = Command::new("sh").args(["-c", &script]).output();
    let ran = ran.map_err(|error| format!("no veth: {error}"))?;
    if ran.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    Err(format!("no veth: {}", said.trim()))
}
