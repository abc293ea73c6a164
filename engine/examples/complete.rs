//! Completes a text, greedily: `cargo run --release -p reprise-engine --example complete MODEL.gguf "text" [tokens]`

use reprise_engine::{CancelToken, Engine, Event, GenerateOptions, LoadOptions, SamplingOptions};
use reprise_model::tokenizer::Specials;
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, model, text, rest @ ..] = args.as_slice() else {
        return Err("usage: complete MODEL TEXT [TOKENS]".into());
    };
    let max_tokens = rest.first().map_or(Ok(64), |n| n.parse())?;
    let begin = std::time::Instant::now();
    let engine = Engine::load(model.as_ref(), &LoadOptions::default())?;
    eprintln!(
        "loaded in {:.2} s: {:?}",
        begin.elapsed().as_secs_f64(),
        engine.info()
    );
    let prompt = engine.tokenizer().encode_document(text, Specials::Parse);
    let options = GenerateOptions {
        sampling: SamplingOptions::greedy(),
        max_tokens,
        ..GenerateOptions::default()
    };
    let answer = engine.generate(&prompt, &options, &CancelToken::default(), &mut |event| {
        if let Event::Text(text) = event {
            print!("{text}");
            let _ = std::io::stdout().flush();
        }
    })?;
    eprintln!(
        "\n{:?}; {} prompt tokens in {:.3} s, {:.1} tokens/s after",
        answer.stop,
        answer.prompt_tokens,
        answer.time_to_first_token.as_secs_f64(),
        (answer.answer_tokens.max(1) - 1) as f64 / answer.decode_time.as_secs_f64()
    );
    Ok(())
}
