/** The filters that choose many runs on the command line; they are those of `GET /v1/runs`. */

import { readDuration } from '@capstan/core/contracts/duration-text';
import { RunState } from '@capstan/core/contracts/run';
import { InvalidArgumentError } from 'commander';
import { oneOf, parsed } from '../command.ts';
import { UsageError } from '../errors.ts';

const momentExamples = 'a day such as 2026-01-31, or a moment such as 2026-01-31T08:00:00Z';

/** A day or a moment, as RFC 3339. */
function toMoment(text: string): string | undefined {
  const at = new Date(text);
  return /^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(at.getTime()) ? at.toISOString() : undefined;
}

export function readMoment(text: string): string {
  const at = toMoment(text);
  if (at !== undefined) return at;
  throw new InvalidArgumentError(`Write ${momentExamples}.`);
}

/** A moment, or a duration before now or from now on. */
function createTimeReader(words: string, direction: 1 | -1) {
  return (text: string): string => {
    const ms = readDuration(text);
    if (ms !== undefined) return new Date(Date.now() + direction * ms).toISOString();
    const at = toMoment(text);
    if (at !== undefined) return at;
    throw new InvalidArgumentError(`Write a duration such as 2h (${words}), ${momentExamples}.`);
  };
}

const readPast = createTimeReader('ago', -1);
export const readFuture = createTimeReader('from now', 1);

const supersededChoices = ['none', 'only', 'any'] as const;

export const runFilterOptions = {
  '-s, --state <state>': oneOf('only runs in this state', RunState.options),
  '-p, --pipeline <name>': 'only runs of this pipeline',
  '-l, --label <name=value>': 'only runs with this label',
  '--search <text>': 'only runs with this in their pipeline, labels or error, or at the begin of their id',
  '--since <time>': parsed('only runs created since then: 2h (ago), a day or a moment', readPast),
  '--until <time>': parsed('only runs created before then', readPast),
  '--superseded <which>': oneOf('runs that another run repeats: none, only those, or any', supersededChoices),
} as const;

/** Of commands that read runs; those that change runs choose none that another run started. */
export const readFilterOptions = {
  ...runFilterOptions,
  '--child-runs': 'runs that steps of other runs started, too',
} as const;

export interface ReadFilterGiven extends RunFilterGiven {
  readonly childRuns?: boolean | undefined;
}

export function toReadFilter({ childRuns = false, ...given }: ReadFilterGiven) {
  return { ...toRunFilter(given), parent: childRuns ? undefined : 'none' };
}

export interface RunFilterGiven {
  readonly state?: string | undefined;
  readonly pipeline?: string | undefined;
  readonly label?: string | undefined;
  readonly search?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly superseded?: string | undefined;
}

/** The query of a request. */
export function toRunFilter(given: RunFilterGiven) {
  const { state, pipeline, label, search: q, since, until, superseded } = given;
  return { state, pipeline, label, q, since, until, superseded };
}

/**
 * Whether a command means the runs that match its filters, instead of one run.
 * @throws UsageError for a run beside filters
 */
export function meansMany(given: RunFilterGiven & { readonly run?: string | undefined }): boolean {
  const { superseded: _all, ...filter } = toRunFilter(given);
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  if (isFiltered && given.run !== undefined) {
    throw new UsageError(`give a run or filters, not both: ${given.run} is one run`);
  }
  return isFiltered;
}
