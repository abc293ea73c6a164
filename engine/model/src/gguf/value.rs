//! Metadata values: what a GGUF file can say about a model, and how callers read it as the type they need.

/// One metadata value.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    String(String),
    Array(Array),
}

/// An array of metadata values of one type.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Array {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    Strings(Strings),
    Arrays(Vec<Array>),
}

/// Many strings in one allocation: a vocabulary has a quarter of a million of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strings {
    text: String,
    ends: Vec<usize>,
}

impl Strings {
    /// Adds a string at the end.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string at `index`.
    pub fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.text.get(start..end)
    }

    /// All strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }
}

impl<S: AsRef<str>> FromIterator<S> for Strings {
    fn from_iter<I: IntoIterator<Item = S>>(texts: I) -> Strings {
        let mut strings = Strings::default();
        texts.into_iter().for_each(|text| strings.push(text.as_ref()));
        strings
    }
}

impl Array {
    /// How many elements there are.
    pub fn len(&self) -> usize {
        match self {
            Array::U8(items) => items.len(),
            Array::I8(items) => items.len(),
            Array::U16(items) => items.len(),
            Array::I16(items) => items.len(),
            Array::U32(items) => items.len(),
            Array::I32(items) => items.len(),
            Array::U64(items) => items.len(),
            Array::I64(items) => items.len(),
            Array::F32(items) => items.len(),
            Array::F64(items) => items.len(),
            Array::Bool(items) => items.len(),
            Array::Strings(items) => items.len(),
            Array::Arrays(items) => items.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as integers of another width, or `None` when they are not integers or one does not fit.
    fn integers<T: TryFrom<u64> + TryFrom<i64>>(&self) -> Option<Vec<T>> {
        fn unsigned<S: Copy + Into<u64>, T: TryFrom<u64>>(items: &[S]) -> Option<Vec<T>> {
            items.iter().map(|&item| T::try_from(item.into()).ok()).collect()
        }
        fn signed<S: Copy + Into<i64>, T: TryFrom<i64>>(items: &[S]) -> Option<Vec<T>> {
            items.iter().map(|&item| T::try_from(item.into()).ok()).collect()
        }
        match self {
            Array::U8(items) => unsigned(items),
            Array::U16(items) => unsigned(items),
            Array::U32(items) => unsigned(items),
            Array::U64(items) => unsigned(items),
            Array::I8(items) => signed(items),
            Array::I16(items) => signed(items),
            Array::I32(items) => signed(items),
            Array::I64(items) => signed(items),
            _ => None,
        }
    }
}

impl Value {
    /// What the value is, for messages: `a string`, `an array of 3 elements`, `the number 7`.
    pub fn describe(&self) -> String {
        match self {
            Value::U8(n) => format!("the number {n}"),
            Value::I8(n) => format!("the number {n}"),
            Value::U16(n) => format!("the number {n}"),
            Value::I16(n) => format!("the number {n}"),
            Value::U32(n) => format!("the number {n}"),
            Value::I32(n) => format!("the number {n}"),
            Value::U64(n) => format!("the number {n}"),
            Value::I64(n) => format!("the number {n}"),
            Value::F32(n) => format!("the number {n}"),
            Value::F64(n) => format!("the number {n}"),
            Value::Bool(b) => format!("{b}"),
            Value::String(_) => "a string".to_owned(),
            Value::Array(array) => format!("an array of {} elements", array.len()),
        }
    }

    fn integer<T: TryFrom<u64> + TryFrom<i64>>(&self) -> Option<T> {
        match *self {
            Value::U8(n) => T::try_from(u64::from(n)).ok(),
            Value::U16(n) => T::try_from(u64::from(n)).ok(),
            Value::U32(n) => T::try_from(u64::from(n)).ok(),
            Value::U64(n) => T::try_from(n).ok(),
            Value::I8(n) => T::try_from(i64::from(n)).ok(),
            Value::I16(n) => T::try_from(i64::from(n)).ok(),
            Value::I32(n) => T::try_from(i64::from(n)).ok(),
            Value::I64(n) => T::try_from(n).ok(),
            _ => None,
        }
    }
}

/// A Rust type that metadata can be read as; integers of any width are taken when the value fits.
pub trait FromValue<'a>: Sized {
    /// What to call the type in a message.
    const EXPECTED: &'static str;
    /// The value as this type, or `None` when it is of another kind or does not fit.
    fn from_value(value: &'a Value) -> Option<Self>;
}

macro_rules! integers_from_value {
    ($($ty:ty, $one:literal, $many:literal;)*) => {$(
        impl FromValue<'_> for $ty {
            const EXPECTED: &'static str = $one;
            fn from_value(value: &Value) -> Option<Self> {
                value.integer()
            }
        }
        impl FromValue<'_> for Vec<$ty> {
            const EXPECTED: &'static str = $many;
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Array(array) => array.integers(),
                    _ => None,
                }
            }
        }
    )*};
}

integers_from_value! {
    u32, "a whole number below 2^32", "an array of whole numbers below 2^32";
    u64, "a whole number", "an array of whole numbers";
    usize, "a whole number", "an array of whole numbers";
    i32, "an integer of 32 bits", "an array of integers of 32 bits";
    i64, "an integer", "an array of integers";
}

impl FromValue<'_> for f32 {
    const EXPECTED: &'static str = "a floating-point number";
    fn from_value(value: &Value) -> Option<f32> {
        match *value {
            Value::F32(n) => Some(n),
            Value::F64(n) => Some(n as f32),
            _ => None,
        }
    }
}

impl FromValue<'_> for Vec<f32> {
    const EXPECTED: &'static str = "an array of floating-point numbers";
    fn from_value(value: &Value) -> Option<Vec<f32>> {
        match value {
            Value::Array(Array::F32(items)) => Some(items.clone()),
            Value::Array(Array::F64(items)) => Some(items.iter().map(|&n| n as f32).collect()),
            _ => None,
        }
    }
}

impl FromValue<'_> for bool {
    const EXPECTED: &'static str = "true or false";
    fn from_value(value: &Value) -> Option<bool> {
        match *value {
            Value::Bool(b) => Some(b),
            _ => None,
        }
    }
}

impl FromValue<'_> for Vec<bool> {
    const EXPECTED: &'static str = "an array of truth values";
    fn from_value(value: &Value) -> Option<Vec<bool>> {
        match value {
            Value::Array(Array::Bool(items)) => Some(items.clone()),
            _ => None,
        }
    }
}

impl<'a> FromValue<'a> for &'a str {
    const EXPECTED: &'static str = "a string";
    fn from_value(value: &'a Value) -> Option<&'a str> {
        match value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}

impl<'a> FromValue<'a> for &'a Strings {
    const EXPECTED: &'static str = "an array of strings";
    fn from_value(value: &'a Value) -> Option<&'a Strings> {
        match value {
            Value::Array(Array::Strings(strings)) => Some(strings),
            _ => None,
        }
    }
}
