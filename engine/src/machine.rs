//! The machine under the engine: what benchmarks state shares of, and how much memory the process takes.

use reprise_kernels::isa::Isa;
use reprise_kernels::peak;

/// Ceilings measured on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Ceilings {
    /// 8-bit multiply-and-add operations a second; `None` where the sequence is not measured.
    pub integer_ops: Option<f64>,
    /// Bytes read from memory a second.
    pub read_bytes: f64,
}

/// The commit this was built from; `-dirty` where the source had changes.
pub const COMMIT: &str = env!("REPRISE_COMMIT");

impl Ceilings {
    /// Measures for about a second.
    pub fn measure(threads: usize) -> Ceilings {
        Ceilings {
            integer_ops: peak::integer_ops(Isa::best(), threads),
            read_bytes: peak::read_bytes(threads),
        }
    }
}

/// The most memory this process has had resident, in bytes; `None` where the system does not say (only Linux does
/// here).
pub fn peak_resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim()
        .strip_suffix(" kB")?
        .trim()
        .parse::<u64>()
        .ok()
        .map(|kb| kb * 1_024)
}

/// The machine and this build, in one line.
pub fn describe() -> String {
    let model = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        text.lines().find_map(|line| {
            Some(
                line.strip_prefix("model name")?
                    .split_once(':')?
                    .1
                    .trim()
                    .to_owned(),
            )
        })
    });
    format!(
        "{}, {} cores, {} {}, reprise {} at {}",
        model.unwrap_or_else(|| "processor not named by the system".to_owned()),
        num_cpus::get_physical(),
        std::env::consts::OS,
        std::env::consts::ARCH,
        env!("CARGO_PKG_VERSION"),
        COMMIT,
    )
}
