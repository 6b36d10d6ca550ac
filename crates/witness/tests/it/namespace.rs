//! Network namespaces and BPF file systems of a test's own: no program is ever given to an interface of the
//! machine.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use manxdb_witness::kind::Place;
use manxdb_witness::{Carrier, CarrierError, CarrierKind, XdpCarrier};

/// Set within the namespace: where its BPF file system is.
const BPFFS: &str = "MANXDB_WITNESS_TEST_BPFFS";

const SCRIPT: &str = "ip link set lo up && mount -t bpf bpf \"$MANXDB_WITNESS_TEST_BPFFS\" \
    && exec \"$0\" --exact \"$1\" --nocapture";

/// Runs the test again, in namespaces of its own, and `body` there. Says that it is skipped without the
/// right to make them.
pub fn within(test: &str, body: impl FnOnce(&Path)) {
    if let Some(bpffs) = std::env::var_os(BPFFS) {
        return body(&PathBuf::from(bpffs));
    }
    let may = Command::new("unshare")
        .args(["--net", "--mount", "true"])
        .stderr(Stdio::null())
        .status();
    if !may.is_ok_and(|status| status.success()) {
        println!("skipped: {test} needs unshare, CAP_SYS_ADMIN and CAP_NET_ADMIN");
        return;
    }
    let bpffs = tempfile::tempdir().unwrap();
    let ran = Command::new("unshare")
        .args(["--net", "--mount", "sh", "-c", SCRIPT])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(BPFFS, bpffs.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let complained = String::from_utf8_lossy(&ran.stderr);
    for line in said.lines().filter(|line| line.starts_with("skipped:")) {
        println!("{line}");
    }
    assert!(ran.status.success(), "{said}\n{complained}");
    assert!(said.contains("1 passed"), "{test} is no test: {said}");
}

/// The address of a free port on `lo`.
pub fn place(bpffs: &Path) -> Place {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    Place {
        interface: "lo".to_owned(),
        address: socket.local_addr().unwrap(),
        cluster: 1,
        life: 7,
        bpffs: bpffs.to_owned(),
    }
}

/// Opens a carrier in the kernel; nothing, and it says so, when this machine has none.
pub fn open(kind: CarrierKind, place: &Place) -> Option<XdpCarrier> {
    match XdpCarrier::open(kind, place) {
        Ok(carrier) => Some(carrier),
        Err(
            error @ (CarrierError::Kernel { .. }
            | CarrierError::KernelWithoutBpf(_)
            | CarrierError::Right { .. }
            | CarrierError::Machine),
        ) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Another network namespace, with the far end of a veth in it: `vw`, where the witness is.
pub struct FarEnd {
    _sleeper: Sleeper,
    /// A program at the near end, which native XDP of a veth needs at both.
    _near: XdpCarrier,
}

fn run(command: &str) {
    let ran = Command::new("sh").args(["-c", command]).output().unwrap();
    let complained = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{command}: {complained}");
}

/// A process in a network namespace of its own, until it is dropped.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        let child = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo up; exec sleep 600"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut sleeper = Self(child);
        // It is in its namespace when it speaks.
        let mut up = [0; 3];
        let out = sleeper.0.stdout.as_mut().unwrap();
        std::io::Read::read_exact(out, &mut up).unwrap();
        sleeper
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A witness in the driver of a veth, in another namespace than the test.
pub fn native(bpffs: &Path) -> Option<(Box<dyn Carrier>, FarEnd)> {
    let sleeper = Sleeper::start();
    let id = sleeper.0.id();
    run("ip link add vc type veth peer name vw");
    run(&format!("ip link set vw netns {id}"));
    run("ip addr add 10.77.0.1/24 dev vc && ip link set vc up");
    let far = format!("nsenter --target {id} --net");
    run(&format!("{far} ip addr add 10.77.0.2/24 dev vw"));
    run(&format!("{far} ip link set vw up"));
    let near = Place {
        interface: "vc".to_owned(),
        address: ([10, 77, 0, 1], 9).into(),
        ..place(bpffs)
    };
    let near = open(CarrierKind::Xdp, &near)?;
    let there = Place {
        interface: "vw".to_owned(),
        address: ([10, 77, 0, 2], 7_404).into(),
        ..place(bpffs)
    };
    let namespace = std::fs::File::open(format!("/proc/{id}/ns/net")).unwrap();
    let opened = std::thread::spawn(move || {
        use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
        let kind = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(std::os::fd::AsFd::as_fd(&namespace), kind).unwrap();
        open(CarrierKind::Xdp, &there)
    });
    let carrier = opened.join().unwrap()?;
    Some((
        Box::new(carrier),
        FarEnd {
            _sleeper: sleeper,
            _near: near,
        },
    ))
}
