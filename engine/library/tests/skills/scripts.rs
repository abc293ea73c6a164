//! Scripts that hang, fork, flood, reach out, or write where they must not: all are contained.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use reprise_engine::CancelToken;
use reprise_library::skills::run::{Ended, Job, Limits, Ran, RunError};
use reprise_library::skills::{Skill, SkillError};

use crate::{World, runner, world};

const SKILL: (&str, &str) = ("t/SKILL.md", "---\nname: t\ndescription: x\n---\nx\n");

fn skill_with(script: &str, text: &str) -> World {
    world(&[SKILL, (&format!("t/scripts/{script}"), text)])
}

fn limits() -> Limits {
    Limits {
        time: Duration::from_secs(20),
        ..Limits::default()
    }
}

fn skill(world: &World) -> &Skill {
    world.shelf.usable("t").unwrap()
}

fn run_with(world: &World, script: &str, arguments: &[&str], limits: Limits) -> Ran {
    let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
    let job = Job {
        skill: skill(world),
        script,
        arguments: &arguments,
    };
    runner(limits).run(&job, &CancelToken::default()).unwrap()
}

fn run(text: &str, limits: Limits) -> Ran {
    run_with(&skill_with("a.sh", text), "a.sh", &[], limits)
}

#[test]
fn a_script_runs_in_its_folder_with_its_arguments_and_no_input() {
    let world = skill_with(
        "a.sh",
        "#!/bin/sh\npwd; echo \"$1|$2\"; cat; echo wrong >&2; env | sort\nexit 3\n",
    );
    let ran = run_with(&world, "scripts/a.sh", &["a b", "$HOME"], limits());
    assert_eq!(ran.ended, Ended::Exit(3), "{ran:?}");
    let lines: Vec<&str> = ran.output.lines().collect();
    let folder = fs::canonicalize(&skill(&world).folder).unwrap();
    assert_eq!(lines[0], folder.to_str().unwrap());
    assert_eq!(lines[1..3], ["a b|$HOME", "wrong"]);
    let names: Vec<&str> = lines[3..]
        .iter()
        .filter_map(|line| line.split('=').next())
        .collect();
    for name in names {
        let known = [
            "HOME",
            "LANG",
            "LC_ALL",
            "PATH",
            "PWD",
            "PYTHONDONTWRITEBYTECODE",
            "TMPDIR",
            "_",
            "OLDPWD",
            "SHLVL",
        ];
        assert!(
            known.contains(&name),
            "{name} of the person's environment is there"
        );
    }
}

#[test]
fn a_script_that_hangs_is_ended_with_all_that_it_started() {
    let begin = Instant::now();
    let ran = run(
        "trap '' TERM INT HUP\necho begun\nsleep 604 &\nsetsid sleep 601 &\nwhile :; do sleep 1; done\n",
        Limits {
            time: Duration::from_millis(700),
            ..limits()
        },
    );
    assert_eq!((ran.ended, ran.output.as_str()), (Ended::TimedOut, "begun\n"));
    assert!(begin.elapsed() < Duration::from_secs(15));
    #[cfg(target_os = "linux")]
    if runner(limits()).confinement().own_processes {
        assert!(
            !is_running("sleep 601"),
            "what leaves the group ends with the namespace"
        );
    }
}

#[test]
fn a_script_that_ends_leaves_nothing_running() {
    let ran = run("setsid sleep 602 >/dev/null 2>&1 &\necho done\n", limits());
    assert_eq!((ran.ended, ran.output.as_str()), (Ended::Exit(0), "done\n"));
    #[cfg(target_os = "linux")]
    if runner(limits()).confinement().own_processes {
        assert!(!is_running("sleep 602"));
    }
}

#[cfg(target_os = "linux")]
fn is_running(command: &str) -> bool {
    let wanted: Vec<u8> = command.replace(' ', "\0").into_bytes();
    let lines = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.into_iter().any(|line| line.starts_with(&wanted))
}

#[test]
fn a_script_can_be_stopped() {
    let world = skill_with("a.sh", "sleep 605\n");
    let cancel = CancelToken::default();
    let job = Job {
        skill: skill(&world),
        script: "a.sh",
        arguments: &[],
    };
    let runner = runner(limits());
    runner.confinement();
    let ran = std::thread::scope(|scope| {
        let running = scope.spawn(|| runner.run(&job, &cancel).unwrap());
        std::thread::sleep(Duration::from_millis(200));
        cancel.cancel();
        running.join().unwrap()
    });
    assert_eq!(ran.ended, Ended::Cancelled);
}

