//! Search: what is found, in which order, and how it is shown.

use reprise_library::chats::{SearchHit, SnippetPart, TurnId};

use crate::Bench;

/// A store with these questions, each in a chat with the neutral title "–".
fn with(texts: &[&str]) -> Bench {
    let bench = Bench::new();
    for text in texts {
        let chat = bench.store().begin_chat(text).unwrap().chat;
        bench.store().rename_chat(chat, "–").unwrap();
    }
    bench
}

fn found(bench: &Bench, query: &str) -> Vec<String> {
    let hits = bench.store().search(query, 50).unwrap();
    hits.iter()
        .map(|hit| bench.store().turn(hit.turn.unwrap()).unwrap().text)
        .collect()
}

fn marked(hit: &SearchHit) -> String {
    hit.snippet
        .iter()
        .map(|part| {
            if part.hit {
                format!("[{}]", part.text)
            } else {
                part.text.clone()
            }
        })
        .collect()
}

#[test]
fn words_are_found_as_parts_of_words_whatever_their_case_and_accents() {
    let bench = with(&[
        "Die Äpfel im GARTEN",
        "Crème brûlée",
        "Straßenbahn",
        "ПРИВЕТ, мир",
    ]);
    assert_eq!(found(&bench, "äpfel"), ["Die Äpfel im GARTEN"]);
    assert_eq!(found(&bench, "ÄPFEL"), ["Die Äpfel im GARTEN"]);
    assert_eq!(found(&bench, "apfel"), ["Die Äpfel im GARTEN"]);
    assert_eq!(found(&bench, "arte"), ["Die Äpfel im GARTEN"]);
    assert_eq!(found(&bench, "creme BRULEE"), ["Crème brûlée"]);
    assert_eq!(found(&bench, "cre\u{300}me"), ["Crème brûlée"]);
    assert_eq!(found(&bench, "привет"), ["ПРИВЕТ, мир"]);
    assert_eq!(found(&bench, "bahn"), ["Straßenbahn"]);
    assert!(found(&bench, "birnen").is_empty());
}

#[test]
fn all_words_must_be_there_in_any_order() {
    let bench = with(&["prune the apple tree", "the apple pie"]);
    assert_eq!(found(&bench, "tree apple"), ["prune the apple tree"]);
    assert_eq!(found(&bench, "apple"), ["the apple pie", "prune the apple tree"]);
    assert_eq!(found(&bench, "apple pi"), ["the apple pie"]);
    assert!(found(&bench, "apple pears").is_empty());
}

#[test]
fn scripts_without_spaces_are_found_by_one_two_and_more_characters() {
    let bench = with(&["苹果树什么时候修剪？", "東京の天気", "사과나무"]);
    for query in ["果", "苹果", "苹果树", "什么时候修"] {
        assert_eq!(found(&bench, query), ["苹果树什么时候修剪？"], "{query}");
    }
    assert_eq!(found(&bench, "天気"), ["東京の天気"]);
    assert_eq!(found(&bench, "나무"), ["사과나무"]);
}

#[test]
fn short_words_are_found_without_regard_to_case() {
    let bench = with(&["Größe ÄX", "ok"]);
    assert_eq!(found(&bench, "äx"), ["Größe ÄX"]);
    assert_eq!(found(&bench, "OK"), ["ok"]);
    assert_eq!(found(&bench, "ß"), ["Größe ÄX"]);
    assert_eq!(found(&bench, "o g"), Vec::<String>::new());
    assert_eq!(found(&bench, "% _"), Vec::<String>::new(), "no wildcards");
}

#[test]
fn a_query_is_only_text() {
    let bench = with(&[
        "say \"hello world\" twice",
        "a*b and tree*",
        "NEAR(x y) OR NOT z",
        "title: colon; -minus +plus ^caret {brace}",
        "it's 100% sure_",
        "family 👩‍👩‍👧 and 🌳🌲🌴",
    ]);
    assert_eq!(found(&bench, "\"hello"), ["say \"hello world\" twice"]);
    assert_eq!(found(&bench, "world\" twice"), ["say \"hello world\" twice"]);
    assert_eq!(found(&bench, "tree*"), ["a*b and tree*"]);
    assert!(found(&bench, "tre*").is_empty());
    assert_eq!(found(&bench, "OR NOT"), ["NEAR(x y) OR NOT z"]);
    assert_eq!(found(&bench, "NEAR(x"), ["NEAR(x y) OR NOT z"]);
    assert_eq!(found(&bench, "title: -minus ^caret {brace}").len(), 1);
    assert_eq!(found(&bench, "100% sure_"), ["it's 100% sure_"]);
    assert_eq!(found(&bench, "🌲"), ["family 👩‍👩‍👧 and 🌳🌲🌴"]);
    assert_eq!(found(&bench, "👩‍👩‍👧"), ["family 👩‍👩‍👧 and 🌳🌲🌴"]);
    assert_eq!(found(&bench, "🌳🌲🌴"), ["family 👩‍👩‍👧 and 🌳🌲🌴"]);
    for odd in [
        "\"", "\"\"", "'", "(", ")", "*", "AND", "\"\"\"\"", "a\0b", "\0", "\\", "--", ";",
    ] {
        bench.store().search(odd, 50).unwrap();
    }
    for blank in ["", " ", "\n\t"] {
        assert!(bench.store().search(blank, 50).unwrap().is_empty());
    }
}

