/** Processes of Capstan and of its surroundings, killed while runs are submitted and running. */
import { killInTurn } from '../kill-in-turn.ts';
import { playUnderLoad, type Stage } from '../play.ts';
import { joinVerdicts, type Verdict } from '../verdict.ts';

function describeKills(away: readonly number[]): Verdict {
  return {
    figures: { kills: away.length, 'longest outage s': Number(Math.max(0, ...away).toFixed(1)) },
    breaches: away.length === 0 ? ['nothing was killed'] : [],
  };
}

export function killWorkers(stage: Stage): Promise<Verdict> {
  const [count, pace, calmMs] = stage.isLong ? [500, 2, 10_000] : [60, 3, 5_000];
  const kills = { parts: ['worker-1', 'worker-2'], signal: 'SIGKILL', calmMs, atLeast: 2 } as const;
  return playUnderLoad(
    stage,
    { name: 'worker-killed', count, pace },
    {
      disturb: async ({ isOver }) => describeKills(await killInTurn(stage.cluster, { ...kills, isOver })),
    },
  );
}

export function killServers(stage: Stage): Promise<Verdict> {
  const [count, pace, calmMs] = stage.isLong ? [1_000, 10, 5_000] : [150, 8, 3_000];
  const kills = { parts: ['server-1', 'server-2'], signal: 'SIGKILL', calmMs, atLeast: 2 } as const;
  return playUnderLoad(
    stage,
    { name: 'server-killed', count, pace },
    {
      disturb: async ({ isOver }) => describeKills(await killInTurn(stage.cluster, { ...kills, isOver })),
    },
  );
}

/** Whether what is not Postgres is the same process as before. */
function findExits(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): string[] {
  const others = [...before].filter(([part]) => part !== 'postgres');
  return others.filter(([part, pid]) => after.get(part) !== pid).map(([part]) => `${part} has ended`);
}

export function restartPostgres(stage: Stage): Promise<Verdict> {
  const { cluster } = stage;
  const [count, pace, calmMs] = stage.isLong ? [5_000, 10, 31_000] : [100, 5, 5_000];
  const kills = { parts: ['postgres'], signal: 'SIGINT', calmMs } as const;
  return playUnderLoad(
    stage,
    { name: 'postgres-restarted', count, pace, tries: 3 },
    {
      disturb: async ({ isOver }) => {
        const before = cluster.pids();
        const away = await killInTurn(cluster, { ...kills, isOver });
        const exits = { figures: {}, breaches: findExits(before, cluster.pids()) };
        return joinVerdicts([describeKills(away), exits]);
      },
    },
  );
}

/** The last ones, which are running when Postgres goes. */
const burst = 50;
const parts = ['server-1', 'worker-1', 'temporal-1', 's3', 'server-2', 'worker-2', 'temporal-2'];

/** Each in turn, with files in S3, and at the end Postgres under the runs that are left. */
export function killEverythingInTurn(stage: Stage): Promise<Verdict> {
  const { cluster } = stage;
  const [count, pace] = stage.isLong ? [1_000, 8] : [200, 4];
  const kills = { parts, signal: 'SIGKILL', calmMs: 3_000, atLeast: 4 } as const;
  return playUnderLoad(
    stage,
    { name: 'parts-in-turn', count: count - burst, pace, withFiles: true },
    {
      disturb: async ({ isOver, client }) => {
        const killed = describeKills(await killInTurn(cluster, { ...kills, isOver }));
        await client.submit(burst, burst);
        await cluster.kill('postgres', 'SIGINT');
        return joinVerdicts([killed, { figures: { 'restarts of Postgres': 1 }, breaches: [] }]);
      },
    },
  );
}
