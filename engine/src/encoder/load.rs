//! Reads the weights tensor by tensor, so that the file is never in memory as a whole, and packs them.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use reprise_kernels::half::{f16_to_f32, f32_to_f16};
use reprise_kernels::packed::{PackedMatrix, Packing};
use reprise_kernels::quant::{QuantType, quantize};
use safetensors::Dtype;
use safetensors::tensor::Metadata;

use super::{EncoderError, MOST_TOKENS};

/// Values of a head; BERT's of every size have it so except the smallest.
pub(super) const HEAD: usize = 32;
/// Longer headers belong to something else.
const HEADER_LIMIT_BYTES: u64 = 1 << 20;
/// How matrices are packed. Eight bits keep vectors within 0.9995 of the exact ones (`tests/encoder.rs`).
const PACKED: QuantType = QuantType::Q8_0;

pub(super) struct Weights {
    pub(super) width: usize,
    pub(super) inner: usize,
    /// Word embeddings in binary16.
    words: Vec<u16>,
    /// Of a position and the only kind of token there is, together.
    positions: Vec<f32>,
    pub(super) norm: Norm,
    pub(super) layers: Vec<Layer>,
}

pub(super) struct Norm {
    pub(super) weight: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

pub(super) struct Linear {
    pub(super) weights: PackedMatrix,
    pub(super) bias: Vec<f32>,
}

pub(super) struct Layer {
    /// Queries, keys and values in one product.
    pub(super) qkv: Linear,
    pub(super) out: Linear,
    pub(super) out_norm: Norm,
    pub(super) up: Linear,
    pub(super) down: Linear,
    pub(super) down_norm: Norm,
}

impl Weights {
    pub(super) fn vocabulary(&self) -> usize {
        self.words.len() / self.width
    }

    /// Writes what a token at a position begins with.
    pub(super) fn embed(&self, id: u32, position: usize, out: &mut [f32]) {
        let word = &self.words[id as usize * self.width..][..self.width];
        let place = &self.positions[position * self.width..][..self.width];
        for ((out, &word), place) in out.iter_mut().zip(word).zip(place) {
            *out = f16_to_f32(word) + place;
        }
    }
}

pub(super) fn weights(path: &Path) -> Result<Weights, EncoderError> {
    let mut tensors = Tensors::open(path)?;
    let words = tensors.read("embeddings.word_embeddings.weight", &[None, None])?;
    let width = tensors.shape("embeddings.word_embeddings.weight")?[1];
    if width == 0 || !width.is_multiple_of(HEAD) {
        return Err(tensors.broken(format!("vectors of {width} values are no heads of {HEAD}")));
    }
    let mut positions = tensors.read("embeddings.position_embeddings.weight", &[None, Some(width)])?;
    if positions.len() < MOST_TOKENS * width {
        return Err(tensors.broken("it knows too few positions".into()));
    }
    let kinds = tensors.read("embeddings.token_type_embeddings.weight", &[None, Some(width)])?;
    for row in positions.chunks_exact_mut(width) {
        row.iter_mut()
            .zip(&kinds)
            .for_each(|(value, kind)| *value += kind);
    }
    let norm = tensors.norm("embeddings.LayerNorm", width)?;
    let mut layers = Vec::new();
    let mut inner = 0;
    while tensors.has(&format!("encoder.layer.{}.output.dense.weight", layers.len())) {
        let at = format!("encoder.layer.{}", layers.len());
        inner = tensors.shape(&format!("{at}.intermediate.dense.weight"))?[0];
        let qkv = ["query", "key", "value"].map(|part| format!("{at}.attention.self.{part}"));
        layers.push(Layer {
            qkv: tensors.linear(&qkv, width, width)?,
            out: tensors.linear(&[format!("{at}.attention.output.dense")], width, width)?,
            out_norm: tensors.norm(&format!("{at}.attention.output.LayerNorm"), width)?,
            up: tensors.linear(&[format!("{at}.intermediate.dense")], inner, width)?,
            down: tensors.linear(&[format!("{at}.output.dense")], width, inner)?,
            down_norm: tensors.norm(&format!("{at}.output.LayerNorm"), width)?,
        });
    }
    if layers.is_empty() {
        return Err(tensors.broken("it has no layers".into()));
    }
    let words = words.into_iter().map(f32_to_f16).collect();
    Ok(Weights {
        width,
        inner,
        words,
        positions,
        norm,
        layers,
    })
}

/// A safetensors file.
struct Tensors<'a> {
    path: &'a Path,
    file: File,
    metadata: Metadata,
    data_starts: u64,
    data_bytes: u64,
}

