//! What the system tells of a process, and its file cache.

use std::path::Path;

/// Processor seconds this process has taken so far, on all threads.
#[cfg(unix)]
pub fn cpu_seconds() -> Option<f64> {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

#[cfg(not(unix))]
pub fn cpu_seconds() -> Option<f64> {
    None
}

/// Processor seconds another process has taken so far.
#[cfg(target_os = "linux")]
pub fn cpu_seconds_of(process: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in brackets, may hold anything; utime and stime are the twelfth and thirteenth behind it.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) as f64 / rustix::param::clock_ticks_per_second() as f64)
}

#[cfg(not(target_os = "linux"))]
pub fn cpu_seconds_of(_process: u32) -> Option<f64> {
    None
}

/// Bytes this process has read from files so far, those in the system's file cache included.
pub fn read_bytes() -> Option<u64> {
    let io = std::fs::read_to_string("/proc/self/io").ok()?;
    let line = io.lines().find_map(|line| line.strip_prefix("rchar:"))?;
    line.trim().parse().ok()
}

/// Whether files were read from the disk or from the system's file cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileCache {
    /// They were dropped from it.
    Dropped,
    /// The system kept them: reading them took no disk.
    Kept,
    /// The system does not say.
    Unknown,
}

impl FileCache {
    /// For JSON.
    pub fn name(self) -> &'static str {
        match self {
            FileCache::Dropped => "dropped",
            FileCache::Kept => "kept",
            FileCache::Unknown => "unknown",
        }
    }
}

/// Drops a folder's files from the system's file cache, and says what came of it.
#[cfg(target_os = "linux")]
pub fn drop_file_cache(folder: &Path) -> FileCache {
    let mut state = FileCache::Unknown;
    // A page that the system is busy with stays at first.
    for _ in 0..5 {
        state = drop_files(folder);
        if state != FileCache::Kept {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    state
}

#[cfg(target_os = "linux")]
fn drop_files(folder: &Path) -> FileCache {
    let mut largest = (0, None);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(facts) = entry.metadata() else { continue };
            if facts.is_dir() {
                folders.push(entry.path());
            } else if let Ok(file) = std::fs::File::open(entry.path()) {
                drop_file(&file);
                if facts.len() > largest.0 {
                    largest = (facts.len(), Some(file));
                }
            }
        }
    }
    let Some(file) = largest.1 else {
        return FileCache::Unknown;
    };
    let state = cached(&file, largest.0 / 2);
    // Looking may have brought it back.
    drop_file(&file);
    state
}

#[cfg(target_os = "linux")]
fn drop_file(file: &std::fs::File) {
    // What is not on the disk yet is not dropped.
    let _ = file.sync_data();
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
}

/// Whether a byte of a file could be had without the disk.
#[cfg(target_os = "linux")]
fn cached(file: &std::fs::File, at: u64) -> FileCache {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    let mut byte = [0];
    let mut bytes = [std::io::IoSliceMut::new(&mut byte)];
    match preadv2(file, &mut bytes, at, ReadWriteFlags::NOWAIT) {
        Ok(1..) => FileCache::Kept,
        Err(Errno::AGAIN) => FileCache::Dropped,
        _ => FileCache::Unknown,
    }
}

#[cfg(not(target_os = "linux"))]
pub fn drop_file_cache(_folder: &Path) -> FileCache {
    FileCache::Unknown
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn processor_time_grows_and_is_found_of_others_too() {
        let before = cpu_seconds().unwrap();
        let mut sum = 0u64;
        while cpu_seconds().unwrap() - before < 0.02 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(cpu_seconds_of(std::process::id()).unwrap() > 0.0);
        assert_eq!(cpu_seconds_of(u32::MAX), None);
    }

    #[test]
    fn files_are_dropped_from_the_cache_where_the_system_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, vec![1; 1 << 20]).unwrap();
        drop_file_cache(folder.path());
        assert_eq!(std::fs::read(&file).unwrap().len(), 1 << 20);
        // It was just read.
        let state = cached(&std::fs::File::open(&file).unwrap(), 1 << 19);
        assert!(state != FileCache::Dropped, "{state:?}");
        assert_eq!(
            drop_file_cache(&folder.path().join("nothing")),
            FileCache::Unknown
        );
    }
}
