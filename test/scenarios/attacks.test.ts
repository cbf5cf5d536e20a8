/** The short form of `npm run bench -- attacks`: one round, on a server of its own. */
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { freezingAttacks, freezingLivezMs } from './attacks/freezing.ts';
import { collectorEnvironment } from './attacks/process-size.ts';
import { isAsLarge, livezMs, playRounds } from './attacks/rounds.ts';
import { watchLivez } from './attacks/watch-livez.ts';

let capstan: Capstan;
let database: TcpProxy;
beforeAll(async () => {
  database = await startTcpProxy(new URL(inject('databaseUrl')).host);
  capstan = await startCapstan({ RATE_LIMITS: 'on', LOG_LEVEL: 'info' });
  await capstan.killWorker('SIGKILL');
  await capstan.killServer('SIGKILL');
  const url = new URL(capstan.databaseUrl);
  url.host = database.address;
  await capstan.startServer({ DATABASE_URL: url.href, ...collectorEnvironment });
});
afterAll(async () => {
  await capstan?.stop();
  await database?.cut();
});

test.runIf(process.platform === 'linux')(
  'nothing that one key sends keeps /livez waiting or makes the process larger',
  async () => {
    const { run_id: runId } = await capstan.submit([{ id: 'a', wait: '1d' }]);
    const target = { url: capstan.url, key: capstan.key, runId, database };
    const { figures, before, after } = await playRounds(target, capstan.serverPid(), { rounds: 1 });
    const shown = JSON.stringify({
      before,
      after,
      figures: figures.map((one) => ({ ...one, answers: [...one.answers] })),
    });
    expect(
      Object.fromEntries(figures.map(({ name, answers }) => [name, [...answers.keys()].sort()])),
    ).toEqual({
      // What is over the key's share of memory for bodies is refused unread.
      '12 times 8 MiB of empty lists': expect.arrayContaining(['400']),
      '12 times 8 MiB of allowed values': expect.arrayContaining(['422']),
      'long strings against every format': ['200', '400', '422'],
      '200 HEADs on a stream of events': ['200'],
      // A slow machine takes them no faster than they are allowed, and refuses those that no connection is left for.
      '1,000 requests at once': expect.toSatisfy((answers) => /^200( 429)?( 503)?$/.test(answers.join(' '))),
      'a stopped Postgres': expect.arrayContaining(['503']),
    });
    // However long the machine lets it wait: `npm run bench -- attacks` measures that, against a bar of 300 ms.
    for (const { longestBusyMs } of figures) expect(longestBusyMs, shown).toBeLessThan(6 * livezMs);
    expect(isAsLarge(before, after), shown).toBe(true);
  },
  300_000,
);

const refused = ['422'];

test.runIf(process.platform === 'linux').each(freezingAttacks)(
  '$name do not hold the server',
  async ({ name, play }) => {
    const target = { url: capstan.url, key: capstan.key, runId: '', database };
    const livez = watchLivez(target.url, capstan.serverPid());
    try {
      await livez.read();
      const answers = [...(await play(target)).keys()].sort();
      const { longestBusyMs } = await livez.read();
      expect(answers).toEqual(name.includes('plans') ? refused : expect.arrayContaining(['200']));
      expect(longestBusyMs).toBeLessThan(4 * freezingLivezMs); // `npm run bench -- attacks` has the bar
    } finally {
      await livez.stop();
    }
  },
  120_000,
);
