//! Parsers unpack a PDF's streams whole. A small file can hold a stream of gigabytes, so large streams are unpacked here first, in
//! pieces that are thrown away.

use std::io::Read;

use flate2::read::ZlibDecoder;
use memchr::memmem;

use crate::error::Fault;
use crate::extract::guard::Watch;

/// A stream that unpacks to more is refused.
const LIMIT_BYTES: usize = 256 << 20;
/// Shorter streams cannot become that long: a byte unpacks to about a thousand at most.
const HARMLESS_BYTES: usize = LIMIT_BYTES / 1_100;
/// How far before its stream a dictionary is looked at.
const DICTIONARY_BYTES: usize = 512;
/// Streams that are packed twice are unpacked to this once.
const INNER_BYTES: usize = 32 << 20;

/// An error when a stream of the file unpacks to more than any document needs.
pub(super) fn check(bytes: &[u8], watch: &Watch) -> Result<(), Fault> {
    let mut buffer = vec![0; 64 << 10];
    let ends: Vec<usize> = memmem::find_iter(bytes, b"endstream").collect();
    for (start, end) in memmem::find_iter(bytes, b"stream")
        .filter(|&at| at < 3 || &bytes[at - 3..at] != b"end")
        .map(|at| {
            (
                at,
                ends[ends.partition_point(|&end| end < at)..]
                    .first()
                    .copied()
                    .unwrap_or(bytes.len()),
            )
        })
    {
        watch.check()?;
        let dictionary = &bytes[start.saturating_sub(DICTIONARY_BYTES)..start];
        let dictionary = match memmem::rfind(dictionary, b"obj") {
            Some(begin) => &dictionary[begin..],
            None => dictionary,
        };
        let packings =
            memmem::find_iter(dictionary, b"/Fl").count() + memmem::find_iter(dictionary, b"/LZW").count();
        let body = bytes[start + b"stream".len()..end.max(start + b"stream".len())].trim_ascii_start();
        if packings > 1 {
            let mut inner = Vec::new();
            // What cannot be unpacked ends early, here and in the parser.
            let _ = ZlibDecoder::new(body)
                .take(INNER_BYTES as u64)
                .read_to_end(&mut inner);
            if inner.len() == INNER_BYTES {
                return Err(too_large());
            }
            within(&inner, &mut buffer, watch)?;
        } else if body.len() > HARMLESS_BYTES {
            within(body, &mut buffer, watch)?;
        }
    }
    Ok(())
}

fn within(packed: &[u8], buffer: &mut [u8], watch: &Watch) -> Result<(), Fault> {
    let mut unpacker = ZlibDecoder::new(packed);
    let mut unpacked = 0;
    while let Ok(count) = unpacker.read(buffer) {
        if count == 0 {
            break;
        }
        unpacked += count;
        if unpacked > LIMIT_BYTES {
            return Err(too_large());
        }
        watch.check()?;
    }
    Ok(())
}

fn too_large() -> Fault {
    Fault::UnpacksTooLarge {
        limit_mib: (LIMIT_BYTES >> 20) as u64,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;
    use crate::document::ReadOptions;
    use crate::extract::guard::LIMIT;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    fn stream(dictionary: &str, body: &[u8]) -> Vec<u8> {
        [
            b"%PDF-1.5\n1 0 obj <<",
            dictionary.as_bytes(),
            b">> stream\n",
            body,
            b"\nendstream endobj",
        ]
        .concat()
    }

    #[test]
    fn streams_that_unpack_to_gigabytes_are_refused() {
        let watch = Watch::new(&ReadOptions::default(), LIMIT);
        let twice = packed(&packed(&vec![0; LIMIT_BYTES + 1]));
        let bomb = stream("/Filter [/FlateDecode /FlateDecode]", &twice);
        assert!(bomb.len() < 10_000);
        assert!(matches!(check(&bomb, &watch), Err(Fault::UnpacksTooLarge { .. })));
        assert_eq!(
            check(&stream("/Filter /FlateDecode", &packed(b"text")), &watch),
            Ok(())
        );
    }
}
