/** Processes that receive SIGTERM while they work. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Api } from '../../package/api.ts';
import { playUnderLoad, type Stage } from '../play.ts';
import { wordsOf } from '../submissions.ts';
import { atLeast, atMost, joinVerdicts, type Verdict } from '../verdict.ts';

/** The proxy looks twice a second whether a server is back. */
const seenByProxyMs = 1_500;

/** One after the other, each when the one before serves again. @returns seconds until each had gone */
async function replace({ cluster }: Stage, parts: readonly string[]): Promise<readonly number[]> {
  const exits: number[] = [];
  for (const part of parts) {
    const from = performance.now();
    await cluster.kill(part, 'SIGTERM');
    exits.push((performance.now() - from) / 1_000);
    await cluster.ready(part);
    await sleep(seenByProxyMs);
  }
  return exits;
}

async function findNonDeterminism({ cluster }: Stage): Promise<string[]> {
  const folder = join(cluster.folder, 'logs');
  const logs = (await readdir(folder)).filter((name) => name.startsWith('worker-'));
  const texts = await Promise.all(logs.map((name) => readFile(join(folder, name), 'utf8')));
  const lines = texts.flatMap((text) => text.split('\n'));
  return lines.filter((line) => /TMPRL1100|nondeterminism/i.test(line)).slice(0, 3);
}

const everything = ['worker-1', 'server-1', 'worker-2', 'server-2'];

export function restartInTurn(stage: Stage): Promise<Verdict> {
  const [count, pace] = stage.isLong ? [300, 3] : [100, 3];
  return playUnderLoad(
    stage,
    { name: 'rolling-restart', count, pace },
    {
      disturb: async () => {
        const exits = await replace(stage, [...everything, ...everything]);
        const replaced = { figures: { 'processes replaced': exits.length }, breaches: [] };
        return joinVerdicts([replaced, atMost('longest exit s', Math.max(...exits), 30)]);
      },
      audit: async () => {
        const lines = await findNonDeterminism(stage);
        return { figures: { 'non-determinism': lines.length }, breaches: lines };
      },
    },
  );
}

/** A reader that never tries again. @returns why requests failed */
async function readSteadily(api: Api, isOver: () => boolean) {
  const failed: string[] = [];
  const under: Promise<void>[] = [];
  const read = async (): Promise<void> => {
    const { status } = await api.request('GET', '/v1/runs?limit=10');
    if (status !== 200) failed.push(`GET /v1/runs: ${status}`);
  };
  while (!isOver()) {
    under.push(read().catch((fault) => void failed.push(wordsOf(fault))));
    await sleep(50);
  }
  await Promise.all(under);
  return { failed, count: under.length };
}

export function endServersUnderLoad(stage: Stage): Promise<Verdict> {
  const [count, pace] = stage.isLong ? [300, 10] : [100, 5];
  const parts = ['server-1', 'server-2'];
  return playUnderLoad(
    stage,
    { name: 'sigterm', count, pace, tries: 1 },
    {
      disturb: async ({ isOver }) => {
        let isReplaced = false;
        const reading = readSteadily(stage.api, () => isReplaced && isOver());
        const exits = await replace(stage, stage.isLong ? [...parts, ...parts] : parts);
        isReplaced = true;
        const { failed, count: reads } = await reading;
        return joinVerdicts([
          { figures: { 'processes ended': exits.length }, breaches: failed },
          atLeast('requests beside the submissions', reads, 1),
          { figures: { 'of them failed': failed.length }, breaches: [] },
          atMost('longest exit s', Math.max(...exits), 30),
        ]);
      },
    },
  );
}
