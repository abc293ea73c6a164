//! Right files read back exactly; wrong files give an error that names the place and the remedy.

mod common;

use std::path::Path;

use common::{GgufWriter, Rng, small_gguf, string};
use reprise_kernels::quant::QuantType;
use reprise_model::gguf::{Array, Gguf, GgufError, Value};

fn error_of(bytes: Vec<u8>) -> String {
    Gguf::from_bytes(bytes)
        .expect_err("the file is broken")
        .to_string()
}

#[test]
fn a_valid_file_reads_back_whole() {
    let gguf = Gguf::from_bytes(small_gguf().bytes()).unwrap();
    assert_eq!(gguf.version(), 3);
    assert_eq!(gguf.str("general.architecture").unwrap(), "llama");
    assert_eq!(gguf.u32("a.u8").unwrap(), 7);
    assert_eq!(gguf.u32("a.u16").unwrap(), 7);
    assert_eq!(gguf.u64("a.u64").unwrap(), 1 << 40);
    assert_eq!(gguf.required::<i64>("a.i8").unwrap(), -1);
    assert_eq!(gguf.required::<i32>("a.i16").unwrap(), -7);
    assert_eq!(gguf.f32("a.f32").unwrap(), 1.5);
    assert_eq!(gguf.f32("a.f64").unwrap(), 2.5);
    assert!(gguf.bool("a.bool").unwrap());
    assert_eq!(
        gguf.str_array("a.strings").unwrap().iter().collect::<Vec<_>>(),
        ["one", "", "zwölf"]
    );
    assert_eq!(gguf.f32_array("a.f32s").unwrap(), [0.0, -1.0]);
    assert_eq!(gguf.i32_array("a.i32s").unwrap(), [1, 2, 3]);
    assert_eq!(gguf.required::<Vec<u32>>("a.i32s").unwrap(), [1, 2, 3]);
    assert_eq!(
        gguf.metadata().get("a.nested"),
        Some(&Value::Array(Array::Arrays(vec![Array::U32(vec![9])])))
    );
    let packed = gguf.require_tensor("packed").unwrap();
    assert_eq!(
        (packed.shape, packed.ty, packed.data),
        (&[64, 2][..], QuantType::Q4_0, &[1u8; 72][..])
    );
    assert_eq!((packed.row_len(), packed.rows()), (64, 2));
    assert_eq!(
        gguf.tensors().map(|tensor| tensor.name).collect::<Vec<_>>(),
        ["plain", "packed"]
    );
}

#[test]
fn version_2_reads_the_same() {
    let writer = small_gguf();
    let gguf = Gguf::from_bytes(writer.bytes_with(2, 2, 16, 32)).unwrap();
    assert_eq!(gguf.version(), 2);
}

#[test]
fn getters_name_the_key_and_what_it_holds() {
    let gguf = Gguf::from_bytes(small_gguf().bytes()).unwrap();
    let missing = gguf.u32("llama.block_count").unwrap_err().to_string();
    assert!(
        missing.contains("llama.block_count") && missing.contains("lacks"),
        "{missing}"
    );
    let kind = gguf.u32("general.architecture").unwrap_err().to_string();
    assert!(
        kind.contains("general.architecture") && kind.contains("is a string"),
        "{kind}"
    );
    let sign = gguf.u32("a.i32").unwrap_err().to_string();
    assert!(sign.contains("the number -7"), "{sign}");
    assert_eq!(gguf.optional::<f32>("nowhere").unwrap(), None);
    assert!(gguf.optional::<f32>("a.bool").is_err());
    let tensor = gguf.require_tensor("output.weight").unwrap_err().to_string();
    assert!(tensor.contains("output.weight"), "{tensor}");
}

