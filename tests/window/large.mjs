// A model that calls tools and names passages, which the default model does not. It is on some machines only.

import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { main } from './chat.mjs';
import { installedModels, Key, Machine, until } from './session.mjs';

const file = 'qwen2.5-coder-1.5b-instruct-q4_k_m.gguf';

/** Why tests with this model are left out here, false where it is. */
export const skip = existsSync(join(installedModels, file)) ? false : `${file} is not among the models of this machine`;

/** The model is large: an answer with two calls takes a loaded machine minutes. */
export const PATIENCE_MS = 180_000;

/** A machine with this model, and a home folder that `furnish` may put something into; `end` takes both away. */
export async function beginLarge(furnish = () => {}) {
  const person = mkdtempSync(join(tmpdir(), 'reprise-person-'));
  const models = join(person, 'models');
  mkdirSync(models);
  symlinkSync(join(installedModels, file), join(models, file));
  furnish(person);
  const machine = await Machine.begin({ HOME: person, REPRISE_MODELS: models });
  const end = async () => {
    await machine.end();
    rmSync(person, { recursive: true, force: true, maxRetries: 10 });
  };
  return { machine, end };
}

/** Makes it the model that answers, as a person does. */
export async function useLarge(machine) {
  await machine.click('button', 'Models');
  await machine.run('arguments[0].click()', await machine.role('button', 'Use Qwen2.5-Coder 1.5B'));
  await machine.press(Key.ESCAPE);
  await until(async () => /is ready on this machine/.test(await main(machine)), 'the model to be ready');
}
