// Measures the window, apart from the tests: first paint, opening and scrolling a chat of a thousand turns, how long the
// page is busy at a stretch while an answer streams into it, memory.
//
//   tests/window/run --measure        with REPRISE_APP=target/release/reprise-app, or the program of the tests

import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { answerAtMost, closeDialog, main, openSettings, retype, send, stop, untilLonger } from './chat.mjs';
import { Key, Machine, until } from './session.mjs';

const TURNS = 1000;
const STREAM_SECONDS = 10;
/** Times the whole chat is scrolled through. */
const ROUNDS = Number(process.env.REPRISE_MEASURE_ROUNDS ?? 3);

/** Installs a probe that notes how long the page's thread is taken at a stretch: how late a message to itself comes. */
const PROBE = `
  window.probe = { gaps: [], ends: [], frames: [], running: true };
  const channel = new MessageChannel();
  let last = performance.now();
  channel.port1.onmessage = () => {
    const now = performance.now();
    probe.gaps.push(now - last);
    probe.ends.push(performance.timeOrigin + now);
    last = now;
    if (probe.running) setTimeout(() => { last = performance.now(); channel.port2.postMessage(0); }, 3);
  };
  channel.port2.postMessage(0);
  let frame = performance.now();
  const tick = () => {
    const now = performance.now();
    probe.frames.push(now - frame);
    frame = now;
    if (probe.running) requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);`;

const rank = (values, share) => values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))];
const ms = (value) => `${value.toFixed(value < 10 ? 1 : 0)} ms`;

/** Notes how long a process's first thread has had a core, until `end` is called, which gives the time it had one in a stretch. */
function watchThread(pid) {
  const seen = [];
  const look = () => seen.push([Date.now(), Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6]);
  look();
  const timer = setInterval(look, 5);
  return {
    end() {
      clearInterval(timer);
      look();
      // From the last look before the stretch to the first one after it: at least what falls into it.
      return (from, to) => seen.find(([time]) => time >= to)[1] - seen.findLast(([time]) => time <= from)[1];
    },
  };
}

/** When a process began, in ms since 1970. */
function beginOf(pid) {
  const ticks = Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')[19]);
  const boot = Number(/btime (\d+)/.exec(readFileSync('/proc/stat', 'utf8'))[1]);
  return boot * 1000 + ticks * 10;
}

/** Resident and proportional memory of the program and its web processes, in MB. */
function memory(pid) {
  const children = (parent) =>
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .filter((name) => {
        try {
          return Number(readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1].split(' ')[1]) === parent;
        } catch {
          return false; // it has ended
        }
      })
      .map(Number);
  const family = (root) => [root, ...children(root).flatMap(family)];
  return family(pid).map((process) => {
    const status = readFileSync(`/proc/${process}/status`, 'utf8');
    const rollup = readFileSync(`/proc/${process}/smaps_rollup`, 'utf8');
    return {
      pid: process,
      name: /Name:\s+(.*)/.exec(status)[1],
      rss: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1000,
      pss: Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0) / 1000,
    };
  });
}

function tell(title, gaps) {
  const long = gaps.filter((gap) => gap > 50).length;
  console.log(
    `${title}: median ${ms(rank(gaps, 0.5))}, 99 % ${ms(rank(gaps, 0.99))}, longest ${ms(rank(gaps, 1))}, ${long} of ${gaps.length} over 50 ms`,
  );
}

