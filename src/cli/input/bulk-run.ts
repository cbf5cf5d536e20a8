/** Many runs of one stored pipeline: a job per line, sent a thousand at a time. */
import { BulkAnswer } from '../../contracts/run-control.ts';
import { jsonBody } from '../client/api-client.ts';
import type { Session } from '../client/session.ts';
import { exitCodes, UsageError } from '../errors.ts';
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

interface Line {
  /** `jobs.jsonl, line 7` */
  readonly place: string;
  readonly job: unknown;
}

interface Lines {
  readonly jobs: readonly Line[];
  /** How many are no JSON; each was told. */
  readonly broken: number;
}

async function readJobs({ shell, print }: Session, path: string): Promise<Lines> {
  const { name, text } = await readSource(path, shell.stdin);
  const jobs: Line[] = [];
  let broken = 0;
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const place = `${name}, line ${index + 1}`;
    try {
      jobs.push({ place, job: JSON.parse(line) });
    } catch (fault) {
      print.remark(`${place}: ${fault instanceof Error ? fault.message : fault}`);
      broken++;
    }
  }
  if (jobs.length === 0) throw new UsageError(`${name} holds no job; write one JSON object per line`);
  return { jobs, broken };
}

/** Prints the id of each run that was taken, and why another was not. */
export async function runBulk(session: Session, given: BulkArguments): Promise<void> {
  const { client, print, json, shell } = session;
  if (await isFileArgument(given.target)) {
    throw new UsageError(`--bulk goes with the name of a stored pipeline; ${given.target} is a file`);
  }
  const { jobs, broken } = await readJobs(session, given.bulk);
  let refused = broken;
  for (let at = 0; at < jobs.length; at += atOnce) {
    const lines = jobs.slice(at, at + atOnce);
    const runs = lines.map(({ job }) => ({ pipeline: given.target, ...given.request, job }));
    const key = given.idempotencyKey === undefined ? undefined : `${given.idempotencyKey}.${at / atOnce}`;
    const { value, text } = await client.post('/v1/runs/bulk', BulkAnswer, jsonBody({ runs }, key));
    refused += value.items.filter(({ run_id }) => run_id === undefined).length;
    if (json) {
      print.json(text);
      continue;
    }
    for (const [index, { run_id, error }] of value.items.entries()) {
      if (run_id !== undefined) print.line(run_id);
      else print.remark(`${lines[index]?.place}: ${error?.code}: ${error?.detail}`);
    }
  }
  const all = jobs.length + broken;
  print.remark(`${all - refused} of ${all} runs were started`);
  if (refused > 0) shell.exitWith(exitCodes.failed);
}
