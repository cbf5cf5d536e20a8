/**
 * The live table of a run. Events only wake it up; what it draws is the run as the API shows it, so the
 * table cannot drift from the truth. Fetches at most every quarter second, and slower when they are slow. What a run
 * below costs and waits for is no event of this run: while a step waits for one, it is fetched every second.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type Run, terminalRunStates } from '../../contracts/run.ts';
import type { Session } from '../client/session.ts';
import { UnreachableError } from '../errors.ts';
import { getRun } from '../input/run-reference.ts';
import { createProgressBoard, type ProgressBoard } from './call-progress.ts';
import { followEvents } from './follow-events.ts';
import { createLiveBlock } from './live-block.ts';
import { renderRunHead, renderSteps } from './run-table.ts';

const frameMs = 250;
const belowMs = 1_000;

interface View {
  run: Run;
  /** By a clock that is never set. */
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

/** Answers how long the fetch took. A fetch without contact keeps the old picture. */
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

/** Returns when the run has ended or `signal` is aborted. */
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
