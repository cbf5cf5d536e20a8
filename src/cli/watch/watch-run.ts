/**
 * Watches a run to its end: a live table on a terminal, a line per event elsewhere, nothing but the final
 * document with --json. Ctrl-C and the time limit only stop the watching; the run goes on.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type Run, terminalRunStates } from '../../contracts/run.ts';
import type { ApiAnswer } from '../client/api-client.ts';
import type { Session } from '../client/session.ts';
import { UnreachableError } from '../errors.ts';
import { exitCodeOf, exitCodes } from '../exit-codes.ts';
import { getRun } from '../input/run-reference.ts';
import { formatEvent } from './event-line.ts';
import { followEvents } from './follow-events.ts';
import { showLiveTable } from './live-table.ts';
import { showRun } from './show-run.ts';

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

/** The row of the run may trail its last event by a moment. @throws UnreachableError */
export async function readEndedRun({ client }: Session, runId: string): Promise<ApiAnswer<Run>> {
  for (let round = 0; round < 50; round += 1) {
    const answer = await getRun(client, runId);
    if (terminalRunStates.has(answer.value.state)) return answer;
    await delay(200);
  }
  throw new UnreachableError(`run ${runId} has ended by its events but not by its state`);
}

function detach({ print }: Session, runId: string, leaving: Leaving): number {
  print.remark(leaving === 'interrupt' ? 'The run goes on.' : 'Stopped watching; the run goes on.');
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

/** Answers the exit code: the run's outcome, or that it is not known. */
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
