//! The GGUF parser. It reads the header once from front to back, so its time is linear in the bytes it reads (plus one
//! sort of the tensor table), and it reserves memory only for what the bytes that are really there can hold.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use reprise_kernels::quant::QuantType;

use super::GgufError;
use super::value::{Array, Strings, Value};

/// `general.alignment` when the file does not give one, in bytes.
const DEFAULT_ALIGNMENT: u64 = 32;
/// Arrays may hold arrays this deep; no known model nests at all.
const MAX_ARRAY_DEPTH: u32 = 4;
/// Fewest bytes of one metadata entry: key length, an empty key, type, one byte.
const MIN_ENTRY_BYTES: u64 = 8 + 4 + 1;
/// Fewest bytes of one tensor entry: name length, number of dimensions, one dimension, type, offset.
const MIN_TENSOR_BYTES: u64 = 8 + 4 + 8 + 4 + 8;

/// What the file says about one tensor, checked.
#[derive(Debug, Clone)]
pub struct TensorInfo {
    pub(super) name: String,
    dims: [u64; 4],
    dim_count: usize,
    pub(super) ty: QuantType,
    /// Byte offset from the start of the file.
    pub(super) start: u64,
    pub(super) bytes: u64,
}

impl TensorInfo {
    pub(super) fn shape(&self) -> &[u64] {
        self.dims.get(..self.dim_count).unwrap_or_default()
    }
}

pub(super) struct Parsed {
    pub(super) version: u32,
    pub(super) alignment: u64,
    pub(super) metadata: BTreeMap<String, Value>,
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) by_name: HashMap<String, usize>,
}

/// Reads and validates a whole file.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Parsed, GgufError> {
    let mut reader = Reader { path, bytes, at: 0 };
    let version = reader.header()?;
    let tensor_count = reader.u64("the number of tensors")?;
    let entry_count = reader.u64("the number of metadata entries")?;
    reader.check_count(tensor_count, MIN_TENSOR_BYTES, "tensors")?;
    reader.check_count(entry_count, MIN_ENTRY_BYTES, "metadata entries")?;

    let metadata = reader.metadata(entry_count)?;
    let alignment = alignment(path, &metadata)?;
    if let Some(Value::U16(parts)) = metadata.get("split.count")
        && *parts > 1
    {
        return Err(GgufError::Split {
            path: path.to_path_buf(),
            parts: u64::from(*parts),
        });
    }
    let (mut tensors, by_name) = reader.tensor_table(tensor_count, alignment)?;
    let data_start = (reader.at as u64).next_multiple_of(alignment);
    place(path, &mut tensors, data_start, bytes.len() as u64)?;
    Ok(Parsed {
        version,
        alignment,
        metadata,
        tensors,
        by_name,
    })
}

fn alignment(path: &Path, metadata: &BTreeMap<String, Value>) -> Result<u64, GgufError> {
    let Some(value) = metadata.get("general.alignment") else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    match value {
        Value::U32(bytes) if bytes.is_power_of_two() => Ok(u64::from(*bytes)),
        other => Err(GgufError::WrongKind {
            path: path.to_path_buf(),
            key: "general.alignment".to_owned(),
            expected: "a power of two of 32 bits",
            found: other.describe(),
        }),
    }
}

/// Turns offsets within the data section into offsets within the file, and checks that each tensor lies inside the
/// file and that no two share a byte.
fn place(path: &Path, tensors: &mut [TensorInfo], data_start: u64, file_len: u64) -> Result<(), GgufError> {
    for tensor in tensors.iter_mut() {
        let end = data_start
            .checked_add(tensor.start)
            .and_then(|start| start.checked_add(tensor.bytes));
        match end {
            Some(end) if end <= file_len => tensor.start += data_start,
            _ => {
                let at = data_start.saturating_add(tensor.start);
                return Err(GgufError::Truncated {
                    path: path.to_path_buf(),
                    what: format!("tensor \"{}\"", tensor.name),
                    at,
                    needed: tensor.bytes,
                    left: file_len.saturating_sub(at),
                });
            }
        }
    }
    let mut order: Vec<&TensorInfo> = tensors.iter().collect();
    order.sort_unstable_by_key(|tensor| tensor.start);
    for pair in order.windows(2) {
        if let [first, second] = pair
            && first.start + first.bytes > second.start
        {
            return Err(GgufError::DamagedTensor {
                path: path.to_path_buf(),
                tensor: second.name.clone(),
                problem: format!(
                    "its data at byte {} overlaps that of \"{}\"",
                    second.start, first.name
                ),
            });
        }
    }
    Ok(())
}