impl<'a> Tensors<'a> {
    fn open(path: &'a Path) -> Result<Tensors<'a>, EncoderError> {
        let read = |source| EncoderError::Read {
            path: path.to_owned(),
            source,
        };
        let broken = |why: &str| EncoderError::Broken {
            path: path.to_owned(),
            why: why.to_owned(),
        };
        let mut file = File::open(path).map_err(read)?;
        let bytes = file.metadata().map_err(read)?.len();
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(read)?;
        let length = u64::from_le_bytes(length);
        if length > HEADER_LIMIT_BYTES || length + 8 > bytes {
            return Err(broken("it does not begin like a safetensors file"));
        }
        let mut header = vec![0; length as usize];
        file.read_exact(&mut header).map_err(read)?;
        let metadata = serde_json::from_slice(&header).map_err(|error| broken(&error.to_string()))?;
        Ok(Tensors {
            path,
            file,
            metadata,
            data_starts: 8 + length,
            data_bytes: bytes - 8 - length,
        })
    }

    fn broken(&self, why: String) -> EncoderError {
        EncoderError::Broken {
            path: self.path.to_owned(),
            why,
        }
    }

    fn has(&self, name: &str) -> bool {
        self.metadata.info(name).is_some()
    }

    /// A matrix's rows and columns, or a vector's length twice.
    fn shape(&self, name: &str) -> Result<[usize; 2], EncoderError> {
        let info = self
            .metadata
            .info(name)
            .ok_or_else(|| self.broken(format!("it has no {name}")))?;
        match info.shape[..] {
            [rows, columns] => Ok([rows, columns]),
            [length] => Ok([length, length]),
            _ => Err(self.broken(format!("{name} has the wrong shape"))),
        }
    }

    /// A tensor's values, where its shape is as expected.
    fn read(&mut self, name: &str, expected: &[Option<usize>]) -> Result<Vec<f32>, EncoderError> {
        let Some(info) = self.metadata.info(name).cloned() else {
            return Err(self.broken(format!("it has no {name}")));
        };
        let fits = info.shape.len() == expected.len()
            && info
                .shape
                .iter()
                .zip(expected)
                .all(|(&is, expected)| is > 0 && expected.is_none_or(|it| it == is));
        let (from, to) = info.data_offsets;
        let values = info
            .shape
            .iter()
            .try_fold(1usize, |all, &one| all.checked_mul(one));
        let whole = values.and_then(|values| values.checked_mul(4)) == to.checked_sub(from);
        if !fits || !whole || info.dtype != Dtype::F32 || to as u64 > self.data_bytes {
            return Err(self.broken(format!("{name} has the wrong shape, type or place")));
        }
        let read = |source| EncoderError::Read {
            path: self.path.to_owned(),
            source,
        };
        self.file
            .seek(SeekFrom::Start(self.data_starts + from as u64))
            .map_err(read)?;
        let mut bytes = vec![0; to - from];
        self.file.read_exact(&mut bytes).map_err(read)?;
        let values: Vec<f32> = bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|four| f32::from_le_bytes(*four))
            .collect();
        if values.iter().any(|value| !value.is_finite()) {
            return Err(self.broken(format!("{name} holds something that is no number")));
        }
        Ok(values)
    }

    fn norm(&mut self, name: &str, width: usize) -> Result<Norm, EncoderError> {
        Ok(Norm {
            weight: self.read(&format!("{name}.weight"), &[Some(width)])?,
            bias: self.read(&format!("{name}.bias"), &[Some(width)])?,
        })
    }

    /// Matrices of `rows` outputs each, one below the other.
    fn linear(&mut self, names: &[String], rows: usize, k: usize) -> Result<Linear, EncoderError> {
        let (mut values, mut bias) = (Vec::new(), Vec::new());
        for name in names {
            values.extend(self.read(&format!("{name}.weight"), &[Some(rows), Some(k)])?);
            bias.extend(self.read(&format!("{name}.bias"), &[Some(rows)])?);
        }
        let rows = rows * names.len();
        let bytes = PACKED
            .bytes_for(k)
            .ok_or_else(|| self.broken(format!("rows of {k} values cannot be packed")))?;
        let mut quantised = vec![0; bytes * rows];
        quantize(PACKED, &values, &mut quantised).map_err(|error| self.broken(error.to_string()))?;
        let mut packing =
            Packing::new(PACKED, rows, k, &quantised).map_err(|error| self.broken(error.to_string()))?;
        packing.panels().for_each(|panel| panel.pack());
        Ok(Linear {
            weights: packing.finish(),
            bias,
        })
    }
}
