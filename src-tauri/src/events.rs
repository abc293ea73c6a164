//! What the page is told while things happen: one channel, a list of events at most once per frame.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tauri::ipc::Channel;

use crate::types::AppEvent;

/// A frame at 60 a second.
const FRAME: Duration = Duration::from_millis(16);

/// Takes events from any thread and passes them to the page in order. Cheap to clone.
#[derive(Clone, Default)]
pub struct Events(Arc<Hub>);

#[derive(Default)]
struct Hub {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Default)]
struct Waiting {
    page: Option<Channel<Vec<AppEvent>>>,
    events: VecDeque<AppEvent>,
}

impl Events {
    /// Starts the thread that passes events on.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start() -> std::io::Result<Events> {
        let events = Events::default();
        let hub = Arc::clone(&events.0);
        thread::Builder::new()
            .name("events".into())
            .spawn(move || hub.pass_on())?;
        Ok(events)
    }

    /// From now on this page gets the events. What waited for an earlier page is in what the new one loads, except
    /// notices.
    pub fn connect(&self, page: Channel<Vec<AppEvent>>) {
        let mut waiting = self.0.lock();
        waiting.page = Some(page);
        waiting
            .events
            .retain(|event| matches!(event, AppEvent::Notice { .. }));
        self.0.arrived.notify_one();
    }

    /// Tells the page.
    pub fn tell(&self, event: AppEvent) {
        let mut waiting = self.0.lock();
        if waiting.page.is_some() || matches!(event, AppEvent::Notice { .. }) {
            push(&mut waiting.events, event);
            self.0.arrived.notify_one();
        }
    }
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // The queue is whole after any panic: it is changed by single pushes.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass_on(&self) {
        loop {
            let mut waiting = self.lock();
            while waiting.events.is_empty() || waiting.page.is_none() {
                waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            let events: Vec<AppEvent> = waiting.events.drain(..).collect();
            let page = waiting.page.clone();
            drop(waiting);
            if let Some(page) = page {
                // A page that went away connects again when it is back.
                let _ = page.send(events);
            }
            thread::sleep(FRAME);
        }
    }
}

/// Adds an event, joined to the last one where they say the same thing.
fn push(events: &mut VecDeque<AppEvent>, event: AppEvent) {
    match (events.back_mut(), event) {
        (
            Some(AppEvent::Text { turn, text, .. }),
            AppEvent::Text {
                turn: same,
                text: more,
                ..
            },
        ) if *turn == same => text.push_str(&more),
        (
            Some(AppEvent::Phase { turn, phase, .. }),
            AppEvent::Phase {
                turn: same,
                phase: now,
                ..
            },
        ) if *turn == same => *phase = now,
        (_, event @ AppEvent::Snapshot { .. }) => {
            // Only the latest picture is of use to a page that is behind.
            events.retain(|earlier| !matches!(earlier, AppEvent::Snapshot { .. }));
            events.push_back(event);
        }
        (_, event) => events.push_back(event),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Phase;
    use reprise_engine::snapshot::Snapshot;
    use reprise_library::chats::{ChatId, TurnId};

    fn text(turn: i64, from: usize, text: &str) -> AppEvent {
        AppEvent::Text {
            chat: ChatId(1),
            turn: TurnId(turn),
            from,
            text: text.into(),
        }
    }

    fn phase(turn: i64, phase: Phase) -> AppEvent {
        AppEvent::Phase {
            chat: ChatId(1),
            turn: TurnId(turn),
            phase,
        }
    }

    #[test]
    fn pieces_of_one_answer_are_joined_and_the_order_is_kept() {
        let mut events = VecDeque::new();
        for event in [
            phase(1, Phase::Queued),
            phase(1, Phase::Writing),
            text(1, 0, "a"),
            text(1, 1, "b"),
            text(2, 0, "x"),
            text(1, 2, "c"),
        ] {
            push(&mut events, event);
        }
        let expected = [
            phase(1, Phase::Writing),
            text(1, 0, "ab"),
            text(2, 0, "x"),
            text(1, 2, "c"),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn of_several_pictures_of_the_engine_the_latest_is_told() {
        let picture = |sequence| AppEvent::Snapshot {
            snapshot: Some(Box::new(Snapshot {
                sequence,
                ..Snapshot::default()
            })),
        };
        let mut events = VecDeque::new();
        for event in [picture(1), text(1, 0, "a"), picture(2), text(1, 1, "b")] {
            push(&mut events, event);
        }
        assert_eq!(events, [text(1, 0, "a"), picture(2), text(1, 1, "b")]);
    }
}
