/** The template of a correction: the most general one that passes the gate. */
import type { Json } from '../../contracts/primitives.ts';
import type { ErrorGroups } from '../../core/skills/pattern.ts';
import { deriveTemplate } from '../../core/skills/template/derive-template.ts';
import { passGate } from '../../core/skills/template/gate.ts';
import { writeTemplate } from '../../core/skills/template/write-template.ts';

export interface WorkedCorrection {
  /** The input that failed with the error. */
  readonly original: Json;
  /** The input that worked. */
  readonly corrected: Json;
  /** Whether the capability's schema takes an input. */
  readonly isValid: (input: Json) => boolean;
  /** JSON Pointers of values that are a bound of the schema. */
  readonly bounds?: readonly string[] | undefined;
}

export interface Cause {
  readonly error: string;
  /** Named groups of the skill's pattern in it. */
  readonly match: ErrorGroups;
}

/** @returns null when none passes */
export function chooseTemplate(
  { original, corrected, isValid, bounds = [] }: WorkedCorrection,
  { error, match }: Cause,
): string | null {
  const written = [
    () => deriveTemplate({ input: original, match }, corrected, { bounds, error }),
    () => writeTemplate(original, corrected, { bounds }),
  ];
  for (const write of written) {
    const text = write();
    if (text === null) continue;
    if (passGate({ template: text, original, corrected, match, isValid, bounds }).ok) return text;
  }
  return null;
}
