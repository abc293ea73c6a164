//! A token step allocates nothing: neither in the backend nor in the kernels.

mod common;

use common::{Model, tiny};
use reprise_engine::backend::{GraphCall, GraphKind, Outputs, Stretch};
use reprise_kv::{KvFormat, KvProfile, LayerShape};
use std::alloc::{GlobalAlloc, Layout, System};
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

fn profile(shapes: &[LayerShape]) -> KvProfile {
    KvProfile::uniform(shapes, KvFormat::Q8, KvFormat::Tq4)
}

// One test alone in its binary: others would allocate meanwhile.
#[test]
fn steps_allocate_nothing_once_positions_are_prepared() {
    for name in ["tiny-llama3-q4_k.gguf", "tiny-gemma3-mixed.gguf"] {
        for profile in [common::half, profile] {
            let mut model = Model::load(&tiny(name), 2, 1_024, &profile);
            model.sequences[0].prepare(1_024, None).unwrap();
            model.sequences[1].prepare(1_024, None).unwrap();
            let tokens = [5u32; 300];
            // The first calls may set up what a thread keeps.
            let mut run = |kind, tokens: &[u32], start| {
                let stretches = [0, 1].map(|sequence| Stretch::new(sequence, start, tokens));
                let stretches = if tokens.len() == 1 {
                    &stretches[..]
                } else {
                    &stretches[..1]
                };
                model
                    .call(&GraphCall {
                        kind,
                        stretches,
                        outputs: Outputs::Last,
                    })
                    .unwrap();
            };
            run(GraphKind::Prefill, &tokens, 0);
            run(GraphKind::Decode, &tokens[..1], 300);
            let before = ALLOCATIONS.load(Ordering::SeqCst);
            run(GraphKind::Prefill, &tokens, 301);
            for position in 601..700 {
                run(GraphKind::Decode, &tokens[..1], position);
            }
            assert_eq!(ALLOCATIONS.load(Ordering::SeqCst) - before, 0, "{name}");
        }
    }
}
