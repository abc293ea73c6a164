//! One engine on one screen.

use reprise_engine::snapshot::{
    ComponentState, ComponentView, LaneView, MemoryView, PhaseView, PoolView, Snapshot,
};
use reprise_library::running::{Listing, Running};

use super::line::{Line, Style, column, flow};
use crate::output::{counted, with_commas};

/// Columns of the names at the left.
const LABEL: usize = 11;
/// Columns of who asked, in the list of lanes.
const OWNER: usize = 18;
/// Columns before a lane: its line is a long one.
const INDENT: usize = 3;
/// Cells of a bar.
const BAR: usize = 8;
/// An engine writes every two seconds at least, as long as its machine's memory moves: after this its program hangs.
const SILENT_MS: u64 = 15_000;
/// Most lines of the pool's map, and the share of what room there is.
const MAP_LINES: usize = 4;
const MAP_SHARE: usize = 3;
/// Fewest lines that lanes, map and owners get together.
const LEAST_LINES: usize = 3;
/// Told apart on dark and on light screens; the letters tell the owners apart without them.
const COLOURS: [u8; 6] = [6, 3, 5, 2, 4, 1];

/// The room there is.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    pub columns: usize,
    /// None where lines may go on for ever.
    pub lines: Option<usize>,
}

/// Draws the chosen engine of a listing.
pub fn picture(listing: &Listing, chosen: usize, now_ms: u64, room: Room) -> Vec<Line> {
    let columns = room.columns.max(LABEL + 10);
    let mut lines = Vec::new();
    let Some(running) = listing.running.get(chosen) else {
        lines.push(Line::plain(
            "no engine is running; start one: reprise chat, reprise serve",
        ));
        lines.extend(unreadable(listing));
        return finish(lines, columns, room);
    };
    lines.push(head(listing, chosen, now_ms));
    if listing.running.len() > 1 {
        lines.extend(processes(listing, chosen, columns));
    }
    lines.extend(unreadable(listing));
    let snapshot = &running.snapshot;
    let model = &snapshot.model;
    lines.push(Line::plain(format!(
        "{} | {} | window {} | KV {}, {} a token",
        model.name,
        model.backend,
        counted(model.context_tokens, "token"),
        model.kv_format,
        counted(model.kv_token_bytes, "byte"),
    )));
    let below: Vec<Line> = [
        components(&snapshot.components, columns),
        memory(&snapshot.memory, columns),
        vec![speculation(snapshot)],
        tuning(snapshot),
        totals(snapshot, columns),
    ]
    .concat();
    let pool_head = pool_head(&snapshot.pool, columns);
    // What is left for the parts that grow: lanes first, then the map, then the names of its owners.
    let fixed = lines.len() + pool_head.len() + 1 + below.len();
    let mut left = room
        .lines
        .map_or(usize::MAX, |lines| lines.saturating_sub(fixed).max(LEAST_LINES));
    let lanes = lanes(&snapshot.lanes, columns, left.saturating_sub(1).max(1));
    left = left.saturating_sub(lanes.len() - 1);
    let map = map(&snapshot.pool, columns, left.div_ceil(MAP_SHARE).min(MAP_LINES));
    left = left.saturating_sub(map.len());
    lines.extend(pool_head);
    lines.extend(map);
    lines.extend(owners(&snapshot.pool, columns, left));
    lines.extend(lanes);
    lines.extend(below);
    finish(lines, columns, room)
}

fn finish(mut lines: Vec<Line>, columns: usize, room: Room) -> Vec<Line> {
    lines.truncate(room.lines.unwrap_or(usize::MAX));
    lines.into_iter().map(|line| line.fit(columns)).collect()
}

fn head(listing: &Listing, chosen: usize, now_ms: u64) -> Line {
    let running = &listing.running[chosen];
    let mut line = Line::default();
    line.push(format!("{} {}", running.program, running.pid), Style::BOLD);
    let up = now_ms.saturating_sub(running.started_unix_ms) / 1_000;
    line.push(format!(", up {}", duration(up)), Style::PLAIN);
    let silent = now_ms.saturating_sub(running.written_unix_ms);
    if silent > SILENT_MS {
        line.push(
            format!(
                ", no word for {}: it hangs or was stopped",
                duration(silent / 1_000)
            ),
            Style::BOLD,
        );
    }
    line
}

