/**
 * A machine with an instance vanishes at each stage of its calls: from then on packets to and from it are lost. `npm run
 * faults -- vanished` plays each stage with 1 and 30 open calls, prints the seconds until the next attempt has begun on
 * another machine, or until a direct call has ended, and holds them against a bar of 20.
 */
import type { ChildProcess } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { type Instance, startInstance } from '../support/fleet.ts';
import { findNamespaceObstacle, type NetworkNamespace, openNamespace } from '../support/network-namespace.ts';
import { waitFor } from '../support/wait.ts';

const isMeasured = process.env.FAULT_CALLS !== undefined;
const counts = (process.env.FAULT_CALLS ?? '').split(',').map(Number);
const barS = 20;

/** Prints its port, and a line for each call, which it never ends. */
const program = `
  const [,, name, address, deed] = process.argv;
  const spec = { name, version: '1.0.0', description: name, input: { type: 'object' }, output: { type: 'object' }, cost_model: { type: 'free', rate_usd: 0 } };
  const say = (response, body) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
  const server = require('node:http').createServer((request, response) => {
    if (request.url === '/spec') return say(response, spec);
    if (request.url === '/health') return say(response, { status: 'ok', name, version: '1.0.0', uptime_ms: 1 });
    if (deed === 'reads nothing') return void console.log('called');
    request.resume().on('end', () => {
      if (deed === 'tells progress') {
        response.writeHead(200, { 'content-type': 'application/x-ndjson' });
        setInterval(() => response.write('{"progress":0.5}\\n'), 500);
      }
      console.log('called');
    });
  });
  server.listen(0, address, deed === 'has a short queue' ? 1 : 511, () => console.log(server.address().port));
`;

const stages = {
  'before a connection is made': { deed: 'works', isCutBefore: true, isFrozen: false },
  'before the request is acknowledged': { deed: 'reads nothing', isCutBefore: false, isFrozen: false },
  'after it is acknowledged': { deed: 'works', isCutBefore: false, isFrozen: false },
  'within an answer': { deed: 'tells progress', isCutBefore: false, isFrozen: false },
  'frozen, with a full accept queue': { deed: 'has a short queue', isCutBefore: false, isFrozen: true },
} as const;
type StageName = keyof typeof stages;

interface Doomed {
  readonly name: string;
  readonly namespace: NetworkNamespace;
  readonly child: ChildProcess;
  readonly address: string;
  readonly port: number;
  calls: number;
}

let capstan: Capstan;
const doomed: Doomed[] = [];
const others: Instance[] = [];

async function startDoomed(name: string, deed: string): Promise<Doomed> {
  const namespace = openNamespace();
  const child = namespace.run([process.execPath, '-e', program, '', name, namespace.address, deed]);
  const lines = createInterface({ input: child.stdout as Readable });
  let port = 0;
  const machine = { name, namespace, child, address: namespace.address, port, calls: 0 };
  lines.on('line', (line) => {
    if (port === 0) port = Number(line);
    else machine.calls += 1;
  });
  await waitFor('the instance to listen', () => port > 0);
  Object.assign(machine, { port });
  doomed.push(machine);
  const endpoint = `http://${machine.address}:${port}`;
  const { status, body } = await capstan.request('POST', '/v1/capabilities', {
    name,
    version: '1.0.0',
    endpoint,
    spec_url: `${endpoint}/spec`,
    health_url: `${endpoint}/health`,
    cost_model: { type: 'free', rate_usd: 0 },
    tags: ['local'],
    max_concurrency: 64,
  });
  if (status >= 300) throw new Error(`registration: ${status} ${JSON.stringify(body)}`);
  return machine;
}

/** Suspends it and fills the queue of connections that it has not accepted. */
async function freeze({ child, address, port }: Doomed): Promise<void> {
  child.kill('SIGSTOP');
  const fillers: Socket[] = [];
  for (let filler = 0; filler < 8; filler++)
    fillers.push(connect(port, address).on('error', () => undefined));
  await waitFor('its queue to be full', () => fillers.filter(({ connecting }) => !connecting).length >= 2);
}

interface Figures {
  readonly stage: StageName;
  readonly way: 'steps' | 'direct calls';
  readonly calls: number;
  readonly soonest: number;
  readonly latest: number;
}

interface Vanishing {
  readonly machine: Doomed;
  readonly stage: StageName;
  readonly calls: number;
  /** Registers the instance that is called next; not before, or it gets some of the calls. */
  readonly startOther?: () => Promise<void>;
}

