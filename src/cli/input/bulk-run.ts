/** Many runs of one stored pipeline: a job per line, sent a thousand at a time. */
import { BulkAnswer } from '../../contracts/run.ts';
import { jsonBody } from '../client/api-client.ts';
import type { Session } from '../client/session.ts';
import { UsageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { isFileArgument, readSource } from './source-file.ts';

export interface BulkArguments {
  /** Name of a stored pipeline. */
  readonly target: string;
  /** Path of the jobs, or `-`. */
  readonly bulk: string;
  readonly idempotencyKey?: string | undefined;
  /** The same for all runs. */
  readonly request: Readonly<Record<string, unknown>>;
}

const atOnce = 1_000;

function readLine(name: string, line: string, number: number): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new UsageError(`${name}, line ${number}: ${cause instanceof Error ? cause.message : ''}`, {
      cause,
    });
  }
}

async function readJobs(session: Session, path: string): Promise<unknown[]> {
  const { name, text } = await readSource(path, session.shell.stdin);
  const lines = text.split('\n').map((line, index) => ({ line: line.trim(), number: index + 1 }));
  const jobs = lines
    .filter(({ line }) => line !== '')
    .map(({ line, number }) => readLine(name, line, number));
  if (jobs.length === 0) throw new UsageError(`${name} holds no job; write one JSON object per line`);
  return jobs;
}

/** Prints the id of each run that was taken, and why another was not. */
export async function runBulk(session: Session, given: BulkArguments): Promise<void> {
  const { client, print, json, shell } = session;
  if (await isFileArgument(given.target)) {
    throw new UsageError(`--bulk goes with the name of a stored pipeline; ${given.target} is a file`);
  }
  const jobs = await readJobs(session, given.bulk);
  let refused = 0;
  for (let at = 0; at < jobs.length; at += atOnce) {
    const runs = jobs
      .slice(at, at + atOnce)
      .map((job) => ({ pipeline: given.target, ...given.request, job }));
    const key = given.idempotencyKey === undefined ? undefined : `${given.idempotencyKey}.${at / atOnce}`;
    const { value, text } = await client.post('/v1/runs/bulk', BulkAnswer, jsonBody({ runs }, key));
    refused += value.items.filter(({ run_id }) => run_id === undefined).length;
    if (json) {
      print.json(text);
      continue;
    }
    for (const [index, { run_id, error }] of value.items.entries()) {
      if (run_id !== undefined) print.line(run_id);
      else print.remark(`job ${at + index + 1}: ${error?.code}: ${error?.detail}`);
    }
  }
  print.remark(`${jobs.length - refused} of ${jobs.length} runs were started`);
  if (refused > 0) shell.exitWith(exitCodes.failed);
}
