/** What the seeds say of every policy on one fleet under one load, and whether the bars are met. */
import { type Fleet, serviceTimeOf } from './fleets.ts';
import { type PolicyName, policies } from './policies.ts';
import { type Outcome, simulate } from './simulate.ts';

export interface Effort {
  readonly seeds: readonly number[];
  readonly calls: number;
}

/** Means over the seeds. */
export interface Figures {
  /** Mean service times. */
  readonly meanWait: number;
  readonly p99Wait: number;
  /** Per call. */
  readonly usd: number;
  readonly freeShare: number;
  /** False when calls pile up: then waiting depends on how long one watches. */
  readonly keepsUp: boolean;
}

export interface Check {
  readonly what: string;
  readonly value: number;
  /** Null where no bar is set: the figure is there to be read. */
  readonly bar: number | null;
}

export interface Summary {
  readonly fleet: Fleet;
  readonly load: number;
  readonly figures: ReadonlyMap<PolicyName, Figures>;
  readonly checks: readonly Check[];
}

/** The share of the calls that may be left waiting when the last one comes. */
const maxLeftShare = 0.05;

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function figuresOf(outcomes: readonly Outcome[], serviceMs: number, calls: number): Figures {
  const sorted = outcomes.map(({ waits }) => waits.toSorted((a, b) => a - b));
  return {
    meanWait: meanOf(outcomes.map(({ waits }) => meanOf(waits))) / serviceMs,
    p99Wait: meanOf(sorted.map((waits) => waits[Math.floor(waits.length * 0.99)] ?? 0)) / serviceMs,
    usd: meanOf(outcomes.map(({ usd, waits }) => usd / waits.length)),
    freeShare: meanOf(outcomes.map(({ free, waits }) => free / waits.length)),
    keepsUp: outcomes.every(({ left }) => left <= calls * maxLeftShare),
  };
}

const ours = ['batch', 'standard', 'interactive'] as const satisfies PolicyName[];
const thrifty = ['batch', 'standard'] as const satisfies PolicyName[];

type Table = ReadonlyMap<PolicyName, Figures>;

/**
 * On an even fleet nobody can wait less than in one line. The bar is set for calls of exponential length with a price
 * each; a few very long calls mislead about speed, and a price by the second is a guess as well.
 */
function checkWaiting({ isEven, isPricedBySecond = false, work }: Fleet, table: Table): Check[] {
  const ideal = table.get('idealFast');
  if (!isEven || ideal === undefined) return [];
  const bar = work === 'exponential' && !isPricedBySecond ? 1.25 : null;
  return ours.flatMap((name) => {
    const own = table.get(name);
    if (own === undefined) return [];
    return [{ what: `mean wait of ${name} by the ideal`, value: own.meanWait / ideal.meanWait, bar }];
  });
}

/** Against a rival that cannot keep up, and of a priority that waits for what is free, there is nothing to compare. */
function checkCost(table: Table, rival: 'lowestCost' | 'lowestCostWithRoom', name: PolicyName): Check[] {
  const [own, other] = [table.get(name), table.get(rival)];
  if (own === undefined || other === undefined || !own.keepsUp || !other.keepsUp) return [];
  const against = `of ${name} by ${policies[rival].name}`;
  return [
    { what: `cost ${against}`, value: own.usd / other.usd, bar: 1.1 },
    { what: `p99 wait ${against}`, value: own.p99Wait / other.p99Wait, bar: 0.5 },
  ];
}

export function isMet({ value, bar }: Check): boolean {
  return bar === null || value <= bar;
}

export function summarize(fleet: Fleet, load: number, { seeds, calls }: Effort): Summary {
  const names = Object.keys(policies) as PolicyName[];
  const figures = new Map(
    names.map((name) => {
      const outcomes = seeds.map((seed) => simulate({ fleet, load, seed, calls }, policies[name]));
      return [name, figuresOf(outcomes, serviceTimeOf(fleet), calls)];
    }),
  );
  const checks = [
    ...checkWaiting(fleet, figures),
    ...thrifty.flatMap((name) => checkCost(figures, 'lowestCostWithRoom', name)),
    ...checkCost(figures, 'lowestCost', 'batch'),
  ];
  return { fleet, load, figures, checks };
}
