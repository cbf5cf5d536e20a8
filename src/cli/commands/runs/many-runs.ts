/** Many runs at once: `count`, `export` and `raise`; what `cancel` and `rerun` do to the runs that filters choose. */
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { RunList, type RunState, terminalRunStates } from '@capstan/core/contracts/run';
import { RunActs, RunCount } from '@capstan/core/contracts/run-control';
import { type ApiAnswer, download, jsonBody, withQuery } from '../../client/api-client.ts';
import type { Session } from '../../client/session.ts';
import { command, parsed, procedure, required } from '../../command.ts';
import { exitCodes, UnreachableError, UsageError } from '../../errors.ts';
import { readCeiling } from '../../input/arguments.ts';
import {
  meansMany,
  type ReadFilterGiven,
  type RunFilterGiven,
  readFilterOptions,
  runFilterOptions,
  toReadFilter,
  toRunFilter,
} from '../../input/run-filter.ts';
import { formatState } from '../../render/formats.ts';
import type { Columns } from '../../render/print.ts';

const countTable: Columns<readonly [RunState, number]> = [
  ['STATE', ([state], { style }) => formatState(state, style)],
  ['RUNS', ([, runs]) => String(runs), 'right'],
];

function statesOf({ by_state }: RunCount): [RunState, number][] {
  return Object.entries(by_state) as [RunState, number][];
}

function showCount(counted: RunCount, { print }: Session): void {
  print.table(countTable, statesOf(counted));
  print.remark(counted.count === 1 ? '1 run' : `${counted.count} runs`);
}

function countRuns(session: Session, given: ReadFilterGiven): Promise<ApiAnswer<RunCount>> {
  const { q, ...filter } = toReadFilter(given);
  return q === undefined
    ? session.client.get('/v1/runs/count', RunCount, filter)
    : countFound(session, { q, ...filter });
}

/** The API finds the runs of a search page by page. */
async function countFound({ client }: Session, filter: object): Promise<ApiAnswer<RunCount>> {
  const by_state: RunCount['by_state'] = {};
  let count = 0;
  let cursor: string | undefined;
  do {
    const { value } = await client.get('/v1/runs', RunList, { ...filter, limit: 200, cursor });
    count += value.items.length;
    for (const { state } of value.items) by_state[state] = (by_state[state] ?? 0) + 1;
    cursor = value.next_cursor ?? undefined;
  } while (cursor !== undefined);
  const value = { count, by_state };
  return { value, text: JSON.stringify(value) };
}

export const registerCountCommand = command('count', {
  about: 'count runs by state',
  example: 'capstan count --label batch=7',
  options: readFilterOptions,
  call: countRuns,
  show: showCount,
});

export const registerExportCommand = procedure('export', {
  about: 'print runs with their jobs, steps and outputs, newest first, a run of JSON a line',
  example: 'capstan export --label batch=7 --output runs.jsonl',
  options: { ...readFilterOptions, '-o, --output <file>': 'write them to this file' },
  run: async ({ client, shell }, { output, ...given }) => {
    const query = toReadFilter(given);
    if (output === undefined) return download(client, '/v1/runs/export', { query, to: shell.stdout });
    const file = createWriteStream(output);
    await download(client, '/v1/runs/export', { query, to: file });
    file.end();
    await finished(file);
  },
});

/** Runs of one request: a rerun may take some 50 ms. */
const pageSize = 100;

interface ManyRequest {
  readonly act: keyof typeof done;
  readonly given: RunFilterGiven;
  readonly body: object;
  readonly idempotencyKey?: string | undefined;
  /** Only count the runs. */
  readonly isPreview?: boolean | undefined;
}

const done = { cancel: 'cancelled', rerun: 'started again', raise: 'raised' } as const;

