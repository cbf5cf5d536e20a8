/**
 * Plays the scenarios of test/scenarios in their long form, four routers on one durable Postgres:
 * `npm run scenarios [-- --minutes 3]`. Exit code 1 when an invariant is broken or a call ended as it must not.
 */
import { parseArgs } from 'node:util';
import { openStage } from '../../test/scenarios/stage.ts';
import { runBench } from '../shared/run-bench.ts';
import { startDatabase } from '../shared/start-database.ts';
import { createActs } from './acts.ts';
import { heading, type Result, toRow } from './table.ts';

const { values: options } = parseArgs({ options: { minutes: { type: 'string', default: '3' } } });

async function play(databaseUrl: string, folder: string): Promise<boolean> {
  const stage = await openStage({ databaseUrl, folder, routers: 4, leaseMs: 3_000 });
  let isGood = true;
  try {
    for (const [name, act] of createActs(Number(options.minutes) * 60_000)) {
      const startedAt = performance.now();
      const { outcome, faults } = await act(stage);
      const violations = [...faults, ...(await stage.findViolations())];
      const result: Result = { name, outcome, violations, durationMs: performance.now() - startedAt };
      console.log(toRow(result));
      for (const violation of violations) console.log(`    ${violation}`);
      isGood &&= violations.length === 0;
    }
  } finally {
    await stage.close();
  }
  return isGood;
}

await runBench(async (place) => {
  const { databaseUrl } = await startDatabase(place);
  console.log(heading);
  return play(databaseUrl, place.dataDir);
});
