/** The failures that are replayed: kinds come by Zipf's law, values afresh each time, all from one seed. */
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { createRandom, type Random } from '../shared/random.ts';
import { soundInput } from './capabilities.ts';
import { type Fault, type Kind, put } from './kind.ts';
import { kinds } from './kinds.ts';

export interface Failure extends Fault {
  readonly kind: Kind;
  readonly original: JsonObject;
  /** The one right cure. */
  readonly cured: JsonObject;
}

/** The kind in place n comes 1/n as often as the first. */
function drawPlace(random: Random, sums: readonly number[]): number {
  const at = random.uniform() * (sums.at(-1) ?? 0);
  return sums.findIndex((sum) => at < sum);
}

function shuffle(random: Random): Kind[] {
  return kinds
    .map((kind) => ({ kind, at: random.uniform() }))
    .sort((a, b) => a.at - b.at)
    .map(({ kind }) => kind);
}

export function drawFailures(seed: number, count: number): readonly Failure[] {
  const random = createRandom(seed);
  const places = shuffle(random);
  let sum = 0;
  const sums = places.map((_, place) => {
    sum += 1 / (place + 1);
    return sum;
  });
  return Array.from({ length: count }, (_, index) => {
    const kind = places[drawPlace(random, sums)] as Kind;
    const input = soundInput(random, `f${index}`);
    const fault = kind.draw(random);
    return { ...fault, kind, original: put(input, fault.wrong), cured: put(input, fault.right) };
  });
}