/** @returns when its packets were cut off */
async function vanish({ machine, stage, calls, startOther }: Vanishing): Promise<number> {
  const { isCutBefore, isFrozen } = stages[stage];
  if (!isCutBefore) await waitFor('all calls to come', () => machine.calls >= calls, 60_000);
  await startOther?.();
  if (isFrozen) await freeze(machine);
  machine.namespace.cutLink();
  return Date.now();
}

/** More than is acknowledged before it is read, where that matters. */
function inputOf(stage: StageName): { readonly texts: readonly string[] } {
  return { texts: stages[stage].deed === 'reads nothing' ? Array(8).fill('x'.repeat(60_000)) : [] };
}

async function playSteps(stage: StageName, calls: number): Promise<Figures> {
  const name = `s${Object.keys(stages).indexOf(stage)}-${calls}`;
  const machine = await startDoomed(name, stages[stage].deed);
  const begun: number[] = [];
  const startOther = async (): Promise<void> => {
    const price = { type: 'per_call', rate_usd: 0.0001 };
    const other = await startInstance(capstan, {
      name,
      cost_model: price,
      tags: ['hosted'],
      max_concurrency: 64,
    });
    others.push(other);
    other.handle = (_, response) => {
      begun.push(Date.now());
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true,"output":{}}');
    };
  };
  const items = Array.from({ length: calls }, (_, at) => at);
  const step = { id: 'a', capability: name, timeout: '30m', for_each: { items: '{{ job.items }}' } };
  const input = { texts: '{{ job.texts }}', item: '{{ item }}' };
  const submit = () => capstan.submit([{ ...step, input }], { ...inputOf(stage), items });
  const vanishing = { machine, stage, calls, startOther };
  const [from, { run_id }] = stages[stage].isCutBefore
    ? [await vanish(vanishing), await submit()]
    : await submit().then(async (run) => [await vanish(vanishing), run] as const);
  await waitFor('the next attempts', () => begun.length >= calls, 120_000);
  await capstan.ended(run_id);
  return figuresOf({ stage, way: 'steps', calls }, begun, from);
}

async function playDirect(stage: StageName, calls: number): Promise<Figures> {
  const name = `d${Object.keys(stages).indexOf(stage)}-${calls}`;
  const machine = await startDoomed(name, stages[stage].deed);
  const ended: number[] = [];
  const call = async (): Promise<void> => {
    const { body } = await capstan.request<{ code: string }>('POST', `/v1/capabilities/${name}/exec`, {
      input: inputOf(stage),
      timeout_ms: 1_800_000,
    });
    ended.push(Date.now());
    expect(body.code).toBe('contact_lost');
  };
  const open = Array.from({ length: calls }, call);
  const from = await vanish({ machine, stage, calls });
  await Promise.all(open);
  return figuresOf({ stage, way: 'direct calls', calls }, ended, from);
}

function figuresOf(
  what: Pick<Figures, 'stage' | 'way' | 'calls'>,
  times: readonly number[],
  from: number,
): Figures {
  const seconds = times.map((at) => (at - from) / 1_000).sort((a, b) => a - b);
  return { ...what, soonest: seconds[0] ?? 0, latest: seconds.at(-1) ?? 0 };
}

function print(figures: readonly Figures[]): void {
  console.log(
    'the machine vanishes                | with           |  calls |  s to the next attempt, or the end',
  );
  for (const { stage, way, calls, soonest, latest } of figures) {
    const range = `${soonest.toFixed(1)} to ${latest.toFixed(1)}`;
    console.log(`${stage.padEnd(35)} | ${way.padEnd(14)} | ${String(calls).padStart(6)} | ${range}`);
  }
}

const obstacle = findNamespaceObstacle();
describe.runIf(isMeasured && obstacle === null)('a machine that vanishes under open calls', () => {
  beforeAll(async () => {
    capstan = await startCapstan();
  });
  afterAll(async () => {
    for (const { child, namespace } of doomed) {
      child.kill('SIGKILL');
      namespace.close();
    }
    await Promise.all(others.map((other) => other.stop()));
    await capstan?.stop();
  });

  test('is noticed within 20 s at every stage', { timeout: 600_000 }, async () => {
    const names = Object.keys(stages) as StageName[];
    const figures: Figures[] = [];
    for (const calls of counts) {
      const steps = names.map((stage) => playSteps(stage, calls));
      const direct = names.slice(1).map((stage) => playDirect(stage, calls));
      figures.push(...(await Promise.all([...steps, ...direct])));
    }
    print(figures);
    expect(figures.filter(({ latest }) => latest >= barS)).toEqual([]);
  });
});
