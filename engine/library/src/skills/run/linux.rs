//! What Linux can hold a process to. Each step is tried by itself; what cannot be had is left out, and said.

use std::fs;
use std::io;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope, path_beneath_rules,
};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};
use seccompiler::{SeccompAction, SeccompFilter, TargetArch, apply_filter};

use super::Confinement;

/// The user that a script is in its own namespace: nobody in particular, and not the administrator.
const INNER_USER: u32 = 1000;
/// The smallest limit on process numbers that the system takes.
const LEAST_PIDS: u64 = 301;

/// Enters new namespaces for users, processes, the network, mounts and messages. Processes started from now on are in all
/// of them.
pub(super) fn enter_namespaces() -> io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWIPC;
    unshare(flags)?;
    map_user(0, user, group)?;
    mount(
        None::<&str>,
        "/",
        None::<&str>,
        MsFlags::MS_REC | MsFlags::MS_PRIVATE,
        None::<&str>,
    )?;
    Ok(())
}

fn map_user(inner: u32, user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{inner} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{inner} {group} 1"))
}

/// Gives up what a script must not have. `work` is where it may write.
pub(super) fn confine(work: &Path, processes: u64, has_namespaces: bool) -> Confinement {
    let mut held = Confinement::default();
    if has_namespaces {
        hide_processes(processes);
        // The rights over the namespaces end with the next program: its user is not their administrator.
        let drop_rights = unshare(CloneFlags::CLONE_NEWUSER)
            .map_err(io::Error::from)
            .and_then(|()| map_user(INNER_USER, 0, 0));
        held.own_processes = drop_rights.is_ok();
        held.no_network = drop_rights.is_ok();
    }
    held.no_writing = forbid_writing(work).unwrap_or(false);
    held
}

/// Other processes are out of reach in a process namespace; this takes them out of sight, too. Where the system does not
/// allow it (in some containers), Landlock still keeps a script from writing to them.
fn hide_processes(processes: u64) {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    if mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>).is_ok() {
        // For the administrator of the machine the limit on processes does not count; this one does, where it is known.
        let most = processes.max(LEAST_PIDS);
        let _ = fs::write("/proc/sys/kernel/pid_max", most.to_string());
    }
}

/// Forbids writing but in one folder, and connections and signals to what is outside where the system knows how.
fn forbid_writing(work: &Path) -> Result<bool, landlock::RulesetError> {
    let abi = ABI::V5;
    let status = Ruleset::default()
        // The first version that can forbid truncating files.
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V3))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(ABI::V6))?
        .create()?
        .add_rules(path_beneath_rules(["/"], AccessFs::from_read(abi)))?
        .add_rules(path_beneath_rules([work], AccessFs::from_all(abi)))?
        .add_rules(path_beneath_rules(
            ["/dev/null", "/dev/zero", "/dev/full"],
            AccessFs::from_file(abi),
        ))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Forbids to make sockets, and rings that could make them. A pair of connected ones is harmless and stays allowed.
pub(super) fn forbid_sockets() -> Result<(), Box<dyn std::error::Error>> {
    const X32: i64 = 0x4000_0000;
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let mut calls = vec![libc::SYS_socket, libc::SYS_io_uring_setup];
    if cfg!(target_arch = "x86_64") {
        // The same calls by their other number.
        calls.extend([libc::SYS_socket + X32, libc::SYS_io_uring_setup + X32]);
    }
    let rules = calls.into_iter().map(|call| (call, Vec::new())).collect();
    let denied = SeccompAction::Errno(libc::EACCES as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch)?;
    let program: seccompiler::BpfProgram = filter.try_into()?;
    apply_filter(&program)?;
    Ok(())
}