#[test]
fn files_that_are_not_models_say_so() {
    let dir = std::env::temp_dir().join(format!("reprise-gguf-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let missing = Gguf::open(&dir.join("none.gguf")).unwrap_err();
    assert!(matches!(missing, GgufError::NotFound { .. }) && missing.to_string().contains("none.gguf"));
    assert!(matches!(
        Gguf::open(&dir).unwrap_err(),
        GgufError::Directory { .. }
    ));
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        Gguf::open(&path).map(|_| ()).unwrap_err().to_string()
    };
    let empty = write("empty.gguf", b"");
    assert!(
        empty.contains("empty") && empty.contains("download it again"),
        "{empty}"
    );
    let html = write("page.gguf", b"<!DOCTYPE html>");
    assert!(
        html.contains("page.gguf") && html.contains("\"<!DO\"") && html.contains("not a GGUF"),
        "{html}"
    );
    let short = write("short.gguf", b"GGUF\x03");
    assert!(short.contains("cut short") && short.contains("byte 4"), "{short}");
    #[cfg(unix)]
    assert!(matches!(
        Gguf::open(Path::new("/dev/null")).unwrap_err(),
        GgufError::NotAFile { .. }
    ));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_big_endian_file_and_other_versions_are_named() {
    assert!(error_of(b"GGUF\0\0\0\x03".to_vec()).contains("big-endian"));
    assert!(error_of(b"GGUF\x01\0\0\0".to_vec()).contains("version 1"));
    assert!(error_of(b"GGUF\x04\0\0\0".to_vec()).contains("version 4"));
}

#[test]
fn a_file_cut_anywhere_is_an_error_and_never_a_panic() {
    let whole = small_gguf().bytes();
    for len in 0..whole.len() {
        let error = error_of(whole[..len].to_vec());
        assert!(len < 4 || error.contains("download it again"), "{len}: {error}");
    }
    let error = error_of(whole[..whole.len() - 1].to_vec());
    assert!(
        error.contains("tensor \"packed\"") && error.contains("needs 72") && error.contains("71"),
        "{error}"
    );
}

#[test]
fn hostile_counts_are_refused_before_anything_is_reserved() {
    let huge = u64::MAX;
    for count in [huge, huge / 2, 1 << 40, 1 << 20] {
        assert!(error_of(small_gguf().bytes_with(3, count, 16, 32)).contains("tensors"));
        assert!(error_of(small_gguf().bytes_with(3, 2, count, 32)).contains("metadata entries"));
    }
    let length = |value: &[u8]| GgufWriter::default().entry("k", 8, value).bytes();
    assert!(
        error_of(length(&huge.to_le_bytes())).contains("\"k\"")
            || error_of(length(&huge.to_le_bytes())).contains("k at")
    );
    for type_id in 0..=12u32 {
        let array = [&type_id.to_le_bytes()[..], &(1u64 << 60).to_le_bytes(), &[0; 64]].concat();
        assert!(error_of(GgufWriter::default().entry("k", 9, &array).bytes()).contains("cut short"));
    }
}

#[test]
fn arrays_nested_too_deep_are_refused() {
    let mut value = [&4u32.to_le_bytes()[..], &1u64.to_le_bytes(), &9u32.to_le_bytes()].concat();
    for _ in 0..100_000 {
        value.extend_from_slice(&[0; 12]);
    }
    let level = [&9u32.to_le_bytes()[..], &1u64.to_le_bytes()].concat();
    let bytes = [level.repeat(100_000), value].concat();
    assert!(error_of(GgufWriter::default().entry("k", 9, &bytes).bytes()).contains("nested"));
}

#[test]
fn unknown_value_types_and_duplicates_are_named() {
    assert!(
        error_of(GgufWriter::default().entry("strange", 99, &[0]).bytes())
            .contains("\"strange\" has the value type 99")
    );
    assert!(
        error_of(GgufWriter::default().u32("twice", 1).u32("twice", 1).bytes())
            .contains("\"twice\" occurs twice")
    );
    let twin = GgufWriter::default()
        .tensor("t", &[8], 0, &[0; 32])
        .tensor("t", &[8], 0, &[0; 32]);
    assert!(error_of(twin.bytes()).contains("\"t\" occurs twice"));
    let key = GgufWriter::default();
    let mut bytes = key.bytes_with(3, 0, 1, 1);
    bytes.extend(string(&[0xff, 0xfe]));
    bytes.extend([0; 16]);
    assert!(error_of(bytes).contains("not text"));
}

#[test]
fn impossible_tensors_are_named() {
    let one = |dims: &[u64], type_id: u32, offset: u64| {
        error_of(
            GgufWriter::default()
                .tensor("w", &[8], 0, &[0; 64])
                .tensor_at("bad.weight", dims, type_id, offset)
                .bytes(),
        )
    };
    for (error, part) in [
        (one(&[8], 99, 32), "type number 99"),
        (one(&[], 0, 32), "0 dimensions"),
        (one(&[1; 5], 0, 32), "5 dimensions"),
        (one(&[8, 0], 0, 32), "empty dimension"),
        (one(&[40], 2, 32), "whole blocks of 32 (Q4_0)"),
        (one(&[u64::MAX, 2], 0, 32), "too large"),
        (one(&[1 << 32, 1 << 31], 0, 32), "too large"),
        (one(&[8], 0, 33), "not a multiple of 32"),
        (one(&[8], 0, 1 << 50), "cut short"),
        (one(&[8], 0, u64::MAX - 31), "cut short"),
        (one(&[8], 0, 0), "overlaps"),
    ] {
        assert!(
            error.contains(part) && error.contains("bad.weight"),
            "{part}: {error}"
        );
    }
    let types = one(&[8], 99, 32);
    assert!(types.contains("Q4_K"), "{types}");
}

#[test]
fn alignment_must_be_a_power_of_two_and_is_honoured() {
    let with = |alignment: u32| {
        GgufWriter::default()
            .u32("general.alignment", alignment)
            .tensor("t", &[8], 0, &[9; 32])
    };
    assert!(error_of(with(0).bytes()).contains("general.alignment"));
    assert!(error_of(with(48).bytes()).contains("the number 48"));
    let gguf = Gguf::from_bytes(with(256).bytes_with(3, 1, 1, 256)).unwrap();
    assert_eq!(gguf.tensor_range("t").unwrap().start % 256, 0);
    assert_eq!(gguf.tensor("t").unwrap().data, [9; 32]);
}

#[test]
fn one_part_of_a_split_model_says_how_to_join_it() {
    let part = GgufWriter::default().entry("split.count", 2, &3u16.to_le_bytes());
    assert!(error_of(part.bytes()).contains("one of 3 parts"));
}

#[test]
fn a_vocabulary_alone_needs_no_data_section() {
    let mut bytes = GgufWriter::default().str("general.architecture", "llama").bytes();
    bytes.truncate(24 + 8 + 20 + 4 + 8 + 5);
    assert_eq!(Gguf::from_bytes(bytes).unwrap().tensors().len(), 0);
}

#[test]
fn no_mutation_makes_the_parser_panic() {
    let whole = small_gguf().bytes();
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    let interesting = [
        0u64,
        1,
        0x7f,
        0xff,
        0xffff,
        0x7fff_ffff,
        0xffff_ffff,
        u64::MAX,
        u64::MAX / 2,
        1 << 32,
    ];
    for _ in 0..30_000 {
        let mut bytes = whole.clone();
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len());
            match rng.below(4) {
                0 => bytes[at] = rng.next() as u8,
                1 => bytes[at] ^= 1 << rng.below(8),
                2 => {
                    let value = interesting[rng.below(interesting.len())].to_le_bytes();
                    let len = 8.min(bytes.len() - at);
                    bytes[at..at + len].copy_from_slice(&value[..len]);
                }
                _ => bytes.truncate(at.max(1)),
            }
        }
        if let Ok(gguf) = Gguf::from_bytes(bytes) {
            for tensor in gguf.tensors() {
                assert_eq!(
                    Some(tensor.data.len()),
                    tensor.ty.bytes_for(tensor.row_len() * tensor.rows())
                );
            }
        }
    }
    for len in 0..2_000 {
        let mut bytes: Vec<u8> = (0..len).map(|_| rng.next() as u8).collect();
        let begin = bytes.len().min(8);
        bytes[..begin].copy_from_slice(&b"GGUF\x03\0\0\0"[..begin]);
        assert!(Gguf::from_bytes(bytes).is_err());
    }
}

#[test]
fn a_real_model_opens_and_its_pages_can_be_released() {
    let gguf = Gguf::open(&common::smollm2()).unwrap();
    assert_eq!(gguf.str("general.architecture").unwrap(), "llama");
    assert_eq!(gguf.u32("llama.block_count").unwrap(), 30);
    let embedding = gguf.require_tensor("token_embd.weight").unwrap();
    assert_eq!(embedding.shape, [576, 49152]);
    gguf.read_sequentially();
    gguf.will_need("token_embd.weight");
    let sum = |data: &[u8]| data.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    let before = sum(embedding.data);
    let full = resident_kib();
    gguf.release("token_embd.weight");
    if let (Some(full), Some(after)) = (full, resident_kib()) {
        let released = full.saturating_sub(after) * 1024;
        assert!(
            released > embedding.data.len() as u64 / 2,
            "{released} bytes left memory"
        );
    }
    assert_eq!(sum(embedding.data), before);
    gguf.release_all();
}

/// File pages in this process's resident memory.
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("RssFile:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