/// All of them, the chosen one marked.
fn processes(listing: &Listing, chosen: usize, columns: usize) -> Vec<Line> {
    let name = |running: &Running| format!("{} {}", running.program, running.pid);
    let pieces = listing
        .running
        .iter()
        .enumerate()
        .map(|(index, running)| match index == chosen {
            true => {
                let mut line = Line::default();
                line.push(format!("[{}]", name(running)), Style::BOLD);
                line
            }
            false => Line::plain(name(running)),
        })
        .collect();
    labelled("Running", flow(pieces, columns - LABEL))
}

fn unreadable(listing: &Listing) -> Option<Line> {
    let pids: Vec<String> = listing.unreadable.iter().map(u32::to_string).collect();
    (!pids.is_empty()).then(|| {
        Line::plain(format!(
            "not shown, for another version of Reprise runs them: process {}",
            pids.join(", ")
        ))
    })
}

/// Puts a name before the first line, and moves the others under it.
fn labelled(name: &str, lines: Vec<Line>) -> Vec<Line> {
    lines
        .into_iter()
        .enumerate()
        .map(|(index, line)| {
            let mut whole = Line::default();
            whole.push(column(if index == 0 { name } else { "" }, LABEL), Style::BOLD);
            whole.append(line);
            whole
        })
        .collect()
}

fn indented(lines: Vec<Line>, columns: usize) -> Vec<Line> {
    lines
        .into_iter()
        .map(|line| {
            let mut whole = Line::plain(" ".repeat(columns));
            whole.append(line);
            whole
        })
        .collect()
}

fn flowing(name: &str, pieces: impl IntoIterator<Item = String>, columns: usize) -> Vec<Line> {
    let pieces = pieces.into_iter().map(Line::plain).collect();
    labelled(name, flow(pieces, columns - LABEL))
}

fn pool_head(pool: &PoolView, columns: usize) -> Vec<Line> {
    let pieces = [
        format!(
            "{} of {} ({})",
            counted(pool.pages, "page"),
            counted(pool.page_tokens, "token"),
            size(pool.page_bytes as u64)
        ),
        format!("{} in use", with_commas(pool.in_use_pages)),
        format!("{} kept", with_commas(pool.cached_pages)),
        format!(
            "{} free ({} promised)",
            with_commas(pool.free_pages),
            with_commas(pool.promised_pages)
        ),
        format!("most {}", with_commas(pool.high_water_pages)),
        format!(
            "{} of {} taken from the system",
            size(pool.resident_bytes),
            size((pool.pages * pool.page_bytes) as u64)
        ),
    ];
    flowing("KV pool", pieces, columns)
}

/// A letter for an owner; past the alphabets they begin anew, in other colours.
fn letter(owner: usize) -> char {
    let mut letters = ('A'..='Z').chain('a'..='z').cycle();
    letters.nth(owner % 52).unwrap_or('A')
}

fn owner_style(owner: usize) -> Style {
    Style::colour(COLOURS[owner % COLOURS.len()])
}

/// The pages in the pool's order: a letter begins each owner's run, full blocks are in use, light ones kept, dots free.
fn map(pool: &PoolView, columns: usize, most_lines: usize) -> Vec<Line> {
    let width = columns - LABEL;
    if pool.map.is_empty() || most_lines == 0 {
        return Vec::new();
    }
    let pages_a_cell = pool.map.len().div_ceil(width * most_lines).max(1);
    let cells: Vec<Option<usize>> = pool.map.chunks(pages_a_cell).map(most_of).collect();
    let mut before = None;
    let mut lines: Vec<Line> = cells
        .chunks(width)
        .map(|cells| {
            let mut line = Line::default();
            for &cell in cells {
                match cell {
                    None => line.push("·", Style::DIM),
                    Some(owner) if before != Some(owner) => {
                        line.push(
                            letter(owner).to_string(),
                            Style {
                                bold: true,
                                ..owner_style(owner)
                            },
                        );
                    }
                    Some(owner) => {
                        let is_active = pool.owners.get(owner).is_some_and(|owner| owner.is_active);
                        line.push(if is_active { "█" } else { "▒" }, owner_style(owner));
                    }
                }
                before = cell;
            }
            line
        })
        .collect();
    if pages_a_cell > 1
        && let Some(last) = lines.last_mut()
        && last.width() + 20 < width
    {
        last.push(format!("  a cell is {pages_a_cell} pages"), Style::DIM);
    }
    indented(lines, LABEL)
}

