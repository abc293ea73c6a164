//! Stops and kills: what was read stays, what was not is read the next time.

use std::process::{Command, Stdio};

use reprise_engine::CancelToken;
use reprise_library::index::{Index, Progress, Run};

use crate::{Place, found, update, update_with};

const FILES: usize = 120;

fn many(place: &Place) {
    for n in 0..FILES {
        place.write(
            &format!("{n:03}.txt"),
            format!("file{n} has words {}", "of its own ".repeat(n)),
        );
    }
}

#[test]
fn a_stopped_run_goes_on_where_it_was() {
    let place = Place::new();
    many(&place);
    let index = place.open();
    index.add(&place.documents()).unwrap();
    let cancel = CancelToken::default();
    let stopped = update_with(&index, &cancel, &mut |progress| {
        if matches!(progress, Progress::Reading { done: 40, .. }) {
            cancel.cancel();
        }
    });
    assert!(
        stopped.stopped && (40..60).contains(&stopped.read),
        "{}",
        stopped.read
    );
    let status = index.status().unwrap();
    assert_eq!(
        (status.ready, status.waiting),
        (stopped.read, FILES - stopped.read)
    );
    assert_eq!(found(&index, "file0"), ["000.txt"], "what was read is found");
    let rest = update(&index);
    assert_eq!(rest.read, FILES - stopped.read);
    assert_eq!(found(&index, "file119"), ["119.txt"]);
}

#[test]
fn it_waits_while_someone_waits_for_an_answer() {
    let place = Place::new();
    many(&place);
    let index = place.open();
    index.add(&place.documents()).unwrap();
    let cancel = CancelToken::default();
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let mut reads = 0;
    let is_busy = || {
        // Busy for ever: the run does nothing until it is stopped.
        if asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 20 {
            cancel.cancel();
        }
        true
    };
    let updated = index
        .update(&mut Run {
            cancel: cancel.clone(),
            is_busy: &is_busy,
            progress: &mut |progress| reads += usize::from(matches!(progress, Progress::Reading { .. })),
            threads: 2,
        })
        .unwrap();
    assert_eq!((updated.read, reads, updated.stopped), (0, 0, true));
}

/// Not a test: the process that the next test kills.
#[test]
#[ignore = "run by another test"]
fn index_until_killed() {
    let Some(folder) = std::env::var_os("REPRISE_TEST_INDEX") else {
        return;
    };
    let folder = std::path::PathBuf::from(folder);
    let (index, _) = Index::open(&folder.join("index"), None).unwrap();
    index.add(&folder.join("documents")).unwrap();
    let at: usize = std::env::var("REPRISE_TEST_KILL_AT").unwrap().parse().unwrap();
    update_with(&index, &CancelToken::default(), &mut |progress| {
        if matches!(progress, Progress::Reading { done, .. } if *done == at) {
            // As hard as it gets: nothing is cleaned up.
            std::process::abort();
        }
    });
}

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let place = Place::new();
    many(&place);
    let mut before = 0;
    for at in [1, 33, 50, 40] {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["resume::index_until_killed", "--exact", "--ignored"])
            .env("REPRISE_TEST_INDEX", place.documents().parent().unwrap())
            .env("REPRISE_TEST_KILL_AT", at.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(!status.success());
        let (index, _) = Index::open(&place.index_folder(), None).unwrap();
        let ready = index.status().unwrap().ready;
        assert!(ready >= before, "nothing that was committed is lost");
        before = ready;
        if ready > 0 {
            assert_eq!(found(&index, "file0"), ["000.txt"]);
        }
    }
    assert!(before >= 64, "{before}");
    let index = place.open();
    let rest = update(&index);
    assert_eq!(rest.read, FILES - before);
    for n in [0, 63, 64, 119] {
        assert_eq!(found(&index, &format!("file{n}")), [format!("{n:03}.txt")]);
    }
}