/// A cursor over the file that never reads past its end.
struct Reader<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn left(&self) -> u64 {
        (self.bytes.len() - self.at) as u64
    }

    fn damaged(&self, at: usize, problem: String) -> GgufError {
        GgufError::Damaged {
            path: self.path.to_path_buf(),
            at: at as u64,
            problem,
        }
    }

    fn truncated(&self, what: &str, needed: u64) -> GgufError {
        GgufError::Truncated {
            path: self.path.to_path_buf(),
            what: what.to_owned(),
            at: self.at as u64,
            needed,
            left: self.left(),
        }
    }

    fn take(&mut self, count: u64, what: &str) -> Result<&'a [u8], GgufError> {
        let taken = usize::try_from(count)
            .ok()
            .and_then(|count| self.bytes.get(self.at..)?.get(..count));
        match taken {
            Some(taken) => {
                self.at += taken.len();
                Ok(taken)
            }
            None => Err(self.truncated(what, count)),
        }
    }

    fn fixed<const N: usize>(&mut self, what: &str) -> Result<[u8; N], GgufError> {
        let taken = self.take(N as u64, what)?;
        taken.try_into().map_err(|_| self.truncated(what, N as u64))
    }

    fn u32(&mut self, what: &str) -> Result<u32, GgufError> {
        self.fixed(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &str) -> Result<u64, GgufError> {
        self.fixed(what).map(u64::from_le_bytes)
    }

    /// Refuses a count that the rest of the file cannot hold, before anything is reserved for it.
    fn check_count(&self, count: u64, least_bytes: u64, what: &str) -> Result<(), GgufError> {
        match count.checked_mul(least_bytes) {
            Some(needed) if needed <= self.left() => Ok(()),
            needed => Err(self.truncated(&format!("a list of {count} {what}"), needed.unwrap_or(u64::MAX))),
        }
    }

    /// Magic and version.
    fn header(&mut self) -> Result<u32, GgufError> {
        let begin = self.bytes.get(..self.bytes.len().min(4)).unwrap_or_default();
        let path = || self.path.to_path_buf();
        if begin.is_empty() {
            return Err(GgufError::Empty { path: path() });
        }
        if begin != b"GGUF" {
            return Err(GgufError::NotGguf {
                path: path(),
                begins: format!("\"{}\"", begin.escape_ascii()),
            });
        }
        self.at = 4;
        match self.u32("the format's version")? {
            version @ 2..=3 => Ok(version),
            version if version != 0 && version & 0xffff == 0 => Err(GgufError::BigEndian { path: path() }),
            version => Err(GgufError::Version {
                path: path(),
                version,
            }),
        }
    }

    /// A string that must be UTF-8: keys and tensor names.
    fn name(&mut self, what: &str) -> Result<&'a str, GgufError> {
        let at = self.at;
        let len = self.u64(what)?;
        let bytes = self.take(len, what)?;
        std::str::from_utf8(bytes).map_err(|_| self.damaged(at, format!("{what} is not text")))
    }

    /// A string value. Old conversions hold vocabulary pieces that are not UTF-8; those get replacement characters.
    fn text(&mut self, what: &str) -> Result<std::borrow::Cow<'a, str>, GgufError> {
        let len = self.u64(what)?;
        Ok(String::from_utf8_lossy(self.take(len, what)?))
    }

    fn metadata(&mut self, count: u64) -> Result<BTreeMap<String, Value>, GgufError> {
        let mut metadata = BTreeMap::new();
        for _ in 0..count {
            let at = self.at;
            let key = self.name("a metadata key")?;
            let type_id = self.u32(key)?;
            let value = self.value(type_id, key)?;
            if metadata.insert(key.to_owned(), value).is_some() {
                return Err(self.damaged(at, format!("the metadata key \"{key}\" occurs twice")));
            }
        }
        Ok(metadata)
    }

    fn value(&mut self, type_id: u32, key: &str) -> Result<Value, GgufError> {
        Ok(match type_id {
            0 => Value::U8(u8::from_le_bytes(self.fixed(key)?)),
            1 => Value::I8(i8::from_le_bytes(self.fixed(key)?)),
            2 => Value::U16(u16::from_le_bytes(self.fixed(key)?)),
            3 => Value::I16(i16::from_le_bytes(self.fixed(key)?)),
            4 => Value::U32(u32::from_le_bytes(self.fixed(key)?)),
            5 => Value::I32(i32::from_le_bytes(self.fixed(key)?)),
            6 => Value::F32(f32::from_le_bytes(self.fixed(key)?)),
            7 => Value::Bool(self.fixed::<1>(key)? != [0]),
            8 => Value::String(self.text(key)?.into_owned()),
            9 => Value::Array(self.array(key, 0)?),
            10 => Value::U64(u64::from_le_bytes(self.fixed(key)?)),
            11 => Value::I64(i64::from_le_bytes(self.fixed(key)?)),
            12 => Value::F64(f64::from_le_bytes(self.fixed(key)?)),
            _ => return Err(self.unknown_value_type(type_id, key)),
        })
    }

    fn unknown_value_type(&self, type_id: u32, key: &str) -> GgufError {
        self.damaged(
            self.at,
            format!("\"{key}\" has the value type {type_id}, and there is no such type"),
        )
    }

    fn array(&mut self, key: &str, depth: u32) -> Result<Array, GgufError> {
        let at = self.at;
        if depth >= MAX_ARRAY_DEPTH {
            return Err(self.damaged(
                at,
                format!("\"{key}\" has arrays nested more than {MAX_ARRAY_DEPTH} deep"),
            ));
        }
        let type_id = self.u32(key)?;
        let count = self.u64(key)?;
        Ok(match type_id {
            0 => Array::U8(self.numbers(count, key, u8::from_le_bytes)?),
            1 => Array::I8(self.numbers(count, key, i8::from_le_bytes)?),
            2 => Array::U16(self.numbers(count, key, u16::from_le_bytes)?),
            3 => Array::I16(self.numbers(count, key, i16::from_le_bytes)?),
            4 => Array::U32(self.numbers(count, key, u32::from_le_bytes)?),
            5 => Array::I32(self.numbers(count, key, i32::from_le_bytes)?),
            6 => Array::F32(self.numbers(count, key, f32::from_le_bytes)?),
            7 => Array::Bool(self.numbers(count, key, |byte: [u8; 1]| byte != [0])?),
            8 => {
                self.check_count(count, 8, "strings")?;
                let mut strings = Strings::default();
                for _ in 0..count {
                    strings.push(&self.text(key)?);
                }
                Array::Strings(strings)
            }
            9 => {
                self.check_count(count, 12, "arrays")?;
                let mut arrays = Vec::new();
                for _ in 0..count {
                    arrays.push(self.array(key, depth + 1)?);
                }
                Array::Arrays(arrays)
            }
            10 => Array::U64(self.numbers(count, key, u64::from_le_bytes)?),
            11 => Array::I64(self.numbers(count, key, i64::from_le_bytes)?),
            12 => Array::F64(self.numbers(count, key, f64::from_le_bytes)?),
            _ => return Err(self.unknown_value_type(type_id, key)),
        })
    }

    fn numbers<T, const N: usize>(
        &mut self,
        count: u64,
        key: &str,
        read: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>, GgufError> {
        let total = count
            .checked_mul(N as u64)
            .ok_or_else(|| self.truncated(key, u64::MAX))?;
        let (items, _) = self.take(total, key)?.as_chunks::<N>();
        Ok(items.iter().map(|&item| read(item)).collect())
    }

    #[allow(clippy::type_complexity)]
    fn tensor_table(
        &mut self,
        count: u64,
        alignment: u64,
    ) -> Result<(Vec<TensorInfo>, HashMap<String, usize>), GgufError> {
        self.check_count(count, MIN_TENSOR_BYTES, "tensors")?;
        let mut tensors = Vec::new();
        let mut by_name = HashMap::new();
        for index in 0..count as usize {
            let at = self.at;
            let tensor = self.tensor(alignment)?;
            if by_name.insert(tensor.name.clone(), index).is_some() {
                return Err(self.damaged(at, format!("the tensor \"{}\" occurs twice", tensor.name)));
            }
            tensors.push(tensor);
        }
        Ok((tensors, by_name))
    }

    /// One entry of the tensor table; `start` is still relative to the data section.
    fn tensor(&mut self, alignment: u64) -> Result<TensorInfo, GgufError> {
        let name = self.name("a tensor name")?;
        let path = self.path;
        let damaged = |problem: String| GgufError::DamagedTensor {
            path: path.to_path_buf(),
            tensor: name.to_owned(),
            problem,
        };
        let dim_count = self.u32(name)?;
        if !(1..=4).contains(&dim_count) {
            return Err(damaged(format!(
                "it has {dim_count} dimensions, and 1 to 4 are possible"
            )));
        }
        let dim_count = dim_count as usize;
        let mut dims = [1u64; 4];
        for dim in dims.iter_mut().take(dim_count) {
            *dim = self.u64(name)?;
        }
        let type_id = self.u32(name)?;
        let offset = self.u64(name)?;

        let ty = QuantType::from_ggml_id(type_id).ok_or_else(|| GgufError::UnknownType {
            path: self.path.to_path_buf(),
            tensor: name.to_owned(),
            type_id,
        })?;
        let shape = dims.get(..dim_count).unwrap_or_default();
        if shape.contains(&0) {
            return Err(damaged(format!("its shape {shape:?} has an empty dimension")));
        }
        let block = ty.block_len() as u64;
        if !dims[0].is_multiple_of(block) {
            return Err(damaged(format!(
                "its rows of {} values are not whole blocks of {block} ({})",
                dims[0],
                ty.name()
            )));
        }
        let bytes = dims
            .iter()
            .try_fold(1u64, |product, &dim| product.checked_mul(dim))
            .and_then(|values| ty.bytes_for(usize::try_from(values).ok()?))
            .ok_or_else(|| damaged(format!("its shape {shape:?} is too large for any file")))?;
        if !offset.is_multiple_of(alignment) {
            return Err(damaged(format!(
                "its offset {offset} is not a multiple of {alignment}"
            )));
        }
        Ok(TensorInfo {
            name: name.to_owned(),
            dims,
            dim_count,
            ty,
            start: offset,
            bytes: bytes as u64,
        })
    }
}
