/**
 * Watches a run to its end: a live table on a terminal, a line per event elsewhere, only the final document with
 * --json. Ctrl-C and the time limit end only the watching; the run continues.
 *
 * Events only trigger a redraw of the live table. It draws the run as the API returns it, so the table cannot drift
 * from the truth. It fetches at most every quarter second, and more slowly when fetches are slow.
 */

import { setTimeout as delay } from 'node:timers/promises';
import type { RunEvent } from '@capstan/core/contracts/event';
import { type Run, terminalRunStates } from '@capstan/core/contracts/run';
import type { ApiAnswer } from '../client/api-client.ts';
import type { Session } from '../client/session.ts';
import { exitCodeOf, exitCodes, UnreachableError } from '../errors.ts';
import { getRun } from '../input/arguments.ts';
import { formatDuration } from '../render/formats.ts';
import { toLine } from '../render/print.ts';
import { renderRunHead, renderSteps, showRun } from '../render/run.ts';
import type { Terminal } from '../shell.ts';
import { followEvents, formatEvent } from './events.ts';

interface LiveBlock {
  readonly show: (lines: readonly string[]) => void;
  /** Removes the block from the screen; the next output replaces it. */
  readonly clear: () => void;
}

/** A block of lines on a terminal that is redrawn in place. */
export function createLiveBlock(terminal: Terminal): LiveBlock {
  let height = 0;
  const home = (): string => (height === 0 ? '' : `\u001b[${height}A`);
  return {
    show: (lines) => {
      terminal.write(`${home()}${lines.map((line) => `\u001b[2K${toLine(line)}\n`).join('')}\u001b[J`);
      height = lines.length;
    },
    clear: () => {
      terminal.write(`${home()}\u001b[J`);
      height = 0;
    },
  };
}

interface ProgressBoard {
  note(event: RunEvent, now: number): void;
  /** `40 % encoding, silent for 12.0s`; empty without a progress report. */
  describe(stepId: string, now: number): string;
}

interface Said {
  readonly progress: number;
  readonly message?: string;
  readonly at: number;
  readonly longestGapMs: number;
}

/** A silence is unusual above `factor` times the longest one so far, and above `leastMs`. */
const unusual = { factor: 3, leastMs: 5_000 };

function describe({ progress, message, at, longestGapMs }: Said, now: number): string {
  const silentMs = now - at;
  const isUnusual = silentMs > Math.max(unusual.leastMs, unusual.factor * longestGapMs);
  const silence = isUnusual ? `, silent for ${formatDuration(silentMs)}` : '';
  return `${Math.round(progress * 100)} %${message === undefined ? '' : ` ${message}`}${silence}`;
}

/**
 * Progress of a run's calls, as their instances report it. Instances report at different intervals: a silence much
 * longer than any before is shown, but it does not count as a failure.
 */
export function createProgressBoard(): ProgressBoard {
  const said = new Map<string, Said>();
  return {
    note: ({ type, step_id, item, data }, now) => {
      if (step_id === undefined || item !== undefined || type === 'step.log') return;
      if (type !== 'step.progress') {
        said.delete(step_id);
        return;
      }
      const told = data as Pick<Said, 'progress' | 'message'>;
      const last = said.get(step_id);
      const longestGapMs = last === undefined ? 0 : Math.max(last.longestGapMs, now - last.at);
      said.set(step_id, { ...told, at: now, longestGapMs });
    },
    describe: (stepId, now) => {
      const one = said.get(stepId);
      return one === undefined ? '' : describe(one, now);
    },
  };
}

// The live table of a run. The cost and the state of a child run cause no events of this run, so while a step waits for
// one, the run is fetched every second.

const frameMs = 250;
const belowMs = 1_000;

interface View {
  run: Run;
  /** By a monotonic clock. */
  readAt: number;
  changed: boolean;
  contact: boolean;
  ended: boolean;
  readonly board: ProgressBoard;
}

function renderView({ run, contact, board }: View, { print, shell }: Session): string[] {
  const width = shell.stdout.columns || 80;
  const height = (shell.stdout.rows || 24) - 4;
  const now = shell.now();
  const progressOf = (stepId: string): string => board.describe(stepId, now);
  const layout = { style: print.style, width, height, now, progressOf };
  const trouble = contact ? [] : [print.style.yellow('contact lost, trying again')];
  return [renderRunHead(run, layout), '', ...renderSteps(run.steps, layout), ...trouble];
}

function isDue({ run, readAt, changed }: View): boolean {
  const waitsBelow = run.steps.some(({ awaiting }) => awaiting === 'run');
  return changed || (waitsBelow && performance.now() - readAt >= belowMs);
}

/** Returns how long the fetch took. Without contact, the previous state is kept. */
async function refresh(view: View, session: Session): Promise<number> {
  const began = performance.now();
  view.readAt = began;
  view.changed = false;
  try {
    view.run = (await getRun(session.client, view.run.run_id)).value;
  } catch (thrown) {
    if (!(thrown instanceof UnreachableError)) throw thrown;
    view.changed = true;
  }
  return performance.now() - began;
}

async function draw(view: View, session: Session, signal: AbortSignal): Promise<void> {
  const block = createLiveBlock(session.shell.stdout);
  try {
    while (!view.ended && !signal.aborted) {
      const tookMs = isDue(view) ? await refresh(view, session) : 0;
      block.show(renderView(view, session));
      await delay(Math.max(frameMs, 2 * tookMs), undefined, { signal }).catch(() => undefined);
    }
  } finally {
    block.clear();
  }
}

/** Returns when the run has ended or `signal` aborts. */
export async function showLiveTable(session: Session, runId: string, signal: AbortSignal): Promise<void> {
  const { value: run } = await getRun(session.client, runId);
  if (terminalRunStates.has(run.state)) return;
  const view: View = {
    run,
    readAt: performance.now(),
    changed: false,
    contact: true,
    ended: false,
    board: createProgressBoard(),
  };
  const over = new AbortController();
  const stop = AbortSignal.any([signal, over.signal]);
  const listen = async (): Promise<void> => {
    const onContact = (state: 'lost' | 'back'): void => {
      view.contact = state === 'back';
    };
    for await (const event of followEvents(session.client, runId, { signal: stop, onContact })) {
      view.board.note(event, session.shell.now());
      view.changed = true;
    }
    view.ended = true;
  };
  try {
    await Promise.all([listen().finally(() => over.abort()), draw(view, session, stop)]);
  } finally {
    over.abort();
  }
}

type Leaving = 'interrupt' | 'timeout';

async function showLines(
  { client, print, json }: Session,
  runId: string,
  signal: AbortSignal,
): Promise<void> {
  const onContact = (state: 'lost' | 'back'): void => {
    if (state === 'lost') print.remark('contact lost, trying again');
  };
  for await (const event of followEvents(client, runId, { signal, onContact })) {
    if (!json) print.line(formatEvent(event, print.style));
  }
}

/** Waits for the run's row, which may lag behind its last event. @throws UnreachableError */
export async function readEndedRun({ client }: Session, runId: string): Promise<ApiAnswer<Run>> {
  for (let round = 0; round < 50; round += 1) {
    const answer = await getRun(client, runId);
    if (terminalRunStates.has(answer.value.state)) return answer;
    await delay(200);
  }
  throw new UnreachableError(`run ${runId} has ended by its events but not by its state`);
}

function detach({ print }: Session, runId: string, leaving: Leaving): number {
  print.remark(leaving === 'interrupt' ? 'The run continues.' : 'Stopped watching; the run continues.');
  print.remark(`  watch again  capstan show ${runId} --watch`);
  print.remark(`  cancel it    capstan cancel ${runId}`);
  return leaving === 'interrupt' ? exitCodes.interrupted : exitCodes.unknown;
}

async function showEnd(session: Session, runId: string): Promise<number> {
  const { print, json, shell } = session;
  const { value: run, text } = await readEndedRun(session, runId);
  if (json) print.json(text);
  else showRun(session, run, shell.stdout.isTTY === true);
  return exitCodeOf(run.state);
}

/** Returns the exit code: the run's outcome, or that it is unknown. */
export async function watchRun(session: Session, runId: string, timeoutMs?: number): Promise<number> {
  const { shell, json } = session;
  const stop = new AbortController();
  let leaving: Leaving | undefined;
  const leave = (reason: Leaving) => (): void => {
    leaving = reason;
    stop.abort();
  };
  const release = shell.onInterrupt(leave('interrupt'));
  const timer = timeoutMs === undefined ? undefined : setTimeout(leave('timeout'), timeoutMs);
  try {
    const show = shell.stdout.isTTY === true && !json ? showLiveTable : showLines;
    await show(session, runId, stop.signal);
    return leaving === undefined ? await showEnd(session, runId) : detach(session, runId, leaving);
  } finally {
    release();
    clearTimeout(timer);
  }
}
