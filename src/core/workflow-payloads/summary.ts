/**
 * How Temporal's Web UI names what a run does: one line beside an event of its history. A summary is no part of what a
 * replay compares. Temporal refuses the start of a workflow whose summary has more than 400 bytes as JSON, and a line of
 * the Web UI is short: each is cut.
 */
import type { Unit } from '../run/drive.ts';

const maxBytes = 200;

/** How long a character is in a JSON text of UTF-8, without `Buffer`: the sandbox of workflows has none. */
function jsonBytesOf(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20 || (code >= 0xd800 && code <= 0xdfff)) return 6;
  if (character === '"' || character === '\\') return 2;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}

/** As many whole characters as fit. */
export function toSummary(text: string): string {
  let bytes = 0;
  let kept = '';
  let cut = '';
  for (const character of text) {
    bytes += jsonBytesOf(character);
    if (bytes > maxBytes) return `${cut}…`;
    kept += character;
    if (bytes <= maxBytes - 3) cut = kept;
  }
  return text;
}

/** `cut`, or `cut [3]` for its third item. */
export function nameUnit(stepId: string, item = 0): string {
  return item === 0 ? stepId : `${stepId} [${item}]`;
}

/** `cut → video.cut`: the unit, and what it calls or is. */
export function summarizeUnit({ step, item }: Unit): string {
  return toSummary(`${nameUnit(step.id, item)} → ${step.capability}`);
}

/** `3 short steps: a, b, then c`: the units that begin at once, then those that follow them in the same batch. */
export function summarizeBatch(first: readonly Unit[], followers: readonly Unit[]): string {
  const [only] = first;
  const count = first.length + followers.length;
  if (count === 1 && only !== undefined) return summarizeUnit(only);
  const named = [first, followers].flatMap((units) =>
    units.length === 0 ? [] : [units.map(({ step, item }) => nameUnit(step.id, item)).join(', ')],
  );
  return toSummary(`${count} short steps: ${named.join(', then ')}`);
}
