/**
 * Repairs that a schema implies, on real schemas of configuration formats:
 * `npm run bench -- repair [--seen] [--list KIND] [--json] [--seed 1]`. Everything is pure: no database, no model.
 * Exit code 1 when a bar is missed on the held-out half.
 */
import { parseArgs } from 'node:util';
import { type Played, playSchema } from './play.ts';
import { readSchemas } from './schemas.ts';
import { bars, describeSet, isPassed, sumUp, toTable } from './table.ts';

const { values } = parseArgs({
  options: {
    /** Only the half that may be looked at. */
    seen: { type: 'boolean', default: false },
    /** Prints the inputs of a kind of the seen half that are not repaired, or of all kinds: `wrong`. */
    list: { type: 'string' },
    json: { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
  },
});
const set = readSchemas();
function playHalf(isHeldOut: boolean): readonly Played[] {
  return set.schemas
    .filter((one) => one.isHeldOut === isHeldOut)
    .flatMap((one) => playSchema(one, Number(values.seed)));
}

const seen = playHalf(false);
const heldOut = values.seen ? [] : playHalf(true);

function listMissed(kind: string): string {
  const missed = seen.filter((one) =>
    kind === 'wrong'
      ? one.outcome === 'wrong'
      : kind === 'none'
        ? one.isImplied && one.outcome === 'none'
        : one.kind === kind && one.outcome !== 'applied',
  );
  return missed.map((one) => JSON.stringify(one)).join('\n');
}

if (values.list !== undefined) console.log(listMissed(values.list));
else if (values.json)
  console.log(JSON.stringify({ bars, seen: sumUp(seen), held_out: sumUp(heldOut) }, null, 2));
else {
  console.log(`${describeSet(set)}\n\n${toTable('half that was looked at', seen)}`);
  if (!values.seen) console.log(toTable('held out', heldOut));
}
process.exitCode = values.seen || isPassed(sumUp(heldOut)) ? 0 : 1;
