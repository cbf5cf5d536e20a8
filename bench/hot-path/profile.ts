/** Samples what a Node process does, by its inspector, which runs only from then on. */
import { setTimeout as pause } from 'node:timers/promises';
import { fetch, WebSocket } from 'undici';

/** A function of a profile, as the protocol of the inspector names it. */
export interface Frame {
  readonly functionName: string;
  readonly url: string;
  /** From 0. */
  readonly lineNumber: number;
}

interface Node {
  readonly id: number;
  readonly callFrame: Frame;
  readonly children?: readonly number[];
}

interface Profile {
  readonly nodes: readonly Node[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** The time that a function took itself, below the functions that called it. */
export interface Sampled {
  /** The innermost first. */
  readonly frames: readonly Frame[];
  readonly us: number;
}

const everyUs = 100;

interface Session {
  send(method: string, params?: object): Promise<Record<string, unknown>>;
  close(): void;
}

/** A process that was started with `--inspect-port`. */
interface Inspected {
  readonly pid: number;
  readonly inspectorPort: number;
}

async function findTarget({ pid, inspectorPort }: Inspected): Promise<string> {
  process.kill(pid, 'SIGUSR1');
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${inspectorPort}/json/list`).catch(() => null);
    if (answer === null) await pause(50);
    else return ((await answer.json()) as [{ webSocketDebuggerUrl: string }])[0].webSocketDebuggerUrl;
  }
}

async function connect(inspected: Inspected): Promise<Session> {
  const socket = new WebSocket(await findTarget(inspected));
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', reject);
  });
  const waiting = new Map<number, (result: Record<string, unknown>) => void>();
  socket.addEventListener('message', ({ data }) => {
    const { id, result = {} } = JSON.parse(String(data)) as { id: number; result?: Record<string, unknown> };
    waiting.get(id)?.(result);
  });
  let last = 0;
  return {
    send: (method, params = {}) =>
      new Promise((resolve) => {
        waiting.set(++last, resolve);
        socket.send(JSON.stringify({ id: last, method, params }));
      }),
    close: () => socket.close(),
  };
}

function toSampled({ nodes, samples, timeDeltas }: Profile): Sampled[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const times = new Map<number, number>();
  // A delta is the time since the sample before: it belongs to that one.
  for (const [at, id] of samples.entries()) times.set(id, (times.get(id) ?? 0) + (timeDeltas[at + 1] ?? 0));
  return [...times].map(([id, us]) => {
    const frames: Frame[] = [];
    for (let node = byId.get(id); node !== undefined; node = byId.get(parents.get(node.id) ?? -1))
      frames.push(node.callFrame);
    return { frames, us };
  });
}

interface AllocationNode {
  readonly callFrame: Frame;
  readonly selfSize: number;
  readonly children: readonly AllocationNode[];
}

/** What a function allocated itself. */
interface Allocated {
  readonly frame: Frame;
  readonly bytes: number;
}

function toAllocated({ callFrame: frame, selfSize: bytes, children }: AllocationNode): Allocated[] {
  return [{ frame, bytes }, ...children.flatMap(toAllocated)];
}

/** @returns the result of the work */
async function withSession<Result>(
  inspected: Inspected,
  work: (session: Session) => Promise<Result>,
): Promise<Result> {
  const session = await connect(inspected);
  try {
    return await work(session);
  } finally {
    session.close();
  }
}

const sampledBytes = 4_096;

/** @returns what was allocated meanwhile and not freed by a collection of the young generation */
export function sampleKept(
  inspected: Inspected,
  work: () => Promise<unknown>,
): Promise<readonly Allocated[]> {
  return withSession(inspected, async ({ send }) => {
    await send('HeapProfiler.enable');
    await send('HeapProfiler.startSampling', {
      samplingInterval: sampledBytes,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: false,
    });
    await work();
    const { profile } = (await send('HeapProfiler.stopSampling')) as { profile: { head: AllocationNode } };
    return toAllocated(profile.head);
  });
}

/** @returns all time of the main thread meanwhile, its idle time too */
export function sample(inspected: Inspected, work: () => Promise<unknown>): Promise<readonly Sampled[]> {
  return withSession(inspected, async ({ send }) => {
    await send('Profiler.enable');
    await send('Profiler.setSamplingInterval', { interval: everyUs });
    await send('Profiler.start');
    await pause(50);
    await work();
    return toSampled((await send('Profiler.stop')).profile as Profile);
  });
}
