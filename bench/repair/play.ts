/** Makes the mistakes, proposes repairs, and compares them with what was meant. */
import type { Json } from '@capstan/core/contracts/primitives';
import { canonicalJson } from '@capstan/core/json/values';
import { applyRepair, proposeRepairs } from '@capstan/core/repair/propose-repairs';
import { createRandom } from '../shared/random.ts';
import { makeInputs } from './inputs.ts';
import { implied, open } from './mistakes.ts';
import { listPlaces, type ValidPlace } from './places.ts';
import { hash, type RealSchema } from './schemas.ts';

/**
 * `applied`: by itself, as it was meant. `shown`: among the first three. `none`: no proposal, or only others. `wrong`:
 * applied by itself, and otherwise than it was meant.
 */
export type Outcome = 'applied' | 'shown' | 'none' | 'wrong';

export interface Played {
  readonly schema: string;
  readonly kind: string;
  readonly isImplied: boolean;
  readonly outcome: Outcome;
  readonly input: Json;
  readonly answer: Json;
  readonly proposals: readonly string[];
}

/** Of one kind, for one schema. */
const mostOfKind = 2;

export function playSchema(real: RealSchema, seed: number): readonly Played[] {
  const random = createRandom(hash(real.name) + seed);
  const inputs = makeInputs(real, random);
  const places = inputs.flatMap((input) => listPlaces(real.schema, input, random));
  return [...implied, ...open].flatMap((mistake) => {
    const isImplied = implied.includes(mistake);
    const found: Played[] = [];
    for (const place of shuffle(places, random)) {
      if (found.length === mostOfKind) break;
      const input = mistake.make(place);
      if (input === undefined || real.check.find(input).length === 0) continue;
      if (!(mistake.refused?.(place) ?? []).every((one) => real.check.find(one).length > 0)) continue;
      const answer = mistake.answer?.(place) ?? place.input;
      if (real.check.find(answer).length > 0) continue;
      found.push({ kind: mistake.name, isImplied, ...play(real, input, answer) });
    }
    return found;
  });
}

function shuffle(places: readonly ValidPlace[], random: ValidPlace['random']): readonly ValidPlace[] {
  return places
    .map((place) => [random.uniform(), place] as const)
    .sort(([a], [b]) => a - b)
    .map(([, place]) => place);
}

function play(
  { name, schema, check }: RealSchema,
  input: Json,
  answer: Json,
): Omit<Played, 'kind' | 'isImplied'> {
  const { proposals, applicable } = proposeRepairs({ schema, input, errorsOf: check.find });
  const wanted = canonicalJson(answer);
  const isAnswer = ({ operations }: (typeof proposals)[number]): boolean =>
    canonicalJson(applyRepair(input, operations) ?? null) === wanted;
  const shown: Outcome = proposals.some(isAnswer) ? 'shown' : 'none';
  const outcome = applicable === null ? shown : isAnswer(applicable) ? 'applied' : 'wrong';
  return { schema: name, outcome, input, answer, proposals: proposals.map(({ description }) => description) };
}
