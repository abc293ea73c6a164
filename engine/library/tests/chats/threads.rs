//! Several threads at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reprise_library::chats::{ChatStore, StoreError, TurnState};

const WRITERS: usize = 4;
const PIECES: usize = 100;

#[test]
fn threads_write_and_read_without_waiting_for_ever_or_losing_anything() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = ChatStore::open(folder.path().join("chats.sqlite")).unwrap();
    let store = Arc::new(store);
    let is_over = Arc::new(AtomicBool::new(false));
    let reader = {
        let (store, is_over) = (Arc::clone(&store), Arc::clone(&is_over));
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                for chat in store.list().unwrap().chats {
                    match store.chat(chat.id) {
                        // Put away after it was listed.
                        Ok(_) | Err(StoreError::Missing { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                store.search("piece", 20).unwrap();
            }
        })
    };
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let store = Arc::clone(&store);
            std::thread::spawn(move || {
                let question = store.begin_chat(&format!("question {number}")).unwrap();
                let answer = store.begin_answer(question.id, "a model").unwrap();
                for piece in 0..PIECES {
                    store
                        .append_piece(answer.id, &format!("piece {number}.{piece};"))
                        .unwrap();
                    if piece % 10 == 0 {
                        store
                            .set_draft(Some(question.chat), &format!("draft {piece}"))
                            .unwrap();
                    }
                }
                store
                    .finish_answer(answer.id, TurnState::Done, None, None)
                    .unwrap();
                let put_away = store.begin_chat("put away").unwrap().chat;
                store.delete_chat(put_away).unwrap();
                store.erase_deleted(None).unwrap();
                (number, question.chat)
            })
        })
        .collect();
    for writer in writers {
        let (number, chat) = writer.join().unwrap();
        let expected: String = (0..PIECES)
            .map(|piece| format!("piece {number}.{piece};"))
            .collect();
        assert_eq!(store.chat(chat).unwrap().turns[1].text, expected);
    }
    is_over.store(true, Ordering::Relaxed);
    reader.join().unwrap();
    assert_eq!(store.list().unwrap().chats.len(), WRITERS);
}
