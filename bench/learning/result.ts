/** The results of the two sides, by tenth of the replay and as a whole, and the bars. */
import type { Played, SideResult } from './side.ts';

export const bars = { withoutModel: 0.7, saved: 0.55, wrong: 0 } as const;

export interface Part {
  readonly failures: number;
  readonly solved: number;
  /** Share that was solved without a model. */
  readonly withoutModel: number;
  readonly usdPerFailure: number;
  readonly wrong: number;
}

export interface Tenth {
  readonly learning: Part;
  readonly plain: Part;
}

export interface Result {
  readonly at: string;
  readonly seed: number;
  readonly tenths: readonly Tenth[];
  readonly whole: Tenth;
  /** The last quarter, by what can be learnt of a kind. */
  readonly bySort: Readonly<Record<string, Part>>;
  readonly lastQuarter: Part;
  readonly saved: number;
  readonly skills: number;
  readonly flagged: number;
  readonly seconds: number;
  readonly wrong: readonly { readonly kind: string; readonly at: number }[];
  readonly passed: boolean;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

function partOf(played: readonly Played[]): Part {
  const free = played.filter(({ solved, modelCalls }) => solved && modelCalls === 0).length;
  return {
    failures: played.length,
    solved: played.filter(({ solved }) => solved).length,
    withoutModel: free / played.length,
    usdPerFailure: sum(played.map(({ usd }) => usd)) / played.length,
    wrong: played.filter(({ isWrong }) => isWrong).length,
  };
}

function tenthOf(played: readonly Played[], index: number): readonly Played[] {
  return played.slice(
    Math.floor((played.length * index) / 10),
    Math.floor((played.length * (index + 1)) / 10),
  );
}

export function compare(seed: number, learning: SideResult, plain: SideResult): Result {
  const last = learning.played.slice(Math.floor(learning.played.length * 0.75));
  const whole = { learning: partOf(learning.played), plain: partOf(plain.played) };
  const saved = 1 - whole.learning.usdPerFailure / whole.plain.usdPerFailure;
  const lastQuarter = partOf(last);
  return {
    at: new Date().toISOString(),
    seed,
    whole,
    lastQuarter,
    saved,
    tenths: Array.from({ length: 10 }, (_, index) => ({
      learning: partOf(tenthOf(learning.played, index)),
      plain: partOf(tenthOf(plain.played, index)),
    })),
    bySort: Object.fromEntries(
      ['rule', 'value', 'advice'].map((sort) => [
        sort,
        partOf(last.filter(({ failure }) => failure.kind.sort === sort)),
      ]),
    ),
    skills: learning.skills,
    flagged: learning.flagged,
    seconds: learning.seconds + plain.seconds,
    wrong: learning.played.flatMap(({ failure, isWrong }, at) =>
      isWrong ? [{ kind: failure.kind.name, at }] : [],
    ),
    passed:
      lastQuarter.withoutModel > bars.withoutModel &&
      saved >= bars.saved &&
      whole.learning.wrong <= bars.wrong,
  };
}