#[test]
fn what_is_written_without_end_is_cut_and_ended() {
    let ran = run(
        "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done\n",
        limits(),
    );
    assert_eq!(ran.ended, Ended::Flooded, "{}", ran.ending());
    assert!(ran.output.len() < 20_000 && ran.left_out_bytes > 1_000_000);
    assert!(ran.output.contains("bytes left out"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_script_that_forks_without_end_is_contained() {
    if !runner(limits()).confinement().own_processes {
        eprintln!("skipped: this system gives no namespaces");
        return;
    }
    // Each one waits, so that all of them would be there at once.
    let fork = "n=0\nwhile [ $n -lt 2000 ]; do sleep 603 & n=$((n + 1)); done\necho never\n";
    let ran = run(
        fork,
        Limits {
            time: Duration::from_secs(4),
            ..limits()
        },
    );
    assert!(
        !ran.output.contains("never") || ran.ended != Ended::Exit(0),
        "{ran:?}"
    );
    assert!(!is_running("sleep 603"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_script_reaches_no_network() {
    if !runner(limits()).confinement().no_network {
        eprintln!("skipped: this system cannot forbid the network");
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let text = format!(
        "import socket, os\n\
         for family, address in ((socket.AF_INET, ('127.0.0.1', {port})), (socket.AF_UNIX, '/nowhere')):\n\
         \x20   try:\n\
         \x20       socket.socket(family).connect(address)\n\
         \x20       print('reached')\n\
         \x20   except OSError as error:\n\
         \x20       print('refused', error.errno)\n"
    );
    let world = skill_with("a.py", &text);
    let ran = run_with(&world, "a.py", &[], limits());
    assert_eq!(ran.output, "refused 13\nrefused 13\n", "{ran:?}");
    let mut buffer = [0; 1];
    assert!(
        listener
            .accept()
            .map(|(mut peer, _)| peer.read(&mut buffer))
            .is_err()
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_script_writes_nothing_but_temporary_files() {
    if !runner(limits()).confinement().no_writing {
        eprintln!("skipped: this system cannot forbid writing");
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("precious");
    fs::write(&file, "kept").unwrap();
    let world = skill_with(
        "a.sh",
        "echo mine > \"$TMPDIR/x\" && cat \"$TMPDIR/x\"\ncat \"$1\"; echo\n\
         echo bad > \"$1\"\nrm -f \"$1\"\necho bad > scripts/a.sh\necho bad > new\ntrue > /dev/null && echo end\n",
    );
    let before = skill(&world).hash().unwrap();
    let ran = run_with(&world, "a.sh", &[file.to_str().unwrap()], limits());
    assert!(
        ran.output.starts_with("mine\nkept\n") && ran.output.ends_with("end\n"),
        "{}",
        ran.output
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    assert_eq!(
        skill(&world).hash().unwrap(),
        before,
        "nor does it change its own folder"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_script_sees_no_other_process_and_has_no_rights() {
    if !runner(limits()).confinement().own_processes {
        eprintln!("skipped: this system gives no namespaces");
        return;
    }
    let me = std::process::id();
    let ran = run(
        &format!("kill -0 {me} 2>/dev/null && echo seen\ngrep CapEff /proc/self/status\nid -u\n"),
        limits(),
    );
    assert!(!ran.output.contains("seen"), "{}", ran.output);
    assert!(
        ran.output.contains("CapEff:\t0000000000000000") && ran.output.ends_with("1000\n"),
        "{}",
        ran.output
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_script_that_takes_too_much_memory_fails() {
    let world = skill_with("a.py", "x = bytearray(3 << 30)\nprint('had it')\n");
    let ran = run_with(
        &world,
        "a.py",
        &[],
        Limits {
            memory_bytes: 512 << 20,
            ..limits()
        },
    );
    assert_ne!(ran.ended, Ended::Exit(0));
    assert!(!ran.output.contains("had it"));
}

#[test]
fn what_cannot_be_run_is_said() {
    let world = world(&[
        SKILL,
        ("t/scripts/a.dat", "x"),
        ("t/scripts/b.sh", "#!/no/such/shell\n"),
        ("t/notes.md", "x"),
    ]);
    let error = |script: &str| {
        let job = Job {
            skill: skill(&world),
            script,
            arguments: &[],
        };
        runner(limits()).run(&job, &CancelToken::default()).unwrap_err()
    };
    assert!(matches!(error("a.dat"), RunError::NoInterpreter { .. }));
    let missing = error("b.sh").to_string();
    assert!(
        missing.contains("/no/such/shell") && missing.contains("scripts/b.sh"),
        "{missing}"
    );
    for script in ["notes.md", "../t/scripts/b.sh", "/bin/sh", ""] {
        assert!(
            matches!(error(script), RunError::Skill(SkillError::NoFile { .. })),
            "{script}"
        );
    }
}
