/** Durations as authors write them: a number and a unit. The contracts define the grammar as `Duration`. */
const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

const pattern = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** `1.5s` → 1500. Rounds to whole milliseconds. @throws RangeError when the text is not a duration */
export function parseDuration(text: string): number {
  const [, amount, unit] = pattern.exec(text) ?? [];
  if (amount === undefined || unit === undefined) {
    throw new RangeError(
      `"${text.slice(0, 40)}" is no duration; write a number and a unit: 500ms, 30s, 5m, 2h, 1d`,
    );
  }
  return Math.round(Number(amount) * unitMs[unit as keyof typeof unitMs]);
}
