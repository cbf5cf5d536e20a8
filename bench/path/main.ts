/**
 * Where the time goes from the request to the first call, and through a run of three steps, one run at a time:
 * `npm run bench -- path [--json] [--runs N]`. It has no bars.
 */
import { parseArgs } from 'node:util';
import { startStack } from '../engine/stack.ts';
import { type Place, runBench, say } from '../shared/run-bench.ts';
import { connectPaths } from './connect-paths.ts';
import type { Path } from './marks.ts';
import type { PathSide } from './path-side.ts';
import { type PathResult, summarize } from './result.ts';
import { toTable } from './table.ts';

const warmUpRuns = 30;

/** Run by run, each time beginning with another side, so that what else the machine does hits all alike. */
async function followAll(sides: readonly PathSide[], runs: number): Promise<Map<PathSide, Path[]>> {
  const followed = new Map(sides.map((side) => [side, [] as Path[]]));
  for (let run = 0; run < runs; run++) {
    const first = run % sides.length;
    for (const side of [...sides.slice(first), ...sides.slice(0, first)]) {
      followed.get(side)?.push(await side.follow());
    }
  }
  return followed;
}

async function measure(place: Place, runs: number): Promise<PathResult> {
  say('starting Postgres, Temporal, server and workers');
  const { sides, close } = await connectPaths(await startStack(place, ['capstan', 'queued', 'bare']));
  try {
    say('warming up');
    await followAll(sides, warmUpRuns);
    for (const side of sides) await side.awaitKnown();
    say(`${runs} runs of each`);
    return await summarize(await followAll(sides, runs), runs);
  } finally {
    await close();
  }
}

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    runs: { type: 'string', default: '150' },
  },
});

await runBench(async (place) => {
  const result = await measure(place, Number(options.runs));
  console.log(options.json ? JSON.stringify(result, null, 2) : toTable(result));
  return true;
});
