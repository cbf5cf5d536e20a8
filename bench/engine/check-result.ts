import { isDeepStrictEqual } from 'node:util';
import type { Shape } from './shapes.ts';

/** @param result what the last step answered, or all in parallel, in order @throws Error unless it is right */
export function checkResult({ name, kind, steps }: Shape, text: string, result: unknown): void {
  const expected =
    kind === 'parallel' ? Array.from({ length: steps }, (_, n) => ({ n, text })) : { n: 0, text };
  if (isDeepStrictEqual(result, expected)) return;
  throw new Error(`${name} gave ${JSON.stringify(result)?.slice(0, 500)}`);
}