/** Cancels, repeats or raises all runs that match. Prints a line for each, and the error of each refused one. */
export async function changeMany(session: Session, request: ManyRequest): Promise<void> {
  const { client, print, json, shell } = session;
  const { act, given, body, idempotencyKey, isPreview = false } = request;
  if (isPreview) {
    const chosen = act === 'cancel' ? given : { superseded: 'none', ...given };
    const { value, text } = await countRuns(session, chosen);
    return json ? print.json(text) : showCount(value, session);
  }
  let [all, refused] = [0, 0];
  let cursor: string | null = null;
  do {
    const query = { limit: pageSize, ...toRunFilter(given), cursor: cursor ?? undefined };
    const to = withQuery(`/v1/runs/bulk/${act}`, query);
    const answer: ApiAnswer<RunActs> = await client.post(to, RunActs, jsonBody(body, idempotencyKey));
    all += answer.value.items.length;
    refused += answer.value.items.filter(({ error }) => error !== undefined).length;
    if (json) print.json(answer.text);
    else showActs(answer.value, session);
    cursor = answer.value.next_cursor;
  } while (cursor !== null);
  // The answer under a key is the same each time.
  const when = idempotencyKey === undefined ? '' : ' with this key, now or before';
  print.remark(`${all - refused} of ${all} runs were ${done[act]}${when}`);
  if (refused > 0) shell.exitWith(exitCodes.failed);
}

function showActs({ items }: RunActs, { print }: Session): void {
  for (const { run_id, new_run_id, error } of items) {
    if (error === undefined) print.line(new_run_id === undefined ? run_id : `${run_id} → ${new_run_id}`);
    else print.remark(`${run_id}: ${error.code}: ${error.detail}`);
  }
}

export const registerRaiseCommand = procedure('raise', {
  about: 'raise the budget of all runs that filters choose; those that failed for it continue as new runs',
  example: 'capstan raise --label batch=7 --state running --budget 2.50',
  options: {
    ...runFilterOptions,
    '--budget <usd>': required(parsed('US dollars for each whole run, or none', readCeiling)),
    '--idempotency-key <key>': 'the same key continues each failed run once',
    '--preview': 'only count the runs that filters choose',
  },
  run: async (session, { budget, idempotencyKey, preview: isPreview, ...given }) => {
    if (!meansMany(given))
      throw new UsageError('choose runs by a filter such as --label; one: capstan budget');
    const body = { budget_ceiling_usd: budget };
    return changeMany(session, { act: 'raise', given, body, idempotencyKey, isPreview });
  },
});

const pollMs = 1_000;

/**
 * Watches the runs with a label until all have ended. Ctrl-C ends only the watching.
 * @returns the exit code: that of a single run if all ended alike, failed if one failed
 */
export async function watchMany(session: Session, label: string): Promise<number> {
  const { print, shell } = session;
  const stop = new AbortController();
  const release = shell.onInterrupt(() => stop.abort());
  let said = '';
  try {
    while (!stop.signal.aborted) {
      const counted = await countRuns(session, { label }).catch(keepTrying);
      const line = counted === null ? 'contact lost, trying again' : describeStates(counted.value);
      if (line !== said) print.remark(line);
      said = line;
      if (counted !== null && hasEnded(counted.value)) return exitCodeOfAll(counted.value);
      await delay(pollMs, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  } finally {
    release();
  }
  print.remark(`The runs continue; count them: capstan count --label ${label}`);
  return exitCodes.interrupted;
}

function keepTrying(thrown: unknown): null {
  if (thrown instanceof UnreachableError) return null;
  throw thrown;
}

function describeStates(counted: RunCount): string {
  const states = statesOf(counted).map(([state, runs]) => `${runs} ${state}`);
  return `${counted.count} runs: ${states.join(', ')}`;
}

function hasEnded(counted: RunCount): boolean {
  return statesOf(counted).every(([state]) => terminalRunStates.has(state));
}

function exitCodeOfAll({ by_state }: RunCount): number {
  if (by_state.failed !== undefined) return exitCodes.failed;
  return by_state.cancelled === undefined ? exitCodes.ok : exitCodes.cancelled;
}
