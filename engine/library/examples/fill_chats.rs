//! Fills a store with one long chat, to see how the window does with it: `fill_chats FILE TURNS`. Every answer has what
//! answers have: paragraphs, lists, code, tables, formulas. The last one has what must be shown with care.

use std::env;
use std::error::Error;

use reprise_library::chats::{ChatStore, TurnState};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(file), Some(turns)) = (arguments.next(), arguments.next()) else {
        return Err("usage: fill_chats FILE TURNS".into());
    };
    let (store, _) = ChatStore::open(file)?;
    let chat = store.create_chat()?.id;
    let mut last = None;
    for number in 1..=turns.parse::<usize>()?.div_ceil(2) {
        let question = store.add_user_turn(chat, last, &format!("Question {number}: what comes next?"))?;
        let answer = store.begin_answer(question.id, "an example")?;
        store.append_piece(answer.id, &text(number))?;
        store.finish_answer(answer.id, TurnState::Done, None, None)?;
        last = Some(answer.id);
    }
    let question = store.add_user_turn(chat, last, "And what needs care?")?;
    let answer = store.begin_answer(question.id, "an example")?;
    store.append_piece(answer.id, CARE)?;
    store.finish_answer(answer.id, TurnState::Done, None, None)?;
    store.rename_chat(chat, "A long chat")?;
    Ok(())
}

/// Emphasis in Chinese, a text from right to left, markup that must stay text, links, a picture, prices.
const CARE: &str = "**中文。**后面还有字。\n\nشالوم: المنارة برج.\n\n<b onclick=\"alert(1)\">raw</b><script>document.title='taken'</script>\n\n\
[a link](https://example.org/page) and [a trap](javascript:alert(1)) and ![a picture](https://example.org/p.png)\n\n\
It costs $5 and not $10. The area is $\\pi r^2$.\n\n```rust\nfn main() {\n    println!(\"hello\");\n}\n```\n";

fn text(number: usize) -> String {
    let paragraph = "A lighthouse is a tower with a light at its top that shows ships the way. ".repeat(4);
    let more = match number % 4 {
        0 => {
            "```python\ndef sum_of(values):\n    total = 0\n    for value in values:\n        total += value\n    return total\n```"
        }
        1 => "| month | storms |\n| --- | ---: |\n| January | 12 |\n| February | 9 |",
        2 => "- the lamp\n- the lens\n  1. first order\n  2. second order\n- the stairs",
        _ => "The range is $d = \\sqrt{2 R h}$, with the height $h$ over the sea.",
    };
    format!("Answer {number}. **{paragraph}**\n\n{more}\n\n{paragraph}")
}
