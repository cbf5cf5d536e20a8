/** What Capstan promises, by bare Temporal. Rivals and other checkouts have no bars. */
import type { Shape } from './shapes.ts';
import type { BySide, SideName } from './side.ts';

export interface Bar {
  readonly limit: number;
  /** Whether the ratio may be at most, or must be at least, the limit. */
  readonly kind: '<=' | '>=';
}

const parallelSteps: Readonly<Record<number, number>> = { 20: 1.8, 100: 1.7 };

export function findStepBar(side: SideName, { kind, steps }: Shape): Bar | null {
  const limits: BySide<number | undefined> = {
    capstan: kind === 'sequential' ? 1.4 : parallelSteps[steps],
    inline: kind === 'sequential' ? 0.7 : undefined,
  };
  const limit = limits[side];
  return limit === undefined ? null : { limit, kind: '<=' };
}

export function findLoadBar(side: SideName): Bar | null {
  if (side === 'capstan') return { limit: 0.65, kind: '>=' };
  return side === 'inline' ? { limit: 0.9, kind: '>=' } : null;
}

export function isMet({ limit, kind }: Bar, ratio: number): boolean {
  return kind === '<=' ? ratio <= limit : ratio >= limit;
}
