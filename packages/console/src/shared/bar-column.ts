export interface BarPart {
  readonly name: string;
  readonly value: number;
  readonly fill: string;
}

export interface BarColumn {
  readonly key: string;
  /** The tooltip of the column. */
  readonly title: string;
  readonly parts: readonly BarPart[];
}

/** Keeps a few columns from becoming very wide. */
const fewestPlaces = 14;

/** How many columns have room. */
export function placesOf(columns: number): number {
  return Math.max(fewestPlaces, columns);
}

/** The next round number above the highest column: 1, 2 or 5 times a power of ten. */
export function roundTop(greatest: number): number {
  if (greatest <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(greatest));
  const factor = [1, 2, 5].find((one) => one * power >= greatest) ?? 10;
  return Number((factor * power).toPrecision(1));
}

export interface AxisLabel {
  readonly text: string;
  /** The middle of its column, as a share of the width, 0 to 1. */
  readonly at: number;
}

/** At most this many labels below the columns, evenly spaced. @param name of a column by its key */
export function labelColumns(
  keys: readonly string[],
  name: (key: string) => string,
  most = 7,
): readonly AxisLabel[] {
  const places = placesOf(keys.length);
  const step = Math.ceil(keys.length / most);
  return keys.flatMap((key, index) =>
    index % step === 0 ? [{ text: name(key), at: (index + 0.5) / places }] : [],
  );
}
