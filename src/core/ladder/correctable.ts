import type { ErrorCode } from '../../contracts/errors.ts';

const correctable: ReadonlySet<string> = new Set<ErrorCode>([
  'input_rejected',
  'input_invalid',
  'output_invalid',
]);

/** Whether the input is to blame for the failure, or the answer to this input: another input may cure it. */
export function isCorrectable(code: string): boolean {
  return correctable.has(code);
}
