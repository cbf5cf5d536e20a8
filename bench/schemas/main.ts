/**
 * `npm run bench -- schemas`: the real schemas of the bench `repair`, as the registry reads them: which it refuses
 * and why, what of the others it does not enforce, and how long it takes to compile each and to check valid inputs against it.
 */
import { performance } from 'node:perf_hooks';
import { listNotEnforced } from '@capstan/core/schema-types/not-enforced';
import { createSchemaCompiler } from '@capstan/core/schemas/schema-compiler';
import { makeInputs } from '../repair/inputs.ts';
import { hash, type RealSchema, readSchemas } from '../repair/schemas.ts';
import { createRandom } from '../shared/random.ts';

interface Timed {
  readonly name: string;
  readonly ms: number;
}

const repeats = 20;

function timeOf(work: () => unknown): number {
  const from = performance.now();
  work();
  return performance.now() - from;
}

/** From the text of the schema to its check. */
function timeCompile({ name, schema }: RealSchema): Timed {
  const fresh = structuredClone(schema);
  return { name, ms: timeOf(() => createSchemaCompiler().compile(fresh)) };
}

/** Of one input, by the mean of many checks; none when no valid input could be made. */
function timeCheck(real: RealSchema): readonly Timed[] {
  const inputs = makeInputs(real, createRandom(hash(real.name)));
  if (inputs.length === 0) return [];
  const all = (): void => {
    for (const input of inputs) real.check(input);
  };
  all();
  const ms = timeOf(() => {
    for (let round = 0; round < repeats; round++) all();
  });
  return [{ name: real.name, ms: ms / repeats / inputs.length }];
}

function describe(what: string, times: readonly Timed[]): string {
  const sorted = times.toSorted((one, other) => one.ms - other.ms);
  const [middle, worst] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  return `${what}: median ${middle?.ms.toFixed(3)} ms, worst ${worst?.ms.toFixed(3)} ms (${worst?.name}), of ${times.length}`;
}

const { schemas, refused } = readSchemas();
const gaps = schemas.map(({ name, schema }) => ({ name, gaps: listNotEnforced(schema) }));
const withGaps = gaps.filter((one) => one.gaps.length > 0);
console.log(
  `${schemas.length + refused.length} schemas, ${schemas.length} accepted, ${refused.length} refused\n`,
);
console.log(`refused\n${refused.join('\n')}\n`);
console.log(`not enforced, in ${withGaps.length} schemas`);
for (const one of withGaps) {
  for (const { pointer, keyword, reason } of one.gaps)
    console.log(`${one.name} ${pointer} ${keyword}: ${reason}`);
}
console.log(`\n${describe('compile', schemas.map(timeCompile))}`);
console.log(describe('check of one input', schemas.flatMap(timeCheck)));
