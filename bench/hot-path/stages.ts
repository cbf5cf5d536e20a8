/**
 * Which stage of a call a sampled function belongs to. A function of Node, of the language or of a small part that all
 * stages share belongs to the nearest function around it that has a stage; one without a stage is shown by its own
 * name.
 */
import type { Frame, Sampled } from './profile.ts';

const stages: readonly (readonly [stage: string, files: RegExp])[] = [
  ['body', /\/src\/api\/body|core\/json\/scan/],
  ['auth', /\/src\/api\/(authentication|limits)|services\/access\//],
  [
    'validation of the request',
    /\/src\/api\/(input|route|parameters)\.|\/src\/contracts\/|\/zod\/|\/api\/routes\//,
  ],
  ['answer', /\/src\/api\/answer|core\/json\/text|\/koa\/lib\/response|\/koa\/lib\/is-stream/],
  ['logs', /\/pino\/|sonic-boom|thread-stream/],
  ['telemetry', /src\/telemetry\/|core\/telemetry\/|opentelemetry|prom-client|call-telemetry/],
  [
    'middleware',
    /\/src\/api\/|\/koa\/|koa-compose|@koa\/router|path-to-regexp|\/(on-finished|ee-first|delegates|statuses|content-type|mime-types|type-is|http-errors|accepts|parseurl)\//,
  ],
  ['schemas of the instance', /\/src\/schemas\/|registry\/specs|\/ajv/],
  ['choice', /core\/routing\/|core\/call\/claim-search|services\/fleet\/|instance-list/],
  ['claim', /routing\/claim|services\/ids|node_modules\/uuid/],
  ['settle', /routing\/reservation|core\/money\/|core\/call\/judge|routing\/breakers|speed-recorder/],
  ['records', /routing\/attempt-writer|db\/attempt\//],
  ['dispatch', /\/src\/clients\/|\/undici\/|core\/call\/(outcome|log-lines)/],
  ['database client', /node_modules\/(pg|pg-protocol|pg-types|pg-pool|knex|tarn|postgres-)|\/src\/db\//],
  ['loop of the call', /core\/call\/|services\/(calls|routing|cache|jobs|delivery)/],
  ['other parts of Capstan', /\/src\//],
  ['other packages', /node_modules\//],
];

/** Of the frames around it, where none of the above is among them. */
const rest: readonly (readonly [stage: string, files: RegExp])[] = [
  ['HTTP of Node', /^node:(_http|internal\/http)/],
  ['sockets of Node', /^node:(net|internal\/(streams?|stream_base_commons)|events|internal\/js_stream)/],
  ['timers of Node', /^node:(timers|internal\/timers)/],
  ['promises and turns', /^node:internal\/(process\/task_queues|async_hooks|promise)/],
  ['other parts of Node', /^node:/],
];

const shared = /core\/(cancellation|pacing|tally)|lru-cache|\/src\/errors\//;

const own: Readonly<Record<string, string>> = {
  '(garbage collector)': 'garbage collection, main thread',
  '(program)': 'outside of JavaScript',
  '(root)': 'outside of JavaScript',
};

function find(table: typeof stages, { url }: Frame): string | undefined {
  return shared.test(url) ? undefined : table.find(([, files]) => files.test(url))?.[0];
}

interface Attributed {
  readonly stage: string;
  /** The function that gave the stage, with its file and line. */
  readonly at: string;
  readonly us: number;
}

export function toPlace({ functionName, url, lineNumber }: Frame): string {
  const file = url.replace(/^.*\/(dist\/src|node_modules)\//, '');
  return `${functionName || '(anonymous)'} ${file}:${lineNumber + 1}`;
}

function attribute({ frames, us }: Sampled): Attributed {
  const [first] = frames;
  const name = own[first?.functionName ?? ''];
  if (name !== undefined && first?.url === '') return { stage: name, at: first.functionName, us };
  for (const table of [stages, rest])
    for (const frame of frames) {
      const stage = find(table, frame);
      if (stage !== undefined) return { stage, at: toPlace(frame), us };
    }
  return { stage: 'unattributed', at: first === undefined ? '' : toPlace(first), us };
}

function isBusy({ frames }: Sampled): boolean {
  return frames[0]?.functionName !== '(idle)';
}

/** Sums of one name, the most first. */
export function sumByName(list: Iterable<readonly [name: string, amount: number]>): [string, number][] {
  const sums = new Map<string, number>();
  for (const [name, amount] of list) sums.set(name, (sums.get(name) ?? 0) + amount);
  return [...sums].sort(([, a], [, b]) => b - a);
}

/** Time by stage and by function, the most first. The shares of each add up to 1. */
interface Shares {
  readonly stages: readonly (readonly [name: string, share: number])[];
  readonly functions: readonly (readonly [name: string, share: number])[];
}

export function shareOut(sampled: readonly Sampled[]): Shares {
  const list = sampled.filter(isBusy).map(attribute);
  const all = list.reduce((sum, { us }) => sum + us, 0);
  const shares = (key: 'stage' | 'at') => sumByName(list.map((one) => [one[key], one.us / all]));
  return { stages: shares('stage'), functions: shares('at') };
}
