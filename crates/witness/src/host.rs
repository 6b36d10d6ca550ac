//! Whether this machine can carry a witness in its kernel, before anything is changed.

use std::fs;
use std::path::Path;

use crate::error::CarrierError;

/// The first kernel with `bpf_xdp_load_bytes`.
pub const KERNEL_WANTED: (u32, u32) = (5, 18);
/// What `statfs` says of a BPF file system.
const BPF_FS_MAGIC: u64 = 0xCAFE_4A11;

const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Looks at the machine, the kernel, the rights of this process and the file system for pins.
///
/// # Errors
/// The first that is missing.
pub fn check(bpffs: &Path) -> Result<(), CarrierError> {
    if cfg!(target_endian = "big") {
        return Err(CarrierError::Machine);
    }
    check_kernel(&rustix::system::uname().release().to_string_lossy())?;
    let status = fs::read_to_string("/proc/self/status");
    let status = status.map_err(CarrierError::refused("read this process's rights"))?;
    check_rights(&status)?;
    let found = rustix::fs::statfs(bpffs);
    let is_bpf = found.is_ok_and(|found| is_magic(found.f_type));
    if is_bpf {
        Ok(())
    } else {
        Err(CarrierError::FileSystem(bpffs.to_owned()))
    }
}

/// The type of the field is the architecture's.
fn is_magic(kind: impl TryInto<u64>) -> bool {
    kind.try_into().is_ok_and(|kind| kind == BPF_FS_MAGIC)
}

fn check_kernel(release: &str) -> Result<(), CarrierError> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next().and_then(|number| number.parse().ok());
    let version: Option<(u32, u32)> = next().zip(next());
    if version.is_some_and(|version| version >= KERNEL_WANTED) {
        return Ok(());
    }
    Err(CarrierError::Kernel {
        found: release.to_owned(),
        wanted: KERNEL_WANTED,
    })
}

fn check_rights(status: &str) -> Result<(), CarrierError> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok());
    let effective = effective.unwrap_or(0);
    let has = |capability: u32| effective >> capability & 1 == 1;
    let mut missing = Vec::new();
    if !has(CAP_BPF) && !has(CAP_SYS_ADMIN) {
        missing.push("CAP_BPF");
    }
    // Without it the verifier follows each branch as a processor may that guesses wrong, and gives up.
    if !has(CAP_PERFMON) && !has(CAP_SYS_ADMIN) {
        missing.push("CAP_PERFMON");
    }
    if !has(CAP_NET_ADMIN) {
        missing.push("CAP_NET_ADMIN");
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(CarrierError::Right { missing })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_judged_by_its_numbers() {
        for release in ["5.18.0", "6.1.0-18-amd64", "10.0"] {
            assert!(check_kernel(release).is_ok(), "{release}");
        }
        for release in ["5.17.9", "4.19.0-27", "", "six"] {
            let error = check_kernel(release).unwrap_err().to_string();
            assert!(error.contains("need Linux 5.18 or newer"), "{error}");
        }
    }

    #[test]
    fn a_right_that_lacks_is_named() {
        assert!(check_rights("CapEff:\t000001ffffffffff\n").is_ok());
        assert!(check_rights("CapEff:\t000000c000001000\n").is_ok());
        let error = check_rights("Name:\tx\nCapEff:\t0000000000000000\n").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("CAP_BPF and CAP_PERFMON and CAP_NET_ADMIN")
        );
        let error = check_rights("CapEff:\t000000c000000000\n").unwrap_err();
        assert!(error.to_string().contains("lacks CAP_NET_ADMIN:"));
    }
}
