/** Instances that fail in the middle of a call, or all at once. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type NetworkNamespace, openNamespace } from '../../../test/support/network-namespace.ts';
import { waitFor } from '../../../test/support/wait.ts';
import type { Deed } from '../fleet.ts';
import type { Member, OpenCall } from '../member.ts';
import { playUnderLoad, type Round, type Stage } from '../play.ts';
import { atMost, joinVerdicts, type Verdict } from '../verdict.ts';

interface Loss {
  /** Makes the instance fail that works on this call. */
  readonly fail: (member: Member) => void | Promise<void>;
  readonly afterwards?: (member: Member, call: OpenCall) => void;
}

/** Submits one run and waits until its second step is at an instance, which does the given deed with it. */
async function callOne(
  { fleet, client }: Round,
  deed: () => Deed | Promise<Deed>,
): Promise<{ readonly call: OpenCall; readonly member: Member }> {
  let found: OpenCall | undefined;
  fleet.decide((call) => {
    if (found !== undefined || call.input.id !== 'b') return 'answer';
    found = call;
    return deed();
  });
  await client.submit(1, 1);
  const call = await waitFor('the second step to be called', () => found, 60_000);
  const member = fleet.members.find(({ port }) => port === call.port);
  if (member === undefined) throw new Error(`no instance has port ${call.port}`);
  return { call, member };
}

/** Lets the instance fail that a second step is at, and waits for another one to be called. */
async function loseOne(round: Round, { fail, afterwards }: Loss): Promise<number> {
  const { call, member } = await callOne(round, () => 'hold');
  const { fleet } = round;
  const from = Date.now();
  await fail(member);
  const next = await waitFor(
    'the next attempt',
    () => fleet.lines.find(({ kind, key, number }) => kind === 'begin' && key === call.key && number > 1),
    120_000,
  );
  afterwards?.(member, call);
  return (next.at - from) / 1_000;
}

function loseInstances(
  stage: Stage,
  name: string,
  {
    loss,
    rounds,
    mostS,
    namespaces = [],
  }: {
    readonly loss: Loss;
    readonly rounds: number;
    readonly mostS: number;
    readonly namespaces?: readonly NetworkNamespace[];
  },
): Promise<Verdict> {
  return playUnderLoad(
    stage,
    { name, count: 0, pace: 1, fleet: { count: rounds + 1, namespaces } },
    {
      disturb: async (round) => {
        const waits: number[] = [];
        for (let at = 0; at < rounds; at += 1) waits.push(await loseOne(round, loss));
        const lost = { figures: { 'instances lost in a call': rounds }, breaches: [] };
        return joinVerdicts([lost, atMost('longest wait for the next attempt s', Math.max(...waits), mostS)]);
      },
    },
  );
}

export function killInstances(stage: Stage): Promise<Verdict> {
  const loss: Loss = { fail: (member) => member.crash() };
  return loseInstances(stage, 'instance-killed', { loss, rounds: stage.isLong ? 20 : 3, mostS: 5 });
}

/** Its answer in the end is wrong, so that a user of it would be seen. */
export async function blackholeInstances(stage: Stage): Promise<Verdict> {
  const loss: Loss = {
    fail: ({ namespace }) => namespace?.cutLink(),
    afterwards: ({ namespace }, call) => {
      namespace?.mendLink();
      call.answer(200, { ok: true, output: { h: 'too late' } });
    },
  };
  const rounds = stage.isLong ? 5 : 1;
  const namespaces: NetworkNamespace[] = [];
  try {
    for (let at = 0; at <= rounds; at += 1) namespaces.push(openNamespace());
    return await loseInstances(stage, 'instance-blackholed', { loss, rounds, mostS: 20, namespaces });
  } finally {
    for (const namespace of namespaces) namespace.close();
  }
}

/** As an instance that is shutting down: a connect is refused long before the call is answered. */
export function closePorts(stage: Stage): Promise<Verdict> {
  const workS = stage.isLong ? 120 : 20;
  return playUnderLoad(
    stage,
    { name: 'instance-closing', count: 0, pace: 1, fleet: { count: 2 } },
    {
      disturb: async (round) => {
        const { call, member } = await callOne(round, () => sleep(workS * 1_000, 'answer'));
        member.closePort();
        const lines = () => round.fleet.lines.filter(({ key }) => key === call.key);
        await waitFor('its end', () => lines().some(({ kind }) => kind === 'end'), workS * 1_000 + 60_000);
        const worked = { figures: { 'seconds of the call': workS }, breaches: [] };
        const calls = lines().filter(({ kind }) => kind === 'begin').length;
        return joinVerdicts([worked, atMost('calls of its step', calls, 1)]);
      },
    },
  );
}

const firstWindowMs = 5_000;
const count = 3;

/** Breakers open for 5 s, then twice as long each time: so many trials fit, and one for where it began. */
function mostTrials(refusingMs: number): number {
  return Math.ceil(Math.log2(refusingMs / firstWindowMs + 1)) + 1;
}

export function refuseEverything(stage: Stage): Promise<Verdict> {
  const refusingMs = stage.isLong ? 300_000 : 20_000;
  let began = 0;
  let back = 0;
  return playUnderLoad(
    stage,
    { name: 'everyone-503', count: stage.isLong ? 200 : 30, pace: 10, fleet: { count } },
    {
      disturb: async ({ fleet }) => {
        fleet.decide(() => 'refuse');
        await waitFor('the first to be refused', () => fleet.lines.length > 0, 60_000);
        began = Date.now();
        await sleep(refusingMs);
        fleet.decide(() => 'answer');
        back = Date.now();
        return { figures: { 'seconds refused': refusingMs / 1_000 }, breaches: [] };
      },
      audit: async ({ fleet, pipeline }, db) => {
        const trials = fleet.lines.filter(
          ({ at, kind, status }) => kind === 'end' && status === 503 && at > began + firstWindowMs,
        );
        const mostOfOne = Math.max(
          ...fleet.members.map(({ port }) => trials.filter((line) => line.port === port).length),
        );
        const [row] = await db('run').where({ pipeline }).max({ at: 'finished_at' });
        const took = (new Date(row?.at).getTime() - back) / 1_000;
        return joinVerdicts([
          atMost('trials of one instance after the first 5 s', mostOfOne, mostTrials(refusingMs)),
          atMost('all complete after s', took, 60),
        ]);
      },
    },
  );
}
