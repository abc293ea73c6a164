//! Packing and unpacking of whole groups with byte shuffles: a group of keys is a small matrix to transpose. The
//! registers are of 128 bits, which is what a group fills.

use super::{KvFormat, Side, TILE_KEYS, Vectors, key_slot};
use std::arch::x86_64::*;

/// Swaps the index of a register for the index of a 16-bit word in it: eight rows of eight become eight columns.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose_words(mut x: [__m128i; 8]) -> [__m128i; 8] {
    // Each round moves the highest bit of the word's index to the register's, and the register's to the word's lowest.
    for _ in 0..3 {
        let [a, b, c, d, e, f, g, h] = x;
        x = [
            _mm_unpacklo_epi16(a, e),
            _mm_unpackhi_epi16(a, e),
            _mm_unpacklo_epi16(b, f),
            _mm_unpackhi_epi16(b, f),
            _mm_unpacklo_epi16(c, g),
            _mm_unpackhi_epi16(c, g),
            _mm_unpacklo_epi16(d, h),
            _mm_unpackhi_epi16(d, h),
        ];
    }
    x
}

/// As one round of [`transpose_words`], for bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn interleave_bytes([a, b, c, d, e, f, g, h]: [__m128i; 8]) -> [__m128i; 8] {
    [
        _mm_unpacklo_epi8(a, e),
        _mm_unpackhi_epi8(a, e),
        _mm_unpacklo_epi8(b, f),
        _mm_unpackhi_epi8(b, f),
        _mm_unpacklo_epi8(c, g),
        _mm_unpackhi_epi8(c, g),
        _mm_unpacklo_epi8(d, h),
        _mm_unpackhi_epi8(d, h),
    ]
}

/// # Safety
/// AVX2. The tile is whole, `count` positions of whole groups starting at `slot` are inside it, and `out` has room for
/// them.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn pack_groups(vectors: Vectors, tile: &[u8], slot: usize, count: usize, out: &mut [u8]) {
    let group = vectors.group();
    for (i, out) in out
        .chunks_exact_mut(group * vectors.bytes())
        .take(count / group)
        .enumerate()
    {
        // SAFETY: the caller's promise, for one group.
        unsafe { pack_group(vectors, tile, slot + i * group, out) };
    }
}

/// # Safety
/// AVX2. `tile` is the start of a tile of these vectors, `count` positions of whole groups starting at `slot` are inside
/// it and nobody else at them, and `run` holds them.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn unpack_groups(vectors: Vectors, tile: *mut u8, slot: usize, count: usize, run: &[u8]) {
    let group = vectors.group();
    for (i, run) in run
        .chunks_exact(group * vectors.bytes())
        .take(count / group)
        .enumerate()
    {
        // SAFETY: the caller's promise, for one group.
        unsafe { unpack_group(vectors, tile, slot + i * group, run) };
    }
}

/// # Safety
/// AVX2. The tile is whole, the group starting at `slot` is inside it, and `out` has room for it.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn pack_group(vectors: Vectors, tile: &[u8], slot: usize, out: &mut [u8]) {
    let (dim, bytes) = (vectors.dim, vectors.bytes());
    let (tile, out) = (tile.as_ptr(), out.as_mut_ptr());
    // SAFETY: by the layouts, every read is inside the tile and every write inside the group's vectors; a dimension is
    // a multiple of 16, and of 64 for TQ4.
    unsafe {
        let load = |at: usize| _mm_loadu_si128(tile.add(at).cast());
        let store = |at: usize, x: __m128i| _mm_storeu_si128(out.add(at).cast(), x);
        match (vectors.format, vectors.side) {
            (KvFormat::F16, _) => std::ptr::copy_nonoverlapping(tile.add(slot * bytes), out, bytes),
            (KvFormat::Q8, Side::Key) => {
                for pair in (0..dim / 2).step_by(8) {
                    let rows = std::array::from_fn(|r| load(((pair + r) * TILE_KEYS + slot) * 2));
                    for (position, codes) in transpose_words(rows).into_iter().enumerate() {
                        store(position * bytes + 2 * pair, codes);
                    }
                }
            }
            (KvFormat::Q8, Side::Value) => {
                let low = _mm_set1_epi16(255);
                for d in (0..dim).step_by(16) {
                    let at = (slot / 2 * dim + d) * 2;
                    let (a, b) = (load(at), load(at + 16));
                    store(d, _mm_packus_epi16(_mm_and_si128(a, low), _mm_and_si128(b, low)));
                    let odd = _mm_packus_epi16(_mm_srli_epi16::<8>(a), _mm_srli_epi16::<8>(b));
                    store(bytes + d, odd);
                }
            }
            (KvFormat::Tq4, Side::Key) => {
                for pair in (0..dim / 2).step_by(16) {
                    let half =
                        |r: usize| _mm_loadl_epi64(tile.add((pair + r) * TILE_KEYS + key_slot(slot)).cast());
                    let rows = std::array::from_fn(|r| _mm_unpacklo_epi8(half(r), half(r + 8)));
                    let columns = interleave_bytes(interleave_bytes(interleave_bytes(rows)));
                    for (position, codes) in columns.into_iter().enumerate() {
                        store(position * bytes + pair, codes);
                    }
                }
            }
            (KvFormat::Tq4, Side::Value) => {
                let low = _mm_set1_epi8(15);
                // A pair of dimensions a and b becomes a + 16 b.
                let join = _mm_set1_epi16(0x1001);
                for byte in (0..dim / 2).step_by(16) {
                    let both = load(slot * dim / 2 + byte);
                    let (a, b) = (
                        _mm_and_si128(both, low),
                        _mm_and_si128(_mm_srli_epi16::<4>(both), low),
                    );
                    let first = _mm_maddubs_epi16(_mm_unpacklo_epi64(a, b), join);
                    let second = _mm_maddubs_epi16(_mm_unpackhi_epi64(a, b), join);
                    store(byte, _mm_packus_epi16(first, second));
                }
            }
        }
        if let Some(at) = vectors.unit_at(slot) {
            for position in 0..vectors.group() {
                let unit = tile.add(at + 2 * position).cast::<u16>().read_unaligned();
                let to = out.add(position * bytes + vectors.code_bytes()).cast::<u16>();
                to.write_unaligned(unit);
            }
        }
    }
}

