//! The pool against a plain model: any order of operations, and every sequence still reads what it wrote.

use std::collections::HashSet;
use std::rc::Rc;

use proptest::prelude::*;

use super::tests::{pool, read, write};
use super::*;

const PAGES: usize = 8;

#[derive(Debug, Clone)]
enum Operation {
    Begin,
    Fork {
        of: usize,
        positions: usize,
    },
    Prepare {
        of: usize,
        more: usize,
        from: Option<usize>,
    },
    Write {
        of: usize,
    },
    Commit {
        of: usize,
        more: usize,
    },
    Cancel {
        of: usize,
    },
    Truncate {
        of: usize,
        positions: usize,
    },
    End {
        of: usize,
    },
    Reserve {
        pages: usize,
    },
    Grow {
        of: usize,
        pages: usize,
    },
    Withdraw {
        of: usize,
    },
    Trim,
}

/// Indices are taken modulo what there is, positions modulo what is allowed.
fn operation() -> impl Strategy<Value = Operation> {
    let of = 0..8_usize;
    let positions = prop_oneof![0..800_usize, (0..4_usize).prop_map(|pages| pages * PAGE_TOKENS)];
    prop_oneof![
        2 => Just(Operation::Begin),
        3 => (of.clone(), positions.clone()).prop_map(|(of, positions)| Operation::Fork { of, positions }),
        6 => (of.clone(), 1..600_usize, proptest::option::of(0..4_usize))
            .prop_map(|(of, more, from)| Operation::Prepare { of, more, from }),
        6 => of.clone().prop_map(|of| Operation::Write { of }),
        6 => (of.clone(), positions.clone()).prop_map(|(of, more)| Operation::Commit { of, more }),
        1 => of.clone().prop_map(|of| Operation::Cancel { of }),
        2 => (of.clone(), positions).prop_map(|(of, positions)| Operation::Truncate { of, positions }),
        1 => of.clone().prop_map(|of| Operation::End { of }),
        2 => (0..5_usize).prop_map(|pages| Operation::Reserve { pages }),
        1 => (of.clone(), 0..3_usize).prop_map(|(of, pages)| Operation::Grow { of, pages }),
        1 => of.prop_map(|of| Operation::Withdraw { of }),
        1 => Just(Operation::Trim),
    ]
}

/// A sequence and what it should hold: the number at each position up to the prepared one (`None` where nothing was
/// written yet), and pages whose count of owners is the reference count.
struct Lane {
    real: Sequence,
    numbers: Vec<Option<u64>>,
    len: usize,
    pages: Vec<Rc<()>>,
}

impl Lane {
    fn shared_tail(&self) -> Option<usize> {
        let tail = self.len / PAGE_TOKENS;
        (!self.len.is_multiple_of(PAGE_TOKENS) && Rc::strong_count(&self.pages[tail]) > 1).then_some(tail)
    }

    fn shorten(&mut self, len: usize) {
        self.len = len;
        self.numbers.truncate(len);
        self.pages.truncate(len.div_ceil(PAGE_TOKENS));
    }
}

struct World {
    pool: PagePool,
    lanes: Vec<Lane>,
    /// Each with the pages it should have.
    reservations: Vec<(Reservation, usize)>,
    next: u64,
    high_water: usize,
}

fn pick<T>(items: &mut [T], of: usize) -> Option<&mut T> {
    let count = items.len().max(1);
    items.get_mut(of % count)
}

impl World {
    fn used(&self) -> usize {
        let pages: HashSet<_> = self
            .lanes
            .iter()
            .flat_map(|lane| &lane.pages)
            .map(Rc::as_ptr)
            .collect();
        pages.len()
    }

    fn promised(&self) -> usize {
        self.reservations.iter().map(|&(_, pages)| pages).sum()
    }

