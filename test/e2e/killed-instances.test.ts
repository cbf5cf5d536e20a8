/**
 * Two instances, of which the preferred one is killed in mid-call, hangs, or is ten times slower than known: every run
 * succeeds, and no attempt goes twice to one instance. `npm run faults -- failover` makes 20 runs of each (FAULT_RUNS), prints how soon
 * the other one begins, and holds that against a bar of one second.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { expect, test } from 'vitest';
import { echo, type Handler, type Instance, startInstance } from '../support/fleet.ts';
import { useMortalCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

const isMeasured = process.env.FAULT_RUNS !== undefined;
const runs = Number(process.env.FAULT_RUNS ?? 3);
const usualMs = 100;
const paid = { cost_model: { type: 'per_call', rate_usd: 0.02 }, tags: ['hosted'] };
const step = { id: 'a', input: {}, timeout: '500ms', retry: { max: 3 } };

const capstan = useMortalCapstan();

interface Pair {
  readonly first: Instance;
  readonly other: Instance;
}

async function startPair(name: string): Promise<Pair> {
  const first = await startInstance(capstan, { name });
  const other = await startInstance(capstan, { name, ...paid });
  return { first, other };
}

function answerAfter(ms: number): Handler {
  return async (exec, response) => {
    await sleep(ms);
    return echo(exec, response);
  };
}

interface Attempted {
  readonly endpoint: string;
  readonly state: string;
  readonly started_at: string;
  readonly duration_ms: number;
}

/** How long after the end of each attempt the next one began. */
function pausesOf(attempts: readonly Attempted[]): number[] {
  return attempts.slice(1).map(({ started_at }, at) => {
    const { started_at: before, duration_ms } = attempts[at] as Attempted;
    return Date.parse(started_at) - Date.parse(before) - duration_ms;
  });
}

async function attemptsOf(runId: string): Promise<readonly Attempted[]> {
  const { body } = await capstan.request<StepDetail>('GET', `/v1/runs/${runId}/steps/a`);
  return body.attempts as unknown as readonly Attempted[];
}

/** @param during what happens meanwhile */
async function runOnce(capability: string, during: () => Promise<void>): Promise<readonly Attempted[]> {
  const { run_id } = await capstan.submit([{ ...step, capability }]);
  await during();
  expect(await capstan.ended(run_id)).toMatchObject({ state: 'succeeded' });
  return attemptsOf(run_id);
}

/** Until the worker knows it, which is preferred. */
async function warmUp({ execs }: Instance, capability: string): Promise<void> {
  while (execs.length === 0) await runOnce(capability, async () => undefined);
}

/** All runs succeed; no attempt goes twice to one instance. Measured, none begins a second after the one before. */
function judge(what: string, made: readonly (readonly Attempted[])[]): void {
  const pauses = made.flatMap(pausesOf).sort((a, b) => a - b);
  const median = pauses[Math.floor(pauses.length / 2)] ?? 0;
  const figures = `median ${median.toFixed(0)} ms, longest ${(pauses.at(-1) ?? 0).toFixed(0)} ms`;
  console.log(`${what}: ${made.length} runs succeeded, ${pauses.length} met the fault; then ${figures}`);
  expect(made).toHaveLength(runs);
  expect(pauses.length).toBeGreaterThan(0);
  for (const attempts of made) {
    expect(new Set(attempts.map(({ endpoint }) => endpoint)).size).toBe(attempts.length);
  }
  if (isMeasured) expect(pauses.at(-1)).toBeLessThan(1_000);
}

const limitMs = 180_000 + runs * 5_000;

test('killed in mid-call', { timeout: limitMs }, async () => {
  const made: (readonly Attempted[])[] = [];
  const other = await startInstance(capstan, { name: 'killed', ...paid });
  for (let n = 0; n < runs; n++) {
    const first = await startInstance(capstan, { name: 'killed' });
    await warmUp(first, 'killed');
    first.handle = () => undefined;
    const before = first.execs.length;
    const kill = async (): Promise<void> => {
      await waitFor('the call to arrive', () => first.execs.length > before);
      await first.stop();
    };
    made.push(await runOnce('killed', kill));
  }
  judge('killed in mid-call', made);
  await other.stop();
});

test('hung', { timeout: limitMs }, async () => {
  const { first, other } = await startPair('hung');
  await warmUp(first, 'hung');
  first.handle = () => undefined;
  const made: (readonly Attempted[])[] = [];
  for (let n = 0; n < runs; n++) made.push(await runOnce('hung', async () => undefined));
  judge('hung', made);
  await Promise.all([first.stop(), other.stop()]);
});

test('ten times slower than known', { timeout: limitMs }, async () => {
  const { first, other } = await startPair('slow');
  first.handle = answerAfter(usualMs);
  for (let n = 0; n < 5; n++) await runOnce('slow', async () => undefined);
  first.handle = answerAfter(10 * usualMs);
  const made: (readonly Attempted[])[] = [];
  for (let n = 0; n < runs; n++) made.push(await runOnce('slow', async () => undefined));
  judge('ten times slower than known', made);
  await Promise.all([first.stop(), other.stop()]);
});
