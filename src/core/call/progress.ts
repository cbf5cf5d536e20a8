/** How far a call has come, as its instance says. */
export interface CallProgress {
  /** 0 to 1. */
  readonly progress: number;
  readonly message?: string;
}

const longestMessage = 200;

/** Whether a line of an answer tells of progress: it has `progress`, and no `ok`, which the answer itself has. */
export function isProgressLine(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.hasOwn(value, 'progress') && !Object.hasOwn(value, 'ok');
}

/** What else such a line says is left out. Null when its progress is no number from 0 to 1: that harms nobody. */
export function readProgress({ progress, message }: Readonly<Record<string, unknown>>): CallProgress | null {
  if (typeof progress !== 'number' || !(progress >= 0 && progress <= 1)) return null;
  if (typeof message !== 'string') return { progress };
  const shown = message
    .slice(0, longestMessage)
    .replace(/\p{Cc}/gu, ' ')
    .replace(/\p{Cs}/gu, '\uFFFD');
  return { progress, message: shown };
}
