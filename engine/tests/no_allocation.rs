//! A token step allocates nothing: neither in the backend nor in the kernels.

use reprise_engine::backend::{Backend, GraphCall, GraphKind, Outputs};
use reprise_engine::cpu::CpuBackend;
use reprise_kv::KvMemory;
use reprise_model::arch::Architecture;
use reprise_model::gguf::Gguf;
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

// One test alone in its binary: others would allocate meanwhile.
#[test]
fn steps_allocate_nothing_once_positions_are_reserved() {
    for model in ["tiny-llama3-q4_k.gguf", "tiny-gemma3-mixed.gguf"] {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../tests/golden/tiny")
            .join(model);
        let gguf = Arc::new(Gguf::open(&path).unwrap());
        let arch = Architecture::from_gguf(&gguf).unwrap();
        let mut kv = KvMemory::new(&CpuBackend::kv_shape(&arch), 1_024);
        let mut backend = CpuBackend::load(gguf, arch, 2, 1_024).unwrap();
        kv.reserve(1_024).unwrap();
        let tokens = [5u32; 300];
        // The first calls may set up what a thread keeps.
        let mut run = |kind, tokens: &[u32], start| {
            backend
                .run(
                    &GraphCall {
                        kind,
                        tokens,
                        start,
                        outputs: Outputs::Last,
                    },
                    &mut kv,
                )
                .unwrap();
        };
        run(GraphKind::Prefill, &tokens, 0);
        run(GraphKind::Decode, &tokens[..1], 300);
        let before = ALLOCATIONS.load(Ordering::SeqCst);
        run(GraphKind::Prefill, &tokens, 301);
        for position in 601..700 {
            run(GraphKind::Decode, &tokens[..1], position);
        }
        assert_eq!(ALLOCATIONS.load(Ordering::SeqCst) - before, 0, "{model}");
    }
}
