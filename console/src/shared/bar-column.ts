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
