/** Parts that are silent for a while: frozen, since what has ended would be started again at once. */
import { setTimeout as sleep } from 'node:timers/promises';
import { waitFor } from '../../../test/support/wait.ts';
import { chainOf } from '../dag.ts';
import { playUnderLoad, type Round, type Stage } from '../play.ts';
import { atLeast, atMost, joinVerdicts, type Verdict } from '../verdict.ts';
import { startHeartbeats } from './heartbeats.ts';

const temporalNodes = ['temporal-1', 'temporal-2'];
const servers = ['server-1', 'server-2'];

/** Stops them, and continues them whatever happens meanwhile. */
async function whileFrozen<Value>(
  { cluster }: Stage,
  parts: readonly string[],
  act: () => Promise<Value>,
): Promise<Value> {
  for (const part of parts) cluster.send(part, 'SIGSTOP');
  return act().finally(() => {
    for (const part of parts) cluster.send(part, 'SIGCONT');
  });
}

export function sendTemporalAway(stage: Stage): Promise<Verdict> {
  const [count, seconds] = stage.isLong ? [1_000, 600] : [100, 20];
  return playUnderLoad(
    stage,
    { name: 'temporal-away', count, pace: count / seconds, tries: 1 },
    {
      disturb: ({ fleet, isOver, client }) =>
        whileFrozen(stage, temporalNodes, async () => {
          await waitFor('all to be submitted', isOver, seconds * 2_000);
          const taken = atLeast('accepted meanwhile', client.submissions.runs.size, count);
          return joinVerdicts([
            { figures: { 'outage s': seconds }, breaches: [] },
            taken,
            atMost('calls meanwhile', fleet.lines.length, 0),
          ]);
        }),
    },
  );
}

/** Temporal gives every step out once more, and the worker that gets one finds that its call continues. */
export function outlastHeartbeats(stage: Stage): Promise<Verdict> {
  const { heartbeatTimeoutMs, isLong } = stage;
  const count = isLong ? 200 : 20;
  const awayMs = heartbeatTimeoutMs + (isLong ? 60_000 : 5_000);
  const callMs = awayMs + 10_000;
  const begun = ({ fleet }: Round) => fleet.lines.filter(({ kind }) => kind === 'begin');
  return playUnderLoad(
    stage,
    {
      name: 'temporal-silent',
      count,
      pace: 20,
      dag: chainOf(1),
      fleet: { minMs: callMs, maxMs: callMs + 2_000 },
    },
    {
      disturb: async (round) => {
        await waitFor('all calls to be under way', () => begun(round).length >= count, 60_000);
        await whileFrozen(stage, temporalNodes, () => sleep(awayMs));
        return { figures: { 'outage s': awayMs / 1_000 }, breaches: [] };
      },
      audit: async (round) => {
        const again = begun(round).filter(({ number }) => number > 1);
        return atMost('calls repeated', again.length, 0);
      },
    },
  );
}

/** All heartbeats that come while the server is down are lost; what counts is how soon all are known again. */
export function sendServersAway(stage: Stage): Promise<Verdict> {
  const [count, seconds] = stage.isLong ? [1_000, 600] : [100, 20];
  return playUnderLoad(
    stage,
    { name: 'api-away', count: 0, pace: 1, fleet: { count } },
    {
      disturb: async ({ fleet }) => {
        const beats = startHeartbeats(stage.api, fleet, stage.isLong ? 60_000 : 5_000);
        await waitFor('all to be heard', () => beats.heardSince(0) === count, 120_000);
        await whileFrozen(stage, servers, () => sleep(seconds * 1_000));
        const back = Date.now();
        await waitFor('all to be heard again', () => beats.heardSince(back) === count, 120_000);
        const took = (Date.now() - back) / 1_000;
        const states = await beats.stop();
        const others = [...states].filter((state) => state !== 'up');
        return joinVerdicts([
          { figures: { instances: count, 'outage s': seconds }, breaches: [] },
          atMost('all up after s', took, 10),
          { figures: {}, breaches: others.map((state) => `an instance was told that it is ${state}`) },
        ]);
      },
    },
  );
}

/** Its calls are made again by the other worker while it is stopped, and its later reports are refused. */
export function pauseWorker(stage: Stage): Promise<Verdict> {
  const { heartbeatTimeoutMs, leaseMs, isLong } = stage;
  const beyondMs = isLong ? 120_000 : 5_000;
  const pauseMs = Math.max(heartbeatTimeoutMs, leaseMs) + 5_000 + beyondMs;
  return playUnderLoad(
    stage,
    { name: 'worker-paused', count: isLong ? 100 : 30, pace: 10, fleet: { minMs: 1_500, maxMs: 3_000 } },
    {
      disturb: async ({ fleet }) => {
        await waitFor('calls to be under way', () => fleet.lines.length > 20, 60_000);
        await whileFrozen(stage, ['worker-1'], () => sleep(pauseMs));
        return { figures: { 'seconds paused': pauseMs / 1_000 }, breaches: [] };
      },
      audit: async ({ pipeline }, db) => {
        const [row] = await db('attempt').where({ capability: pipeline, state: 'lost' }).count({ lost: '*' });
        return atLeast('calls lost to the other worker', Number(row?.lost), 1);
      },
    },
  );
}