const processor = /model name\s*: (.*)/.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? 'a processor without a name';
const commit = spawnSync('git', ['describe', '--always', '--dirty', '--abbrev=10', '--exclude=*'], { encoding: 'utf8' });
console.log(`${processor}, ${availableParallelism()} cores, ${process.env.REPRISE_APP} at ${commit.stdout.trim()}`);
const machine = await Machine.begin();
try {
  machine.fillChats(TURNS);

  const paints = [];
  for (let round = 0; round < 3; round += 1) {
    await machine.open();
    await until(async () => /is ready/.test(await main(machine)), 'the model');
    const paint = await machine.run(
      'return performance.timeOrigin + performance.getEntriesByName("first-contentful-paint")[0].startTime',
    );
    paints.push(paint - beginOf(machine.pid()));
    if (round < 2) await machine.close();
  }
  console.log(`first paint after the program's start: ${paints.map(ms).join(', ')}`);
  console.log('memory, model loaded:', memory(machine.pid()));

  const opened = await machine.driver.executeAsyncScript(`
    const done = arguments[0];
    const begin = performance.now();
    document.querySelector('nav button[data-chat]').click();
    const look = () => document.querySelectorAll('article .md').length > 0
      ? requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin)))
      : requestAnimationFrame(look);
    look();`);
  console.log(`a chat of ${TURNS} turns opened in ${ms(opened)}`);

  await machine.run(PROBE);
  await machine.driver.executeAsyncScript(`
    const done = arguments[0];
    const view = document.querySelector('.conversation .viewport');
    let step = 0;
    const scroll = () => { view.scrollBy(0, step < 300 ? -60 : 60); step += 1; step < 600 ? requestAnimationFrame(scroll) : done(); };
    scroll();`);
  const scrolled = await machine.run('probe.running = false; return probe');
  tell('scrolling, tasks', scrolled.gaps);
  tell('scrolling, frames', scrolled.frames);

  // Through the whole chat and back, several times: what the page holds must not grow with every turn it has shown.
  for (let round = 1; round <= ROUNDS; round += 1) {
    await machine.driver.executeAsyncScript(`
      const done = arguments[0];
      const view = document.querySelector('.conversation .viewport');
      let direction = -1;
      const scroll = () => {
        const before = view.scrollTop;
        view.scrollBy(0, direction * 1500);
        if (view.scrollTop !== before) return requestAnimationFrame(scroll);
        if (direction > 0) return done();
        direction = 1;
        requestAnimationFrame(scroll);
      };
      scroll();`);
    const page = memory(machine.pid()).find(({ name }) => name.startsWith('WebKitWebProc'));
    const elements = await machine.run('return document.querySelectorAll("*").length');
    console.log(`through the chat and back, ${round}: page ${page.rss.toFixed(0)} MB resident, ${elements} elements`);
  }

  await answerAtMost(machine, 4000);
  // A small window, so that the answer streams fast: the page's work is what is measured.
  await openSettings(machine, 'Model');
  await retype(machine, await machine.role('textbox', 'Window'), '2048', Key.TAB);
  await closeDialog(machine);
  await until(async () => /of 2,048 tokens/.test(await machine.text()), 'the smaller window');
  await send(machine, 'Write a very long story about a lighthouse keeper. Tell every day of the year in detail.');
  await untilLonger(machine, 20);
  await machine.run(PROBE);
  const thread = watchThread(memory(machine.pid()).find(({ name }) => name.startsWith('WebKitWebProc')).pid);
  const before = (await untilLonger(machine, 0)).length;
  await new Promise((wake) => setTimeout(wake, STREAM_SECONDS * 1000));
  const streamed = await machine.run('probe.running = false; return probe');
  const after = (await untilLonger(machine, 0)).length;
  console.log(`streamed ${((after - before) / STREAM_SECONDS).toFixed(0)} characters/s`);
  tell('streaming, tasks', streamed.gaps);
  const worked = thread.end();
  for (const [index, gap] of streamed.gaps.entries()) {
    const end = streamed.ends[index];
    if (gap > 50) console.log(`  in one of ${ms(gap)} the page's thread had a core for at most ${ms(worked(end - gap, end))}`);
  }
  tell('streaming, frames', streamed.frames);
  await stop(machine).catch(() => {}); // it may have ended by itself
  console.log(/[\d.]+ tokens\/s/.exec(await main(machine))?.[0]);
  console.log('memory, after all this:', memory(machine.pid()));
} finally {
  await machine.end();
}