#[test]
fn a_short_word_may_reach_into_a_long_one() {
    let bench = with(&["applexy", "ΟΔΟΣ και οδός"]);
    assert_eq!(found(&bench, "apple ex"), ["applexy"]);
    let hits = bench.store().search("ΟΣ", 9).unwrap();
    assert_eq!(marked(&hits[0]), "ΟΔ[ΟΣ] και οδός");
}

#[test]
fn a_pasted_page_is_searched_for_by_its_beginning() {
    let word = "longword".repeat(40);
    let bench = with(&[&word]);
    assert_eq!(found(&bench, &word), [word.as_str()]);
    bench.store().search(&"x".repeat(5_000_000), 9).unwrap();
    bench.store().search(&"many words ".repeat(500_000), 9).unwrap();
}

#[test]
fn titles_come_first_and_turns_newest_first_each_once() {
    let bench = Bench::new();
    let first = bench.store().begin_chat("apple apple apple").unwrap();
    let second = bench.store().begin_chat("an apple").unwrap();
    bench.store().rename_chat(second.chat, "Fruit").unwrap();
    let answer = bench.answer(first.id, "Apple.");
    let hits = bench.store().search("apple", 50).unwrap();
    let places: Vec<Option<TurnId>> = hits.iter().map(|hit| hit.turn).collect();
    assert_eq!(places, [None, Some(answer.id), Some(second.id), Some(first.id)]);
    assert_eq!(hits[0].chat, first.chat);
    assert_eq!(hits[2].title, "Fruit");
    assert_eq!(bench.store().search("apple", 2).unwrap(), hits[..2]);
    assert!(bench.store().search("apple", 0).unwrap().is_empty());
}

#[test]
fn a_renamed_chat_is_found_by_its_new_title_only() {
    let bench = with(&["neutral"]);
    let chat = bench.store().list().unwrap().chats[0].id;
    bench.store().rename_chat(chat, "Walnuts").unwrap();
    bench.store().rename_chat(chat, "Hazelnuts").unwrap();
    assert!(bench.store().search("walnut", 9).unwrap().is_empty());
    assert_eq!(bench.store().search("hazelnut", 9).unwrap()[0].turn, None);
}

#[test]
fn a_snippet_shows_the_hit_in_a_little_of_its_surroundings() {
    let long = format!("{}the apple\n\n  tree{}", "wörd ".repeat(50), " änd".repeat(100));
    let bench = with(&["A short apple text", &long]);
    let hits = bench.store().search("apple", 9).unwrap();
    assert_eq!(marked(&hits[1]), "A short [apple] text");

    let snippet = marked(&hits[0]);
    assert!(snippet.starts_with('…') && snippet.ends_with('…'), "{snippet}");
    assert!(snippet.contains("wörd the [apple] tree änd"), "{snippet}");
    assert!((100..=130).contains(&snippet.chars().count()), "{snippet}");
}

#[test]
fn every_hit_in_a_snippet_is_marked() {
    let bench = with(&["one apple, two Apples, three ápples", "x ok x OK"]);
    let hits = bench.store().search("apple", 9).unwrap();
    assert_eq!(marked(&hits[0]), "one [apple], two [Apple]s, three [ápple]s");
    let hits = bench.store().search("ok", 9).unwrap();
    assert_eq!(marked(&hits[0]), "x [ok] x [OK]");
}

#[test]
fn snippets_are_cut_between_characters_as_a_person_sees_them() {
    let family = "👩‍👩‍👧";
    let bench = with(&[&format!("{}apple{}", family.repeat(200), "e\u{301}".repeat(300))]);
    let hits = bench.store().search("apple", 9).unwrap();
    let text: String = hits[0].snippet.iter().map(|part| part.text.as_str()).collect();
    assert_eq!(
        text,
        format!("…{}apple{}…", family.repeat(40), "e\u{301}".repeat(75))
    );
    assert!(hits[0].snippet.contains(&SnippetPart {
        text: "apple".to_string(),
        hit: true
    }));
}

#[test]
fn answers_are_found_once_they_ended() {
    let bench = with(&["neutral"]);
    let chat = bench.store().list().unwrap().chats[0].id;
    let question = bench.store().chat(chat).unwrap().turns[0].id;
    bench.answer(question, "It is a walnut");
    assert_eq!(found(&bench, "walnut"), ["It is a walnut"]);
}