/// Who holds most of these pages; nobody only when all of them are free.
fn most_of(pages: &[Option<u16>]) -> Option<usize> {
    let count = |owner: u16| pages.iter().filter(|page| **page == Some(owner)).count();
    let owner = pages
        .iter()
        .flatten()
        .copied()
        .max_by_key(|&owner| (count(owner), u16::MAX - owner));
    owner.map(usize::from)
}

fn owners(pool: &PoolView, columns: usize, most_lines: usize) -> Vec<Line> {
    let pieces = pool
        .owners
        .iter()
        .enumerate()
        .map(|(index, owner)| {
            let mut piece = Line::default();
            let style = Style {
                bold: true,
                ..owner_style(index)
            };
            piece.push(letter(index).to_string(), style);
            let kept = if owner.is_active { "" } else { ", kept" };
            piece.push(
                format!(
                    " {} ({}, {}{kept})",
                    column(&owner.name, OWNER).trim_end(),
                    counted(owner.pages, "page"),
                    counted(owner.tokens, "token")
                ),
                Style::PLAIN,
            );
            piece
        })
        .collect();
    let lines = shortened(flow(pieces, columns - LABEL), most_lines);
    indented(lines, LABEL)
}

/// The first lines, and how many more there would be.
fn shortened(mut lines: Vec<Line>, most: usize) -> Vec<Line> {
    if lines.len() > most {
        let hidden = lines.len() + 1 - most;
        lines.truncate(most.saturating_sub(1));
        if most > 0 {
            lines.push(Line::plain(format!("... {} more", counted(hidden, "line"))));
        }
    }
    lines
}

fn lanes(lanes: &[LaneView], columns: usize, most_lines: usize) -> Vec<Line> {
    let waiting = lanes
        .iter()
        .filter(|lane| matches!(lane.phase, PhaseView::Queued { .. }))
        .count();
    let head = format!(
        "{} at work, {} waiting",
        counted(lanes.len() - waiting, "request"),
        with_commas(waiting)
    );
    let mut lines = labelled("Lanes", vec![Line::plain(head)]);
    let rows = shortened(lanes.iter().map(lane).collect(), most_lines);
    lines.extend(indented(rows, INDENT).into_iter().map(|row| row.fit(columns)));
    lines
}

fn lane(lane: &LaneView) -> Line {
    let who = format!("#{:<4} {} ", lane.id, column(&lane.owner, OWNER));
    let prompt = lane.prompt_tokens;
    let mut line = Line::plain(who);
    match &lane.phase {
        PhaseView::Queued {
            ahead,
            overtaken,
            waited_seconds,
        } => {
            line.push("waits   ", Style::DIM);
            line.push(
                format!(
                    "{waited_seconds:.0} s, {ahead} ahead, overtaken {}, {}",
                    counted(*overtaken, "time"),
                    counted(prompt, "token")
                ),
                Style::PLAIN,
            );
        }
        PhaseView::Prefill {
            done_tokens,
            seconds_left,
        } => {
            line.push("reads   ", Style::BOLD);
            line.push(bar(*done_tokens, prompt), Style::PLAIN);
            let left = seconds_left
                .map(|seconds| format!(", {seconds:.0} s left"))
                .unwrap_or_default();
            line.push(
                format!(
                    " {}/{}{left}{}",
                    with_commas(*done_tokens),
                    with_commas(prompt),
                    reused(lane)
                ),
                Style::PLAIN,
            );
        }
        PhaseView::Decode {
            answer_tokens,
            tokens_per_second,
        } => {
            line.push("answers ", Style::BOLD);
            line.push(
                format!(
                    "{}, {tokens_per_second:.1}/s, prompt {}{}",
                    counted(*answer_tokens, "token"),
                    with_commas(prompt),
                    reused(lane)
                ),
                Style::PLAIN,
            );
        }
    }
    line
}

fn reused(lane: &LaneView) -> String {
    match lane.reused_tokens {
        0 => String::new(),
        tokens => format!(", {} reused", with_commas(tokens)),
    }
}