    fn apply(&mut self, operation: Operation) {
        let spare = PAGES - self.used() - self.promised();
        match operation {
            Operation::Begin => self.lanes.push(Lane {
                real: self.pool.sequence(),
                numbers: Vec::new(),
                len: 0,
                pages: Vec::new(),
            }),
            Operation::Fork { of, positions } => {
                let Some(lane) = pick(&mut self.lanes, of) else {
                    return;
                };
                let len = positions % (lane.len + 1);
                let fork = Lane {
                    real: lane.real.fork(len),
                    numbers: lane.numbers[..len].to_vec(),
                    len,
                    pages: lane.pages[..len.div_ceil(PAGE_TOKENS)].to_vec(),
                };
                self.lanes.push(fork);
            }
            Operation::Prepare { of, more, from } => {
                let Some(lane) = pick(&mut self.lanes, of) else {
                    return;
                };
                let reservation = from.and_then(|from| pick(&mut self.reservations, from));
                let end = lane.len + more;
                let missing = end.div_ceil(PAGE_TOKENS).saturating_sub(lane.pages.len());
                let tail = lane.shared_tail();
                let wanted = missing + usize::from(tail.is_some());
                let available = spare + reservation.as_ref().map_or(0, |(_, pages)| *pages);
                let (real, pages) = match reservation {
                    Some((real, pages)) => (Some(real), pages),
                    None => (None, &mut 0),
                };
                let result = lane.real.prepare(end, real);
                if wanted > available {
                    let total = PAGES;
                    assert_eq!(
                        result,
                        Err(PoolError::Exhausted {
                            wanted,
                            available,
                            total
                        })
                    );
                } else {
                    assert_eq!(result, Ok(()));
                    assert!(lane.real.prepared() >= end);
                    *pages -= wanted.min(*pages);
                    if let Some(tail) = tail {
                        lane.pages[tail] = Rc::new(());
                    }
                    lane.pages.extend((0..missing).map(|_| Rc::new(())));
                    lane.numbers.resize(lane.numbers.len().max(end), None);
                }
            }
            Operation::Write { of } => {
                let Some(lane) = pick(&mut self.lanes, of) else {
                    return;
                };
                for position in lane.len..lane.real.prepared() {
                    self.next += 1;
                    write(&mut lane.real, position, self.next);
                    lane.numbers[position] = Some(self.next);
                }
            }
            Operation::Commit { of, more } => {
                let Some(lane) = pick(&mut self.lanes, of) else {
                    return;
                };
                let written = lane.numbers[lane.len..]
                    .iter()
                    .take_while(|number| number.is_some());
                lane.len += more.min(written.count());
                lane.real.commit(lane.len);
            }
            Operation::Cancel { of } => {
                let Some(lane) = pick(&mut self.lanes, of) else {
                    return;
                };
                lane.real.cancel();
                lane.shorten(lane.len);
            }
            Operation::Truncate { of, positions } => {
                let Some(lane) = pick(&mut self.lanes, of) else {
                    return;
                };
                lane.real.truncate(positions);
                if positions < lane.len {
                    lane.shorten(positions);
                }
            }
            Operation::End { of } => {
                if !self.lanes.is_empty() {
                    self.lanes.swap_remove(of % self.lanes.len());
                }
            }
            Operation::Reserve { pages } => match self.pool.reserve(pages) {
                Ok(reservation) => {
                    assert!(pages <= spare);
                    self.reservations.push((reservation, pages));
                }
                Err(_) => assert!(pages > spare),
            },
            Operation::Grow { of, pages } => {
                let Some((reservation, promise)) = pick(&mut self.reservations, of) else {
                    return;
                };
                assert_eq!(reservation.grow(pages).is_ok(), pages <= spare);
                if pages <= spare {
                    *promise += pages;
                }
            }
            Operation::Withdraw { of } => {
                if !self.reservations.is_empty() {
                    self.reservations.swap_remove(of % self.reservations.len());
                }
            }
            Operation::Trim => {
                self.pool.trim();
            }
        }
    }

    fn check(&mut self) {
        self.pool.verify().unwrap();
        self.high_water = self.high_water.max(self.used());
        let usage = self.pool.usage();
        assert_eq!(
            (usage.used, usage.free, usage.promised, usage.high_water),
            (self.used(), PAGES - self.used(), self.promised(), self.high_water)
        );
        assert!(self.pool.resident_bytes() >= usage.used * usage.page_bytes);
        let map = self.pool.map();
        for lane in &self.lanes {
            assert_eq!(lane.real.len(), lane.len);
            let writable = if lane.shared_tail().is_some() {
                lane.len
            } else {
                lane.numbers.len()
            };
            assert_eq!(lane.real.prepared(), writable);
            let counts: Vec<_> = lane
                .real
                .pages()
                .iter()
                .map(|page| map[page.index()] as usize)
                .collect();
            assert_eq!(
                counts,
                lane.pages.iter().map(Rc::strong_count).collect::<Vec<_>>()
            );
            let expected: Vec<u64> = lane.numbers[..lane.len]
                .iter()
                .map(|number| number.unwrap())
                .collect();
            assert_eq!(read(&lane.real), expected);
        }
        for (reservation, pages) in &self.reservations {
            assert_eq!(reservation.pages(), *pages);
        }
    }
}

proptest! {
    #[test]
    fn the_pool_behaves_as_its_model(operations in proptest::collection::vec(operation(), 1..80)) {
        let pool = pool(PAGES);
        let mut world = World {
            pool: pool.clone(),
            lanes: Vec::new(),
            reservations: Vec::new(),
            next: 0,
            high_water: 0,
        };
        for operation in operations {
            world.apply(operation);
            world.check();
        }
        drop(world);
        pool.verify().unwrap();
        let usage = pool.usage();
        prop_assert_eq!((usage.free, usage.promised, usage.used), (PAGES, 0, 0));
    }
}
