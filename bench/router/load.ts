/** Callers that ask again as soon as they are answered, on a connection each. */
import { Pool } from 'undici';
import { answerPieces, answerText, events, type Protocol } from './payload.ts';
import type { System } from './systems.ts';

/** A system as far as callers need it. */
type Asked = Omit<System, 'group' | 'streamOf'> & Partial<Pick<System, 'streamOf'>>;

export interface Measured {
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Until the first piece of the answer, at the median; NaN where it comes whole. */
  readonly firstMs: number;
  readonly perSecond: number;
  readonly calls: number;
}

const [firstPiece = ''] = answerPieces;

/** @returns the text that the events bring */
function readText(protocol: Protocol, stream: string): string {
  const lines = stream.split('\n').filter((line) => line.startsWith('data: {'));
  return lines.map((line) => events[protocol].textOf(JSON.parse(line.slice(6))) ?? '').join('');
}

/** @throws Error when an answer is not the upstream's */
function check({ path, streamOf = null }: Asked, status: number, text: string): void {
  const isWhole = text.includes(streamOf === null ? 'answer ' : events[streamOf].end);
  if (status === 200 && isWhole) return;
  throw new Error(`${path} answered ${status}: ${text.slice(0, 300)}`);
}

/** @returns when the first piece came; NaN where the answer comes whole */
async function ask(pool: Pool, system: Asked): Promise<{ readonly firstAt: number; readonly text: string }> {
  const { path, headers, body, streamOf = null } = system;
  const answer = await pool.request({ path, method: 'POST', headers, body });
  if (streamOf === null) {
    const text = await answer.body.text();
    check(system, answer.statusCode, text);
    return { firstAt: Number.NaN, text };
  }
  let text = '';
  let firstAt = Number.NaN;
  answer.body.setEncoding('utf8');
  for await (const chunk of answer.body) {
    text += chunk;
    if (Number.isNaN(firstAt) && text.includes(firstPiece)) firstAt = performance.now();
  }
  check(system, answer.statusCode, text);
  return { firstAt, text };
}

/** @throws Error when an answer is not the upstream's */
export async function measure(system: Asked, callers: number, durationMs: number): Promise<Measured> {
  const pool = new Pool(system.origin, { connections: callers, pipelining: 1 });
  const times: number[] = [];
  const firstTimes: number[] = [];
  const { text } = await ask(pool, system);
  const { streamOf = null } = system;
  if (streamOf !== null && readText(streamOf, text) !== answerText)
    throw new Error(`${system.name} streams another text: ${text}`);
  const startedAt = performance.now();
  const end = startedAt + durationMs;
  const caller = async (): Promise<void> => {
    for (let from = performance.now(); from < end; from = performance.now()) {
      const { firstAt } = await ask(pool, system);
      times.push(performance.now() - from);
      if (streamOf !== null) firstTimes.push(firstAt - from);
    }
  };
  try {
    await Promise.all(Array.from({ length: callers }, caller));
  } finally {
    await pool.close();
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  for (const list of [times, firstTimes]) list.sort((a, b) => a - b);
  const at = (list: readonly number[], share: number): number =>
    list[Math.floor(list.length * share)] ?? Number.NaN;
  return {
    p50Ms: at(times, 0.5),
    p99Ms: at(times, 0.99),
    firstMs: at(firstTimes, 0.5),
    perSecond: times.length / seconds,
    calls: times.length,
  };
}
