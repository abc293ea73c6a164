// Models: those that are here, those that other programs have, those that can be fetched. A server of the test stands for
// the pages where models are fetched from; what it gives are copies of the default model.

import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { answerAtMost, ask, dark, main, newChat, paste } from './chat.mjs';
import { installedModels, Key, Machine, testOf, until } from './session.mjs';

const defaultModel = join(installedModels, 'SmolLM2-135M-Instruct.Q4_1.gguf');
/** Bytes after which the server falls silent the first time. */
const FIRST_PART = 40_000_000;

let machine;
let server;
let person;
/** The first byte that each request for the model asked for. */
const asked = [];
const test = testOf(() => machine);

/** Gives the default model under another's name, the first time not all of it; and wrong bytes under a third's. */
function serve(request, answer) {
  if (request.url.endsWith('/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf')) {
    const bytes = readFileSync(defaultModel).subarray(0, 1_000_000);
    answer.writeHead(200, { 'content-length': bytes.length, etag: '"wrong"' }).end(bytes);
  } else if (request.url.endsWith('/smollm2-360m-instruct-q8_0.gguf')) {
    const bytes = readFileSync(defaultModel);
    const start = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    asked.push(start);
    answer.writeHead(start === 0 ? 200 : 206, {
      'content-length': bytes.length - start,
      etag: '"whole"',
      ...(start > 0 && { 'content-range': `bytes ${start}-${bytes.length - 1}/${bytes.length}` }),
    });
    if (asked.length === 1) answer.write(bytes.subarray(0, FIRST_PART));
    else answer.end(bytes.subarray(start));
  } else {
    answer.writeHead(404).end();
  }
}

before(async () => {
  server = createServer(serve);
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  // A person with other programs for models, each of which has one of its own, and with the models of this machine.
  person = mkdtempSync(join(tmpdir(), 'reprise-person-'));
  const models = join(person, 'models');
  mkdirSync(models);
  for (const name of readdirSync(installedModels)) {
    if (name === 'SmolLM2-135M-Instruct.Q4_1.gguf' || statSync(join(installedModels, name)).isDirectory()) {
      symlinkSync(join(installedModels, name), join(models, name));
    }
  }
  const put = (path) => {
    mkdirSync(join(person, path, '..'), { recursive: true });
    copyFileSync(defaultModel, join(person, path));
  };
  put('.cache/huggingface/hub/models--someone--small/blobs/0123');
  const snapshot = join(person, '.cache/huggingface/hub/models--someone--small/snapshots/abc');
  mkdirSync(snapshot, { recursive: true });
  symlinkSync('../../blobs/0123', join(snapshot, 'Small-of-the-hub.gguf'));
  put('.lmstudio/models/someone/small/Small-of-the-studio.gguf');
  put('.ollama/models/blobs/sha256-abcdef');
  const manifest = join(person, '.ollama/models/manifests/registry/library/small-of-ollama');
  mkdirSync(manifest, { recursive: true });
  writeFileSync(
    join(manifest, '1b'),
    JSON.stringify({ layers: [{ mediaType: 'application/vnd.ollama.image.model', digest: 'sha256:abcdef' }] }),
  );
  machine = await Machine.begin({
    HF_ENDPOINT: `http://127.0.0.1:${server.address().port}`,
    HF_HOME: '',
    HF_HUB_CACHE: '',
    OLLAMA_MODELS: '',
    HOME: person,
    REPRISE_MODELS: models,
  });
  await machine.open();
  await until(async () => /is ready on this machine/.test(await main(machine)), 'the model to be ready');
  await answerAtMost(machine, 16);
});
after(async () => {
  server?.closeAllConnections();
  server?.close();
  await machine?.end();
  if (person !== undefined) rmSync(person, { recursive: true, force: true, maxRetries: 10 });
});

/** The models on the screen: the group each is in, and what a reader sees of it. */
const rows = () =>
  machine.run(
    `return [...document.querySelectorAll('[data-testid="model-row"]')].map((row) => ({
       id: row.dataset.model,
       group: document.getElementById(row.parentElement.getAttribute('aria-labelledby')).innerText,
       text: row.innerText,
     }));`,
  );
const row = async (words) => (await rows()).find(({ text }) => text.includes(words));

async function openModels() {
  await machine.click('button', 'Models');
  await until(async () => (await rows()).length > 3, 'the models');
}

/** Goes back to the chats and has a question answered by what is chosen now. */
async function answered() {
  await machine.press(Key.ESCAPE);
  await until(async () => (await rows()).length === 0, 'the chats again');
  await newChat(machine);
  const answer = await ask(machine, 'Say hello.');
  assert.ok(answer.length > 0);
  return answer;
}