fn bar(done: usize, total: usize) -> String {
    let filled = (done * BAR).checked_div(total).unwrap_or(0).min(BAR);
    format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled))
}

fn components(components: &[ComponentView], columns: usize) -> Vec<Line> {
    let pieces = components.iter().map(|component| {
        let state = match component.state {
            ComponentState::Resident => format!("in memory, {}", size(component.bytes)),
            ComponentState::Mapped => "mapped".to_owned(),
            ComponentState::Released => "released".to_owned(),
            ComponentState::Absent => "none".to_owned(),
        };
        let owners: Vec<String> = component.owners.iter().map(|id| format!("#{id}")).collect();
        let held = match owners.is_empty() {
            true => String::new(),
            false => format!(", for {}", owners.join(" ")),
        };
        format!("{}: {state}{held}", component.name)
    });
    flowing("Components", pieces, columns)
}

fn memory(memory: &MemoryView, columns: usize) -> Vec<Line> {
    let counted_bytes = memory.weight_bytes + memory.workspace_bytes + memory.kv_bytes;
    let process = match memory.process_bytes {
        Some(bytes) => format!("process {} of {}", size(bytes), size(memory.limit_bytes)),
        None => format!("process unknown of {}", size(memory.limit_bytes)),
    };
    let rest = memory
        .process_bytes
        .map(|bytes| format!("other {}", size(bytes.saturating_sub(counted_bytes))));
    let mut lines = flowing(
        "Memory",
        [
            process,
            format!(
                "free {} of {}",
                size(memory.available_bytes),
                size(memory.total_bytes)
            ),
            memory
                .stalled_percent
                .map_or("stalls unknown".to_owned(), |percent| {
                    format!("stalls {percent:.1} %")
                }),
            format!("weights {}", size(memory.weight_bytes)),
            format!("workspace {}", size(memory.workspace_bytes)),
            format!("KV {}", size(memory.kv_bytes)),
        ]
        .into_iter()
        .chain(rest),
        columns,
    );
    if let Some(reason) = &memory.refusal {
        let mut line = Line::default();
        line.push(format!("new requests are refused: {reason}"), Style::BOLD);
        lines.extend(labelled("", vec![line]));
    }
    lines
}

fn speculation(snapshot: &Snapshot) -> Line {
    let speculation = &snapshot.speculation;
    let text = match speculation.guessed {
        0 => format!("{}, nothing guessed yet", speculation.method),
        guessed => format!(
            "{}, {} of {} right{}",
            speculation.method,
            with_commas(speculation.accepted as usize),
            with_commas(guessed as usize),
            percent(speculation.accepted, guessed)
        ),
    };
    let mut lines = labelled("Guessing", vec![Line::plain(text)]);
    lines.pop().unwrap_or_default()
}

fn tuning(snapshot: &Snapshot) -> Vec<Line> {
    let text = snapshot
        .tuning
        .as_ref()
        .map(|tuning| Line::plain(format!("{}, {:.0} % done", tuning.activity, 100.0 * tuning.share)));
    labelled("Tuning", text.into_iter().collect())
}

fn totals(snapshot: &Snapshot, columns: usize) -> Vec<Line> {
    let totals = &snapshot.totals;
    flowing(
        "Totals",
        [
            format!(
                "{}, {} refused",
                counted(totals.requests as usize, "request"),
                with_commas(totals.refused as usize)
            ),
            format!(
                "{}, {} reused{}",
                counted(totals.prompt_tokens as usize, "prompt token"),
                with_commas(totals.reused_tokens as usize),
                percent(totals.reused_tokens, totals.prompt_tokens)
            ),
            format!("{} answered", with_commas(totals.answer_tokens as usize)),
        ],
        columns,
    )
}

fn percent(part: u64, whole: u64) -> String {
    match (part * 100).checked_div(whole) {
        Some(percent) => format!(" ({percent} %)"),
        None => String::new(),
    }
}

/// Bytes in the unit that leaves two to four digits.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} KB", bytes.div_ceil(1_000)),
        1_000_000..10_000_000_000 => format!("{} MB", with_commas((bytes as f64 / 1e6).round() as usize)),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// 45 s, 12:04, 3:00:12.
fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprise_engine::snapshot::{ModelView, OwnerView, SpeculationView, TotalsView, TuningView};

    fn owner(name: &str, is_active: bool, pages: usize) -> OwnerView {
        OwnerView {
            name: name.to_owned(),
            is_active,
            pages,
            tokens: pages * 256 - 6,
        }
    }

    fn busy() -> Snapshot {
        let mut map = vec![None; 40];
        for (page, owner) in [(0, 0), (1, 0), (2, 0), (3, 1), (4, 2), (5, 2), (9, 0)] {
            map[page] = Some(owner);
        }
        Snapshot {
            sequence: 7,
            model: ModelView {
                name: "SmolLM2 135M".into(),
                context_tokens: 8_192,
                kv_format: "q8/tq4".into(),
                kv_token_bytes: 9_000,
                backend: "cpu avx2".into(),
            },
            pool: PoolView {
                pages: 40,
                in_use_pages: 5,
                cached_pages: 2,
                free_pages: 33,
                promised_pages: 8,
                high_water_pages: 12,
                page_tokens: 256,
                page_bytes: 2_304_000,
                resident_bytes: 27_648_000,
                map,
                owners: vec![
                    owner("server: alice", true, 4),
                    owner("server", true, 1),
                    owner("terminal", false, 2),
                ],
            },
            lanes: vec![
                LaneView {
                    id: 12,
                    owner: "server: alice".into(),
                    prompt_tokens: 1_024,
                    reused_tokens: 128,
                    phase: PhaseView::Prefill {
                        done_tokens: 512,
                        seconds_left: Some(3.4),
                    },
                },
                LaneView {
                    id: 13,
                    owner: "server".into(),
                    prompt_tokens: 300,
                    reused_tokens: 0,
                    phase: PhaseView::Decode {
                        answer_tokens: 120,
                        tokens_per_second: 23.44,
                    },
                },
                LaneView {
                    id: 14,
                    owner: "server: \u{1b}[2Jx".into(),
                    prompt_tokens: 20,
                    reused_tokens: 0,
                    phase: PhaseView::Queued {
                        ahead: 0,
                        overtaken: 1,
                        waited_seconds: 1.2,
                    },
                },
            ],
            components: vec![
                ComponentView {
                    name: "backbone".into(),
                    state: ComponentState::Resident,
                    bytes: 71_000_000,
                    owners: vec![12, 13],
                },
                ComponentView {
                    name: "embedding".into(),
                    state: ComponentState::Mapped,
                    bytes: 0,
                    owners: vec![12],
                },
                ComponentView {
                    name: "head".into(),
                    state: ComponentState::Released,
                    bytes: 0,
                    owners: Vec::new(),
                },
                ComponentView {
                    name: "vision tower".into(),
                    state: ComponentState::Absent,
                    bytes: 0,
                    owners: Vec::new(),
                },
            ],
            memory: MemoryView {
                process_bytes: Some(210_000_000),
                limit_bytes: 18_400_000_000,
                available_bytes: 19_100_000_000,
                total_bytes: 23_000_000_000,
                stalled_percent: Some(0.0),
                weight_bytes: 71_000_000,
                workspace_bytes: 12_000_000,
                kv_bytes: 27_648_000,
                refusal: None,
            },
            speculation: SpeculationView {
                method: "prompt lookup".into(),
                guessed: 120,
                accepted: 40,
            },
            totals: TotalsView {
                requests: 12,
                refused: 1,
                prompt_tokens: 12_400,
                reused_tokens: 9_300,
                answer_tokens: 2_300,
            },
            ..Snapshot::default()
        }
    }

    fn running(pid: u32, snapshot: Snapshot) -> Running {
        Running {
            pid,
            program: "serve".into(),
            started_unix_ms: 1_000,
            written_unix_ms: 725_000,
            snapshot,
        }
    }

    fn drawn(listing: &Listing, chosen: usize, room: Room) -> String {
        let lines = picture(listing, chosen, 725_500, room);
        if let Some(most) = room.lines {
            assert!(lines.len() <= most, "{} lines of {most}", lines.len());
        }
        for line in &lines {
            assert!(line.width() <= room.columns, "{line:?}");
        }
        lines.iter().map(|line| line.render(false) + "\n").collect()
    }

    fn listing(snapshots: Vec<Snapshot>) -> Listing {
        Listing {
            running: (4_211..)
                .zip(snapshots)
                .map(|(pid, snapshot)| running(pid, snapshot))
                .collect(),
            unreadable: Vec::new(),
        }
    }

    const TERMINAL: Room = Room {
        columns: 80,
        lines: Some(24),
    };

    #[test]
    fn an_engine_at_work_fits_eighty_columns_and_twenty_four_lines() {
        let text = drawn(&listing(vec![busy()]), 0, TERMINAL);
        let expected = "\
serve 4211, up 12:04
SmolLM2 135M | cpu avx2 | window 8,192 tokens | KV q8/tq4, 9,000 bytes a token
KV pool    40 pages of 256 tokens (2 MB)  5 in use  2 kept  33 free (8 promised)
           most 12  28 MB of 92 MB taken from the system
           A██BC▒···A······························
           A server: alice (4 pages, 1,018 tokens)
           B server (1 page, 250 tokens)  C terminal (2 pages, 506 tokens, kept)
Lanes      2 requests at work, 1 waiting
   #12   server: alice      reads   ████░░░░ 512/1,024, 3 s left, 128 reused
   #13   server             answers 120 tokens, 23.4/s, prompt 300
   #14   server: [2Jx       waits   1 s, 0 ahead, overtaken 1 time, 20 tokens
Components backbone: in memory, 71 MB, for #12 #13  embedding: mapped, for #12
           head: released  vision tower: none
Memory     process 210 MB of 18.4 GB  free 19.1 GB of 23.0 GB  stalls 0.0 %
           weights 71 MB  workspace 12 MB  KV 28 MB  other 99 MB
Guessing   prompt lookup, 40 of 120 right (33 %)
Totals     12 requests, 1 refused  12,400 prompt tokens, 9,300 reused (75 %)
           2,300 answered
";
        assert_eq!(text, expected, "{text}");
    }

    #[test]
    fn what_does_not_fit_is_counted_and_the_totals_stay() {
        let mut full = busy();
        let lane = full.lanes[2].clone();
        full.lanes
            .extend((20..60).map(|id| LaneView { id, ..lane.clone() }));
        full.pool.owners = (0..60)
            .map(|index| owner(&format!("chat {index}"), index < 4, 1))
            .collect();
        full.pool.map = (0..5_000).map(|page| Some(page as u16 / 100 % 60)).collect();
        full.memory.refusal = Some("too much".into());
        full.tuning = Some(TuningView {
            activity: "measuring q8/tq4".into(),
            share: 0.4,
        });
        let text = drawn(&listing(vec![full.clone(), busy()]), 0, TERMINAL);
        assert!(
            text.contains("[serve 4211]  serve 4212") && text.contains(" more"),
            "{text}"
        );
        assert!(
            text.contains("new requests are refused") && text.contains("2,300 answered"),
            "{text}"
        );
        assert!(text.contains("Tuning     measuring q8/tq4, 40 % done"), "{text}");
        let wide = drawn(
            &listing(vec![full.clone()]),
            0,
            Room {
                columns: 200,
                lines: None,
            },
        );
        assert!(!wide.contains(" more") && wide.contains("chat 59"), "{wide}");
        for (columns, lines) in [(80, 1), (20, 5), (1, 1), (300, 3)] {
            let room = Room {
                columns,
                lines: Some(lines),
            };
            assert!(picture(&listing(vec![full.clone()]), 0, 0, room).len() <= lines);
        }
    }

    #[test]
    fn a_cell_shows_who_holds_most_of_its_pages() {
        assert_eq!(most_of(&[None, None]), None);
        assert_eq!(most_of(&[None, Some(3), None]), Some(3));
        assert_eq!(most_of(&[Some(1), Some(2), Some(2)]), Some(2));
        assert_eq!(most_of(&[Some(5), Some(2)]), Some(2));
    }

    #[test]
    fn silence_and_other_versions_are_told() {
        let mut listing = listing(vec![Snapshot::default()]);
        listing.unreadable = vec![9, 10];
        let lines = picture(&listing, 0, 800_000, TERMINAL);
        let text: String = lines.iter().map(|line| line.render(false) + "\n").collect();
        assert!(
            text.contains("no word for 1:15") && text.contains("process 9, 10"),
            "{text}"
        );
        let nobody = drawn(&Listing::default(), 0, TERMINAL);
        assert_eq!(
            nobody,
            "no engine is running; start one: reprise chat, reprise serve\n"
        );
    }
}
