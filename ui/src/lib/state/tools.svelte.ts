// What answers do besides writing: the steps with tools, and the questions that wait for the person before something
// runs.
import { answerQuestion } from '../api';
import type { AppEvent, Asking, Permission, Phase, StepTold } from '../bindings';

/** What an answer is at, the person included: one that waits for them does nothing else. */
export type AnswerPhase = Phase | { at: 'asking' };

/** Answers whose steps are remembered. */
const MOST_ANSWERS = 50;

export class Tools {
  /** By answer, in order. */
  steps = $state.raw<ReadonlyMap<number, readonly StepTold[]>>(new Map());
  /** Those that wait, the oldest first. */
  questions = $state.raw<readonly Asking[]>([]);

  constructor(questions: readonly Asking[] = []) {
    this.questions = questions;
  }

  /** Takes what happened. */
  take(event: AppEvent): void {
    switch (event.kind) {
      case 'step':
        this.#add(event.turn, event.step);
        break;
      case 'asks':
        this.questions = [...this.questions.filter(({ id }) => id !== event.asking.id), event.asking];
        break;
      case 'asked':
        this.#drop(event.id);
        break;
      default:
        break;
    }
  }

  /** Says what the person decided. The question goes at once; it comes back when saying so fails. */
  async answer(asking: Asking, permission: Permission): Promise<void> {
    this.#drop(asking.id);
    try {
      await answerQuestion(asking.id, permission);
    } catch (error) {
      this.questions = [asking, ...this.questions];
      throw error;
    }
  }

  #add(turn: number, step: StepTold): void {
    const steps = new Map(this.steps);
    steps.set(turn, [...(steps.get(turn) ?? []), step]);
    const [oldest] = steps.keys();
    if (steps.size > MOST_ANSWERS && oldest !== undefined) steps.delete(oldest);
    this.steps = steps;
  }

  #drop(id: number): void {
    this.questions = this.questions.filter((asking) => asking.id !== id);
  }
}
