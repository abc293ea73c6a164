//! Which instruction set the kernels use, decided once at run time.

use std::sync::OnceLock;

/// An instruction-set level with kernels of its own. Every level computes the same integers; the floating-point steps
/// are fused multiply-adds in the same order everywhere, so results agree to the last bit unless a kernel says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isa {
    /// Plain Rust: the twin every other level is tested against.
    Portable,
    /// x86-64 with AVX2, FMA and F16C.
    Avx2,
    /// x86-64 with AVX-512 F/BW/VL and VNNI.
    Avx512Vnni,
    /// 64-bit Arm with the dot-product extension.
    NeonDot,
}

impl Isa {
    /// Every level this machine can run, plainest first.
    pub fn available() -> Vec<Isa> {
        let mut levels = vec![Isa::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = std::arch::is_x86_feature_detected!("avx2")
                && std::arch::is_x86_feature_detected!("fma")
                && std::arch::is_x86_feature_detected!("f16c");
            if avx2 {
                levels.push(Isa::Avx2);
            }
            if avx2
                && std::arch::is_x86_feature_detected!("avx512f")
                && std::arch::is_x86_feature_detected!("avx512bw")
                && std::arch::is_x86_feature_detected!("avx512vl")
                && std::arch::is_x86_feature_detected!("avx512vnni")
            {
                levels.push(Isa::Avx512Vnni);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("dotprod") {
            levels.push(Isa::NeonDot);
        }
        levels
    }

    /// The fastest level this machine can run. The environment variable `REPRISE_ISA` (`portable`, `avx2`,
    /// `avx512vnni`, `neondot`) picks a lower one, for tests and for comparisons.
    pub fn best() -> Isa {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| {
            let levels = Isa::available();
            let wanted = std::env::var("REPRISE_ISA").ok();
            let asked = wanted.and_then(|name| levels.iter().copied().find(|isa| isa.name() == name));
            asked.or(levels.last().copied()).unwrap_or(Isa::Portable)
        })
    }

    /// A short name, for logs and benchmark tables.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::Avx512Vnni => "avx512vnni",
            Isa::NeonDot => "neondot",
        }
    }
}
