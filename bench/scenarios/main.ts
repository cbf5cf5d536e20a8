/**
 * Plays the scenarios of test/scenarios in their long form, four routers on one durable Postgres:
 * `npm run scenarios [-- --minutes 3]`. Exit code 1 when an invariant is broken or a call ended as it must not.
 */
import { homedir } from 'node:os';
import { parseArgs } from 'node:util';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { choosePort } from '../../src/dev/ports.ts';
import { ensureDatabase, startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport, type Report } from '../../src/dev/progress.ts';
import { createSupervisor } from '../../src/dev/supervisor/supervisor.ts';
import { findCacheDir } from '../../src/dev/temporal/source.ts';
import { openStage } from '../../test/scenarios/stage.ts';
import { createActs } from './acts.ts';
import { heading, type Result, toRow } from './table.ts';

const say = (text: string): void => void process.stderr.write(`${text}\n`);

const { values: options } = parseArgs({ options: { minutes: { type: 'string', default: '3' } } });

const report: Report = ({ part, status, detail }) => {
  if (status !== 'working' && status !== 'ready') say(`${part}: ${detail}`);
};

const dataDir = createTemporaryFolder('capstan-scenarios-');
const supervisor = createSupervisor({ report, temporaryFolder: dataDir });
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void supervisor.stop().finally(() => process.exit(1)));
}

const play = async (databaseUrl: string): Promise<boolean> => {
  const stage = await openStage({ databaseUrl, routers: 4, leaseMs: 3_000 });
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
};

try {
  const cacheDir = findCacheDir(process.env, homedir());
  const place = { dataDir, port: await choosePort([]), ephemeral: false, cacheDir };
  const server = await startPostgres(supervisor, place, createPartReport(report, 'Postgres'));
  console.log(heading);
  process.exitCode = (await play(await ensureDatabase(server, 'capstan'))) ? 0 : 1;
} catch (error) {
  say(error instanceof Error ? (error.stack ?? error.message) : String(error));
  process.exitCode = 1;
} finally {
  await supervisor.stop();
}
process.exit();
