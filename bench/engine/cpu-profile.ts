/**
 * Reads what `node --cpu-prof` has written: for each thread, the time of its samples by the code that they are in. Code
 * of Node itself counts for its caller. The clock of the samples is that of `process.hrtime`, in every process.
 */
import { readFileSync } from 'node:fs';

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string };
  readonly children?: readonly number[];
}

interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  /** Microseconds, as the deltas. */
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Microseconds of the steady clock. */
export interface Period {
  readonly from: number;
  readonly to: number;
}

/** Milliseconds by name. */
type Times = ReadonlyMap<string, number>;

export interface ThreadTimes {
  /** By package or folder of the sources. */
  readonly byPlace: Times;
  /** Of the functions alone, without those that they call. */
  readonly byFunction: Times;
}

export function readSteadyUs(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}

const ofEngine: ReadonlySet<string> = new Set(['(garbage collector)', '(program)', '(root)']);
const notBusy = '(idle)';

/** @returns the package or folder of a file; undefined = Node itself */
function placeOf(url: string): string | undefined {
  if (url.includes('workflow-bundle')) return 'workflow sandbox';
  const [, packageName] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url) ?? [];
  if (packageName !== undefined) return packageName;
  const [, folder] =
    /\/((?:src|bench)(?:\/[^/]+){1,2})\/[^/]+$/.exec(url) ?? /\/(src|bench)\/[^/]+$/.exec(url) ?? [];
  return folder;
}

interface Place {
  readonly place: string;
  readonly name: string;
}

function placeNodes(nodes: readonly ProfileNode[]): ReadonlyMap<number, Place> {
  const parents = new Map(nodes.flatMap((node) => (node.children ?? []).map((id) => [id, node] as const)));
  const placed = new Map<number, Place>();
  for (const node of nodes) {
    const { functionName } = node.callFrame;
    let above: ProfileNode | undefined = node;
    let place: string | undefined =
      ofEngine.has(functionName) || functionName === notBusy ? functionName : undefined;
    while (place === undefined && above !== undefined) {
      place = placeOf(above.callFrame.url);
      above = parents.get(above.id);
    }
    const known = place ?? 'Node';
    placed.set(node.id, {
      place: known,
      name: `${functionName || '(anonymous)'}, ${placeOf(node.callFrame.url) ?? 'Node'}`,
    });
  }
  return placed;
}

function add(times: Map<string, number>, name: string, ms: number): void {
  times.set(name, (times.get(name) ?? 0) + ms);
}

export function readThread(file: string, { from, to }: Period): ThreadTimes {
  const { nodes, startTime, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8')) as CpuProfile;
  const places = placeNodes(nodes);
  const byPlace = new Map<string, number>();
  const byFunction = new Map<string, number>();
  let at = startTime;
  for (const [index, id] of samples.entries()) {
    at += timeDeltas[index] ?? 0;
    const ms = Math.max(0, timeDeltas[index + 1] ?? 0) / 1_000;
    const place = places.get(id);
    if (at < from || at > to || place === undefined || place.place === notBusy) continue;
    add(byPlace, place.place, ms);
    add(byFunction, place.name, ms);
  }
  return { byPlace, byFunction };
}
