// When today began, kept true past midnight and after the machine slept.
import { dayBegin, untilMidnightMs } from './list';

/** The day that groups are made by. */
export class Today {
  beginMs = $state(dayBegin(new Date()));

  /** Follows the clock until the returned function is called. */
  follow(): () => void {
    let timer: ReturnType<typeof setTimeout>;
    const look = (): void => {
      const now = new Date();
      this.beginMs = dayBegin(now);
      clearTimeout(timer);
      timer = setTimeout(look, untilMidnightMs(now) + 1_000);
    };
    look();
    // A timer does not run while the machine sleeps.
    window.addEventListener('focus', look);
    return () => {
      clearTimeout(timer);
      window.removeEventListener('focus', look);
    };
  }
}
