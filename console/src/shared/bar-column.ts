export interface BarPart {
  readonly name: string;
  readonly value: number;
  readonly fill: string;
}

export interface BarColumn {
  readonly key: string;
  /** What the column says on hover. */
  readonly title: string;
  readonly parts: readonly BarPart[];
}

/** So that few columns are no walls. */
export const fewestPlaces = 14;

/** A round number that is at least the greatest column: 1, 2 or 5 times a power of ten. */
export function roundTop(greatest: number): number {
  if (greatest <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(greatest));
  const factor = [1, 2, 5].find((one) => one * power >= greatest) ?? 10;
  return Number((factor * power).toPrecision(1));
}

export interface AxisLabel {
  readonly text: string;
  /** Of the width, 0 to 1: the middle of its column. */
  readonly at: number;
}

/** At most so many labels below the columns, evenly apart. @param name of a column by its key */
export function labelColumns(
  keys: readonly string[],
  name: (key: string) => string,
  most = 7,
): readonly AxisLabel[] {
  const places = Math.max(fewestPlaces, keys.length);
  const step = Math.ceil(keys.length / most);
  return keys.flatMap((key, index) =>
    index % step === 0 ? [{ text: name(key), at: (index + 0.5) / places }] : [],
  );
}
