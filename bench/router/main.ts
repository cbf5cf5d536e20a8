/**
 * What routing costs, against gateways that only pass on: `npm run bench -- router [--quick] [--json]
 * [--rounds N] [--only exec,chat,messages,responses] [--beside PATH]`. `--beside` adds another checkout of Capstan. Exit
 * code 1 when a bar is missed.
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { readProcessorTime } from '../engine/processor-time.ts';
import { type Checkout, findCheckout } from '../shared/other-checkout.ts';
import { type Place, runBench, say } from '../shared/run-bench.ts';
import { type Measured, measure } from './load.ts';
import { registerUpstreams, startPackagedModels } from './register.ts';
import { type Round, summarize, toTable } from './result.ts';
import { type Measuring, type Stack, startStack } from './stack.ts';
import { describeSystems, type Group, groups, type System } from './systems.ts';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    only: { type: 'string', default: groups.join() },
    beside: { type: 'string' },
  },
});
const effort = {
  rounds: Number(options.rounds ?? (options.quick ? 1 : 5)),
  oneMs: options.quick ? 400 : 1_000,
  manyMs: options.quick ? 800 : 2_000,
};

async function measureSystem(stack: Stack, system: System): Promise<Round['systems'][string]> {
  const one: Measured = await measure(system, 1, effort.oneMs);
  const before = readProcessorTime(stack.processes());
  const many = await measure(system, 32, effort.manyMs);
  const spent = [...readProcessorTime(stack.processes())].map(
    ([part, ms]) => [part, ((ms - (before.get(part) ?? 0)) * 1_000) / many.calls] as const,
  );
  return { one, many, processorUs: Object.fromEntries(spent) };
}

function rotate<Item>(list: readonly Item[], by: number): Item[] {
  return [...list.slice(by % list.length), ...list.slice(0, by % list.length)];
}

async function bench(place: Place, measuring: Measuring): Promise<boolean> {
  say('starting Postgres, Temporal, the upstream, rivals and the server');
  const stack = await startStack(place, measuring);
  await registerUpstreams(stack);
  if (stack.modelGateways !== null) await startPackagedModels(place, stack);
  const systems = describeSystems(stack, measuring.groups);
  say('warming up');
  for (const system of systems) await measure(system, 32, effort.oneMs);
  const rounds: Round[] = [];
  for (let number = 0; number < effort.rounds; number++) {
    say(`round ${number + 1} of ${effort.rounds}`);
    const measured: Record<string, Round['systems'][string]> = {};
    for (const system of rotate(systems, number)) measured[system.name] = await measureSystem(stack, system);
    rounds.push({ systems: measured });
  }
  const result = summarize(rounds, `${cpus().length} × ${cpus()[0]?.model.trim()}, Node ${process.version}`);
  console.log(options.json ? JSON.stringify(result, null, 2) : toTable(result));
  return result.passed;
}

/** @throws Error for a group that does not exist */
function readGroups(list: string): readonly Group[] {
  const named = list.split(',').filter((name) => name !== '');
  const unknown = named.find((name) => !groups.some((group) => group === name));
  if (unknown !== undefined) throw new Error(`--only takes ${groups.join(', ')}; there is no ${unknown}`);
  return groups.filter((group) => named.includes(group));
}

const beside: Checkout | null = options.beside === undefined ? null : findCheckout(options.beside);
const measured = readGroups(options.only);
await runBench((place) => bench(place, { beside, groups: measured }));
