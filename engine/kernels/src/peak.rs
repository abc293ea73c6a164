//! What this machine can do: the ceilings that benchmark tables state shares of.

use crate::buffer::Buffer;
use crate::isa::Isa;
use std::time::Instant;

/// Runs `work` on `threads` threads at once, three times, and returns the least seconds.
fn fastest(threads: usize, work: &(dyn Fn() -> u64 + Sync)) -> f64 {
    (0..3)
        .map(|_| {
            let begin = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| std::hint::black_box(work()));
                }
            });
            begin.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

/// Integer operations (multiplications and additions) a second of the sequence 8-bit multiply, widen, add, which
/// products of int8 vectors come down to; `None` where this is not measured.
pub fn integer_ops(isa: Isa, threads: usize) -> Option<f64> {
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
        const ROUNDS: u64 = 20_000_000;
        // SAFETY: both levels imply AVX2, and `isa` came from detection.
        let seconds = fastest(threads, &|| unsafe { avx2::multiply_add(ROUNDS) });
        return Some((64 * avx2::CHAINS * threads as u64 * ROUNDS) as f64 / seconds);
    }
    let _ = (isa, threads);
    None
}

/// Bytes a second read from memory, each thread from its own half a gigabyte (in all).
pub fn read_bytes(threads: usize) -> f64 {
    const WORDS: usize = (512 << 20) / 4;
    let mut buffer = Buffer::<i32>::zeroed(WORDS);
    buffer.fill(1);
    let share = WORDS / threads.max(1);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let seconds = fastest(threads, &|| {
        let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % threads;
        let mut lanes = [0i32; 32];
        for chunk in buffer[index * share..(index + 1) * share].as_chunks::<32>().0 {
            for (lane, value) in lanes.iter_mut().zip(chunk) {
                *lane = lane.wrapping_add(*value);
            }
        }
        lanes.iter().map(|&lane| lane as u64).sum()
    });
    (share * threads * 4) as f64 / seconds
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    pub(super) const CHAINS: u64 = 12;

    /// # Safety
    /// AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn multiply_add(rounds: u64) -> u64 {
        let x = _mm256_set1_epi8(3);
        let ones = _mm256_set1_epi16(1);
        let mut sums = [_mm256_setzero_si256(); CHAINS as usize];
        let mut w = _mm256_set1_epi8(1);
        for _ in 0..rounds {
            for sum in &mut sums {
                // SAFETY: no instruction at all; it keeps the compiler from computing equal products once.
                unsafe { std::arch::asm!("/* {0} */", inout(ymm_reg) w, options(pure, nomem, nostack)) };
                let product = _mm256_madd_epi16(_mm256_maddubs_epi16(x, w), ones);
                *sum = _mm256_add_epi32(*sum, product);
            }
        }
        let total = sums
            .into_iter()
            .fold(_mm256_setzero_si256(), |a, b| _mm256_add_epi32(a, b));
        _mm256_extract_epi64::<0>(total) as u64
    }
}
