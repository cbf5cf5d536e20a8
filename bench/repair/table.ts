import type { Outcome, Played } from './play.ts';
import type { SchemaSet } from './schemas.ts';

/** Of the held-out half. */
export const bars = { applied: 0.55, inThree: 0.85, wrong: 0 } as const;
const outcomes: readonly Outcome[] = ['applied', 'shown', 'none', 'wrong'];

export interface Totals {
  readonly count: number;
  readonly applied: number;
  readonly inThree: number;
  readonly wrong: number;
}

function countOf(played: readonly Played[], outcome: Outcome): number {
  return played.filter((one) => one.outcome === outcome).length;
}

/** Shares of the implied mistakes; wrong ones of all. */
export function sumUp(played: readonly Played[]): Totals {
  const implied = played.filter(({ isImplied }) => isImplied);
  const applied = countOf(implied, 'applied');
  return {
    count: implied.length,
    applied: applied / implied.length,
    inThree: (applied + countOf(implied, 'shown')) / implied.length,
    wrong: countOf(played, 'wrong'),
  };
}

export function isPassed({ applied, inThree, wrong }: Totals): boolean {
  return applied >= bars.applied && inThree >= bars.inThree && wrong <= bars.wrong;
}

function row(name: string, cells: readonly (string | number)[]): string {
  return `${name.padEnd(32)}${cells.map((cell) => String(cell).padStart(9)).join('')}`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function kindRows(played: readonly Played[], isImplied: boolean): readonly string[] {
  const kinds = new Set(played.filter((one) => one.isImplied === isImplied).map(({ kind }) => kind));
  return [...kinds].map((kind) => {
    const own = played.filter((one) => one.kind === kind);
    return row(kind, [own.length, ...outcomes.map((outcome) => countOf(own, outcome))]);
  });
}

export function toTable(title: string, played: readonly Played[]): string {
  const { count, applied, inThree, wrong } = sumUp(played);
  return [
    row(title, ['inputs', ...outcomes]),
    ...kindRows(played, true),
    'no repair is implied:',
    ...kindRows(played, false),
    `implied ${count}: applied ${percent(applied)}, in the first three ${percent(inThree)}; wrong of all ${played.length}: ${wrong}`,
    '',
  ].join('\n');
}

export function describeSet({ schemas, refused }: SchemaSet): string {
  const heldOut = schemas.filter(({ isHeldOut }) => isHeldOut).length;
  return `${schemas.length + refused.length} schemas, ${refused.length} of them refused; ${heldOut} of ${schemas.length} held out`;
}