/// # Safety
/// AVX2. `tile` is the start of a tile of these vectors, the group starting at `slot` is inside it and nobody else at
/// it, and `run` holds it.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn unpack_group(vectors: Vectors, tile: *mut u8, slot: usize, run: &[u8]) {
    let (dim, bytes) = (vectors.dim, vectors.bytes());
    let run = run.as_ptr();
    // SAFETY: by the layouts, every read is inside the group's vectors and every write at the group's bytes of the
    // tile; a dimension is a multiple of 16, and of 64 for TQ4.
    unsafe {
        let load = |at: usize| _mm_loadu_si128(run.add(at).cast());
        let store = |at: usize, x: __m128i| _mm_storeu_si128(tile.add(at).cast(), x);
        match (vectors.format, vectors.side) {
            (KvFormat::F16, _) => std::ptr::copy_nonoverlapping(run, tile.add(slot * bytes), bytes),
            (KvFormat::Q8, Side::Key) => {
                for pair in (0..dim / 2).step_by(8) {
                    let columns = std::array::from_fn(|position| load(position * bytes + 2 * pair));
                    for (r, row) in transpose_words(columns).into_iter().enumerate() {
                        store(((pair + r) * TILE_KEYS + slot) * 2, row);
                    }
                }
            }
            (KvFormat::Q8, Side::Value) => {
                for d in (0..dim).step_by(16) {
                    let at = (slot / 2 * dim + d) * 2;
                    let (even, odd) = (load(d), load(bytes + d));
                    store(at, _mm_unpacklo_epi8(even, odd));
                    store(at + 16, _mm_unpackhi_epi8(even, odd));
                }
            }
            (KvFormat::Tq4, Side::Key) => {
                for pair in (0..dim / 2).step_by(16) {
                    let columns = std::array::from_fn(|position| load(position * bytes + pair));
                    let rows = interleave_bytes(interleave_bytes(interleave_bytes(columns)));
                    for (r, rows) in rows.into_iter().enumerate() {
                        let at = (pair + 2 * r) * TILE_KEYS + key_slot(slot);
                        _mm_storel_epi64(tile.add(at).cast(), rows);
                        let high = _mm_unpackhi_epi64(rows, rows);
                        _mm_storel_epi64(tile.add(at + TILE_KEYS).cast(), high);
                    }
                }
            }
            (KvFormat::Tq4, Side::Value) => {
                let low = _mm_set1_epi8(15);
                for byte in (0..dim / 2).step_by(16) {
                    let both = load(byte);
                    let even = _mm_and_si128(both, low);
                    let odd = _mm_and_si128(_mm_srli_epi16::<4>(both), low);
                    let (a, b) = (_mm_unpacklo_epi8(even, odd), _mm_unpackhi_epi8(even, odd));
                    let first = _mm_unpacklo_epi64(a, b);
                    let second = _mm_slli_epi16::<4>(_mm_unpackhi_epi64(a, b));
                    store(slot * dim / 2 + byte, _mm_or_si128(first, second));
                }
            }
        }
        if let Some(at) = vectors.unit_at(slot) {
            for position in 0..vectors.group() {
                let from = run.add(position * bytes + vectors.code_bytes()).cast::<u16>();
                let to = tile.add(at + 2 * position).cast::<u16>();
                to.write_unaligned(from.read_unaligned());
            }
        }
    }
}
