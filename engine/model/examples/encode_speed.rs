//! Prints how fast a model's tokenizer loads, encodes and decodes: `encode_speed MODEL.gguf TEXT_FILE`.

use std::time::Instant;

use reprise_model::gguf::Gguf;
use reprise_model::tokenizer::{Specials, Tokenizer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(model), Some(text)) = (arguments.next(), arguments.next()) else {
        return Err("usage: encode_speed MODEL.gguf TEXT_FILE".into());
    };
    let begin = Instant::now();
    let gguf = Gguf::open(model.as_ref())?;
    let opened = begin.elapsed();
    let tokenizer = Tokenizer::from_gguf(&gguf)?;
    println!(
        "file opened in {opened:.1?}, tokenizer built in {:.1?}",
        begin.elapsed() - opened
    );

    let text = std::fs::read_to_string(text)?;
    let begin = Instant::now();
    let ids = tokenizer.encode(&text, Specials::AsText);
    let encoding = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let decoded = tokenizer.decode(&ids);
    let decoding = begin.elapsed().as_secs_f64();
    println!(
        "{} bytes, {} tokens; encoded at {:.0} tokens/s, decoded at {:.0} tokens/s; comes back: {}",
        text.len(),
        ids.len(),
        ids.len() as f64 / encoding,
        ids.len() as f64 / decoding,
        decoded == text
    );
    Ok(())
}