/** Presses a button of the screen, wherever the screen is scrolled to. */
async function press(name) {
  await machine.run('arguments[0].click()', await machine.role('button', name));
}

/** Uses a model, and waits until it is the one that answers. */
async function use(name, then = name) {
  await press(`Use ${name}`);
  await until(async () => /In use\s+Ready/.test((await row(then))?.text ?? ''), `${name} to be in use`);
}

test('they are listed with what they take, light and dark', async () => {
  await openModels();
  const { text, group } = await row('SmolLM2 135M');
  assert.match(text, /Q4_1/);
  assert.match(text, /Fits/);
  assert.equal(group, 'On this machine');
  assert.deepEqual(await machine.violations(), []);
  await machine.picture('models-light');
  await dark(machine);
  assert.deepEqual(await machine.violations(), []);
  await machine.picture('models-dark');
  await machine.run(`delete document.documentElement.dataset.theme`);
});

test('one that cannot be fetched says why, and so does one that came wrong', async () => {
  await press('Fetch Qwen3 0.6B');
  await until(async () => /404/.test((await row('Qwen3 0.6B')).text), 'why it cannot be fetched');
  await press('Fetch Qwen2.5-Coder 0.5B');
  await until(async () => /its checksum is/.test((await row('Qwen2.5-Coder 0.5B')).text), 'what is wrong with it');
  const left = readdirSync(join(person, 'models')).filter((name) => name.startsWith('qwen2.5'));
  assert.deepEqual(left, [], 'nothing of it is left');
  assert.deepEqual(await machine.violations(), []);
});

test('one is fetched: stopped on the way, gone on with, and used for an answer', async () => {
  await press('Fetch SmolLM2 360M');
  await until(async () => /40(\.0)? MB of 98\.4 MB \(41\s?%\)/.test((await row('SmolLM2 360M')).text), 'how far it is');
  await machine.picture('models-fetching');
  await press('Stop fetching SmolLM2 360M');
  await press('Fetch SmolLM2 360M');
  await until(async () => (await row('SmolLM2 360M')).group === 'On this machine', 'the whole file');
  assert.deepEqual(asked, [0, FIRST_PART], 'nothing was fetched twice');
  const file = join(person, 'models/smollm2-360m-instruct-q8_0.gguf');
  assert.ok(readFileSync(file).equals(readFileSync(defaultModel)));
  assert.ok(!existsSync(`${file}.part`) && !existsSync(`${file}.part.tag`));
  await use('SmolLM2 360M');
  await answered();
});

test('those of other programs are found and used where they are, and taken off the list again', async () => {
  await openModels();
  for (const [name, program] of [
    ['Small-of-the-hub', 'Hugging Face'],
    ['Small-of-the-studio', 'LM Studio'],
    ['small-of-ollama:1b', 'Ollama'],
  ]) {
    const found = await row(name);
    assert.equal(found.group, 'Found in other programs');
    assert.match(found.text, new RegExp(`in ${program} · Q4_1`));
  }
  await machine.run(`document.querySelector('[data-testid="model-row"]:last-child').scrollIntoView()`);
  await machine.picture('models-found');
  // The name it has here can be typed anywhere.
  await use('small-of-ollama:1b', 'small-of-ollama-1b');
  assert.equal((await row('small-of-ollama-1b')).group, 'On this machine');
  await answered();
  await openModels();
  await use('SmolLM2 135M');
  await press('Remove small-of-ollama-1b');
  await press('Remove');
  await until(async () => (await row('small-of-ollama:1b'))?.group === 'Found in other programs', 'its place in the other program');
  assert.ok(existsSync(join(person, '.ollama/models/blobs/sha256-abcdef')), 'its file stays');
});

test('a chat whose model was changed and changed back is still known', async () => {
  await machine.press(Key.ESCAPE);
  await newChat(machine);
  await paste(machine, 'The keeper cleaned the lamp and counted the gulls. '.repeat(30));
  await ask(machine, 'What did he do?');
  await openModels();
  await use('SmolLM2 360M');
  await use('SmolLM2 135M');
  await machine.press(Key.ESCAPE);
  await ask(machine, 'And then?');
  const line = await (await machine.last('button', /Show how this prompt was read/)).getText();
  const [, reused, prompt] = /([\d,]+) of ([\d,]+) prompt tokens? reused/.exec(line);
  assert.ok(Number(reused.replace(',', '')) > Number(prompt.replace(',', '')) * 0.8, line);
});
