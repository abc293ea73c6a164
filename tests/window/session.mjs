// The application in a real window: a display of its own (Xvfb), the driver (tauri-driver with WebKitWebDriver), a data
// folder of its own. What the tests see is what a person would.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRequire } from 'node:module';
import { test as runTest } from 'node:test';
import { Builder, By, Capabilities, Key } from 'selenium-webdriver';

export { By, Key };

/** The program under test, and where screenshots are kept. */
const program = realpathSync(required('REPRISE_APP'));
const driverProgram = required('REPRISE_TAURI_DRIVER');
export const pictures = required('REPRISE_SCREENSHOTS');
mkdirSync(pictures, { recursive: true });

/** Where the set-up has put the models of this machine. */
export const installedModels =
  process.env.REPRISE_MODELS || join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'reprise/models');

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Longer than anything takes on a loaded machine; a test that waits this long has failed. */
const PATIENCE_MS = Number(process.env.REPRISE_PATIENCE_MS ?? 60_000);

function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; run tests/window/run`);
  return value;
}

/** Whether this process still runs: one that has ended and was not waited for yet does not. */
function isRunning(pid) {
  try {
    // Each thread by itself: the first may have ended while another still holds the files, and with them the folder's lock.
    return readdirSync(`/proc/${pid}/task`).some(
      (thread) => readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8').split(') ').at(-1)[0] !== 'Z',
    );
  } catch {
    return existsSync(`/proc/${pid}/task`); // a thread ended meanwhile, or the whole process
  }
}

/** Acts on the display itself; what it prints, which is nothing where it finds nothing. */
const xdotool = (...words) => spawnSync('xdotool', words, { encoding: 'utf8' }).stdout.trim();

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Waits until `question` gives something true, and gives that. */
export async function until(question, what, patience = PATIENCE_MS) {
  const end = Date.now() + patience;
  let last;
  for (;;) {
    try {
      const answer = await question();
      if (answer) return answer;
    } catch (error) {
      last = error; // elements that come and go
    }
    if (Date.now() > end) throw new Error(`waited ${patience / 1000} s for ${what}`, { cause: last });
    await new Promise((wake) => setTimeout(wake, 50));
  }
}

/** `test` that keeps a picture of what the window showed when a test failed; `machine` gives the machine. */
export function testOf(machine) {
  return (name, options, body = options) =>
    runTest(name, options === body ? {} : options, async () => {
      try {
        await body();
      } catch (error) {
        await machine()
          ?.picture(`failed-${name.replace(/[^a-z0-9]+/gi, '-').slice(0, 50)}`)
          .catch(() => {}); // the window may be gone; the error below is the one that counts
        throw error;
      }
    });
}

/** A person's machine: a data folder that outlives the program's runs, a driver, and at most one window. */
export class Machine {
  /** `environment` is added to the program's own. */
  static async begin(environment = {}) {
    const machine = new Machine();
    machine.home = mkdtempSync(join(tmpdir(), 'reprise-window-'));
    // A browser that only notes what it was asked to open.
    const programs = join(machine.home, 'bin');
    mkdirSync(programs);
    machine.opened = join(machine.home, 'opened');
    writeFileSync(join(programs, 'xdg-open'), `#!/bin/sh\nprintf '%s\\n' "$1" >>'${machine.opened}'\n`, { mode: 0o755 });
    machine.environment = {
      ...process.env,
      PATH: `${programs}:${process.env.PATH}`,
      REPRISE_HOME: join(machine.home, 'data'),
      REPRISE_TUNE: 'off',
      XDG_DATA_HOME: join(machine.home, 'share'),
      XDG_CONFIG_HOME: join(machine.home, 'config'),
      ...environment,
    };
    machine.port = await freePort();
    const nativePort = await freePort();
    machine.driverProcess = spawn(driverProgram, ['--port', String(machine.port), '--native-port', String(nativePort)], {
      env: machine.environment,
      stdio: ['ignore', 'inherit', 'inherit'],
      detached: true, // a group of its own, which can be ended whole
    });
    await until(
      async () => (await fetch(`http://127.0.0.1:${machine.port}/status`)).ok,
      'tauri-driver to listen',
    );
    return machine;
  }

  /** Puts one chat of so many turns into the data folder, before the program's first start. */
  fillChats(turns) {
    const store = join(this.environment.REPRISE_HOME, 'chats.sqlite');
    const filled = spawnSync(required('REPRISE_FILL_CHATS'), [store, String(turns)], { encoding: 'utf8' });
    if (filled.status !== 0) throw new Error(filled.stderr);
  }

  /** Opens the window, as large as asked. */
  async open({ width = 1200, height = 800 } = {}) {
    const capabilities = new Capabilities();
    capabilities.set('browserName', 'wry');
    capabilities.set('tauri:options', { application: program });
    this.driver = await new Builder()
      .withCapabilities(capabilities)
      .usingServer(`http://127.0.0.1:${this.port}/`)
      .build();
    await this.driver.manage().setTimeouts({ script: 300_000 });
    await this.driver.manage().window().setRect({ x: 0, y: 0, width, height });
    await until(() => this.find('main'), 'the page');
    return this;
  }

  /** Closes the window, and waits until the program has ended: it still stores what it knows after its window is gone. */
  async close() {
    if (this.driver === undefined) return;
    const pid = this.pid();
    let tired;
    const patience = new Promise((_, fail) => {
      tired = setTimeout(() => fail(new Error('the driver did not close the window')), PATIENCE_MS);
    });
    await Promise.race([this.driver.quit(), patience]).finally(() => clearTimeout(tired));
    this.driver = undefined;
    await until(() => !isRunning(pid), 'the program to end after its window was closed');
  }

  async end() {
    try {
      await this.close();
    } finally {
      // The driver, WebKit's driver and whatever of the program is left: the test must not wait for them for ever.
      const gone = once(this.driverProcess, 'exit');
      process.kill(-this.driverProcess.pid, 'SIGKILL');
      await gone;
      rmSync(this.home, { recursive: true, force: true, maxRetries: 10 });
    }
  }

  /** The program's process: the one that has this machine's data folder. */
  pid() {
    const own = `REPRISE_HOME=${this.environment.REPRISE_HOME}\0`;
    const found = readdirSync('/proc').filter((name) => {
      if (!/^\d+$/.test(name)) return false;
      try {
        return readlinkSync(`/proc/${name}/exe`) === program && readFileSync(`/proc/${name}/environ`, 'utf8').includes(own);
      } catch {
        return false; // it has ended, or is somebody else's
      }
    });
    if (found.length !== 1) throw new Error(`${found.length} processes of ${program} are running here`);
    return Number(found[0]);
  }

  /** Kills the program without a warning, as a crash would. */
  async kill() {
    process.kill(this.pid(), 'SIGKILL');
    await this.driver.quit().catch(() => {}); // the driver has nobody to close any more
    this.driver = undefined;
  }

  /** Starts the program a second time beside the open window; gives its exit code. */
  async startAgain() {
    const second = spawn(program, { env: this.environment, stdio: 'inherit' });
    const [code] = await once(second, 'exit');
    return code;
  }

  /** Runs the program of the terminal on the same data; the window must be closed. */
  terminal(words) {
    return spawnSync(required('REPRISE_CLI'), words, { env: this.environment, encoding: 'utf8' });
  }

  find(css) {
    return this.driver.findElement(By.css(css));
  }

  all(css) {
    return this.driver.findElements(By.css(css));
  }

  run(script, ...values) {
    return this.driver.executeScript(script, ...values);
  }

  /** The first visible element of this role whose accessible name is (or matches) `name`; undefined when none is. */
  async byRole(role, name) {
    return (await this.allByRole(role, name))[0];
  }

  /** All of them, in the page's order. */
  async allByRole(role, name) {
    const candidates = {
      button: 'button, [role=button]',
      link: 'a[href]',
      textbox: 'textarea, input:not([type]), input[type=text], input[type=search], [role=textbox]',
      dialog: '[role=dialog], [role=alertdialog], dialog[open]',
      menuitem: '[role=menuitem]',
      option: '[role=option]',
      label: 'label',
      heading: 'h1, h2, h3',
      article: 'article',
      progressbar: 'progress, [role=progressbar]',
      status: '[role=status], output',
    };
    await this.loadAxe();
    return this.run(
      `const [selector, name] = arguments;
       const isShown = (element) => element.getClientRects().length > 0 && getComputedStyle(element).visibility !== 'hidden';
       const fits = name === null ? () => true
         : name.pattern === undefined ? (label) => label === name.text
         : (label) => new RegExp(name.pattern, name.flags).test(label);
       axe.setup(document);
       try {
         return [...document.querySelectorAll(selector)].filter((element) =>
           isShown(element) && fits(axe.commons.text.accessibleText(element).replace(/\\s+/g, ' ').trim()));
       } finally {
         axe.teardown();
       }`,
      candidates[role] ?? `[role=${role}]`,
      name === undefined ? null : name instanceof RegExp ? { pattern: name.source, flags: name.flags } : { text: name },
    );
  }

  /** Brings axe-core into the page: it knows accessible names (the driver's own command for them hangs) and violations. */
  async loadAxe() {
    if (!(await this.run('return typeof axe === "object"'))) await this.run(axeSource);
  }

  /** Waits for it. */
  role(role, name) {
    return until(() => this.byRole(role, name), `a ${role} named ${name}`);
  }

  /** Waits for the last of them. */
  last(role, name) {
    return until(async () => (await this.allByRole(role, name)).at(-1), `a ${role} named ${name}`);
  }

  async click(role, name) {
    const element = await this.role(role, name);
    await element.click();
    return element;
  }

  /** Chooses it with the keyboard. */
  async enter(role, name) {
    const element = await this.role(role, name);
    await this.run('arguments[0].focus()', element);
    await this.press(Key.ENTER);
  }

  /** Presses keys where the focus is. */
  async press(...keys) {
    await this.driver
      .actions()
      .sendKeys(...keys)
      .perform();
  }

  /** Presses a key with the system's modifier. */
  async mod(key) {
    await this.driver.actions().keyDown(Key.CONTROL).sendKeys(key).keyUp(Key.CONTROL).perform();
  }

  /** Makes the page about so many CSS pixels wide: the smallest window, enlarged as a person does with Ctrl and +. */
  async zoomTo(width) {
    await this.driver.manage().window().setRect({ x: 0, y: 0, width: 720, height: 1000 });
    await until(async () => {
      if ((await this.run('return innerWidth')) <= width) return true;
      await this.mod('+');
      return false;
    }, `a page ${width} px wide`);
  }

  /** Types a path into the system's dialog with this title, which the page knows nothing of, and agrees. */
  async answerDialog(title, path) {
    const dialog = await until(() => xdotool('search', '--onlyvisible', '--name', `^${title}$`).split('\n')[0], `the dialog ${title}`);
    xdotool('windowfocus', '--sync', dialog);
    // Where the name of a file to save is already there, all of it is replaced.
    xdotool('key', 'ctrl+a');
    xdotool('type', '--delay', '20', path);
    const isGone = () => xdotool('search', '--onlyvisible', '--name', `^${title}$`) === '';
    await until(async () => {
      if (isGone()) return true;
      // The first one may only take up what the dialog has guessed.
      xdotool('key', 'Return');
      await new Promise((wake) => setTimeout(wake, 500));
      return isGone();
    }, `the dialog ${title} to be gone`);
  }

  async text(css = 'body') {
    return (await this.find(css)).getText();
  }

  /** Keeps a picture of the window as it is on the screen (the driver's own screenshots hang without a GPU). */
  async picture(name) {
    // Two frames, so that what was asked for is drawn.
    await this.driver.executeAsyncScript('const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));');
    const { x, y, width, height } = await this.driver.manage().window().getRect();
    const file = join(pictures, `${name}.png`);
    const taken = spawnSync('import', ['-window', 'root', '-crop', `${width}x${height}+${x}+${y}`, '+repage', file]);
    if (taken.status !== 0) throw new Error(`no picture could be taken: ${taken.stderr}`);
  }

  /** The page's violations of WCAG 2.2 A and AA, in words; empty when there are none. */
  async violations() {
    await this.loadAxe();
    const found = await this.driver.executeAsyncScript(`
      const done = arguments[arguments.length - 1];
      axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] })
        .then((result) => done(result.violations.map((violation) =>
          violation.id + ': ' + violation.nodes.map((node) => node.html.slice(0, 160) + ' ' + node.failureSummary).join(' | '))),
          (error) => done([String(error)]));
    `);
    return found;
  }
}
