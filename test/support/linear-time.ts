import { countProcessorMs } from './processor-time.ts';

export interface TimeLimit {
  /** Characters of the whole text. */
  readonly length: number;
  /** For the whole text: far more than linear work takes, far less than other work. */
  readonly limitMs: number;
}

/** Texts of any length that are alike. */
export type MakeText = (length: number) => string;

const suspiciousMs = 1;
const partOf = 8;

/**
 * Tests whether something takes more than linear time for a text, mostly by an eighth of it: at the length of the
 * limit, quadratic work takes 64 times as long. Only a check that needs a millisecond there is measured at the whole
 * length.
 * @returns milliseconds above the limit, else 0
 */
export function measureExcessMs(
  act: (text: string) => void,
  make: MakeText,
  { length, limitMs }: TimeLimit,
): number {
  const probe = make(length / partOf);
  const probedMs = countProcessorMs();
  act(probe);
  if (probedMs() < suspiciousMs) return 0;
  const text = make(length);
  const spentMs = countProcessorMs();
  act(text);
  return Math.max(0, spentMs() - limitMs);
}
