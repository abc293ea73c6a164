// What an answer did with tools, in words.
import type { StepTold } from '../bindings';
import { told } from '../messages';
import { conversationStrings } from '../strings.conversation';

/** A step as it is shown: a line, and what is behind it, if anything. */
export type StepLine = {
  text: string;
  isTrouble: boolean;
  details: { label: string; text: string } | null;
};

/** The steps worth a line: what began is not told any more once it is told what it came to. */
export function shownSteps(steps: readonly StepTold[], isWriting: boolean): StepTold[] {
  return steps.filter(({ kind }, index) => {
    const isLast = index === steps.length - 1;
    return (kind !== 'calls' && kind !== 'starting') || (isLast && isWriting);
  });
}

/** A step in words. */
export function stepLine(step: StepTold): StepLine {
  const words = conversationStrings.step;
  const line = (text: string, label = '', details = '', isTrouble = false): StepLine => ({
    text,
    isTrouble,
    details: details.trim() === '' ? null : { label, text: details },
  });
  switch (step.kind) {
    case 'calls':
      return line(words.calls(step.tool), words.arguments, step.arguments === '{}' ? '' : step.arguments);
    case 'broken':
      return line(words.broken(told(step.reason)), words.whatItWrote, step.text, true);
    case 'starting':
      return line(words.starting([step.script, ...step.arguments].join(' ')));
    case 'skill':
      return step.isLeftOut
        ? line(words.skillLeftOut(step.skill), '', '', true)
        : line(words.skill(step.skill, step.tokens));
    case 'reference':
      return line(step.isCut ? words.referenceCut(step.file) : words.reference(step.file));
    case 'script':
      return line(
        words.script(step.script, told(step.ending), step.milliseconds),
        words.output,
        step.output,
        !step.isDone,
      );
    case 'server':
      return line(
        step.isError ? words.serverFailed(step.tool) : words.server(step.tool),
        words.output,
        step.text,
        step.isError,
      );
    case 'refused':
      return line(words.refused(told(step.reason)), '', '', true);
    case 'outOfSteps':
      return line(words.outOfSteps(step.steps), '', '', true);
  }
}
