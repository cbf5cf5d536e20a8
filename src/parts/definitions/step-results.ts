/**
 * Results of finished steps. Small ones stay in memory where they were made, so that a chain of steps on one worker
 * reads nothing back; the others are read from the database, all mentioned ones by one query. The output of a step with
 * items is the list of their outputs, put together when it is read and cached only when the step has ended. withAnswers
 * overlays results that are being stored.
 */

import type { Failure, Json } from '@capstan/core/contracts/primitives';
import type { StepState } from '@capstan/core/contracts/run-step';
import type { StepScope } from '@capstan/core/expression/evaluation';
import {
  keepFields,
  type ListNeeds,
  largestOutput,
  largestScan,
  type StepMention,
} from '@capstan/core/expression/large-outputs';
import { writeJson } from '@capstan/core/json/text';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import { LRUCache } from 'lru-cache';
import type { Db } from '../../db/connect.ts';
import {
  findOutput,
  listItemOutputs,
  listItemResults,
  listOutputBytes,
  listStepResults,
  readItemOutputs,
  type StepResultRow,
  sumItemBytes,
} from '../../db/step/step.ts';

interface MentionedSteps {
  /** The root `steps` of expressions, with the requested steps. */
  readonly steps: Readonly<Record<string, StepScope>>;
  /** Why a requested output is missing: all items together are too large. */
  readonly failure: Failure | null;
}

interface StepAnswer {
  readonly output: Json;
  readonly costUsd: number;
}

export interface StepResults {
  scopeOf(runId: string, mentions: readonly StepMention[]): Promise<MentionedSteps>;
  /** The output of an item; undefined if it has none. */
  outputOf(runId: string, stepId: string, item: number): Promise<Json | undefined>;
  remember(runId: string, stepId: string, answer: StepAnswer): void;
  /** Sizes of the outputs of some steps, including those of their items, as JSON text in bytes. */
  sizesOf(runId: string, stepIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
}

const cacheBytes = 64 * 1_048_576;
/** For the open runs. */
const mostKept = 10_000;
const largestKept = 262_144;
/** Bytes of one such reading. */
const scanPage = 4 * 1_048_576;

const succeeded: ReadonlySet<StepState> = new Set(['succeeded', 'reused']);
const failed: ReadonlySet<StepState> = new Set(['failed', 'unknown', 'skipped', 'cancelled']);

function toScope(row: StepResultRow): StepScope {
  return {
    status: row.state,
    cost_usd: fromNanoUsd(BigInt(row.cost_nano)),
    ...(succeeded.has(row.state) && row.items === null ? { output: row.output } : {}),
    ...(row.error === null ? {} : { error: row.error }),
  };
}

function tooLarge(stepId: string, bytes: number): Failure {
  return {
    code: 'output_too_large',
    message: `the outputs of all items of step ${stepId} take ${bytes} bytes; at most ${largestOutput} are allowed. Read only their length (steps.${stepId}.output | length), single items ([0]) or fields of them ([*].name), or let each return a media:// reference`,
  };
}

/** The result of a step with items. */
interface ListResult {
  readonly row: StepResultRow;
  readonly output: Json[];
  /** Bytes of the output as JSON text. */
  readonly bytes: number;
  readonly needs: ListNeeds;
}

interface ListResults {
  readonly lists: readonly ListResult[];
  readonly failure: Failure | null;
}

/** A step with items, and what is read of it. */
interface ListRow {
  readonly row: StepResultRow;
  readonly needs: ListNeeds;
}

/** Combines the outputs of items. An item without one has null: it failed and was tolerated, or was skipped. */
async function readLists(db: Db, runId: string, rows: readonly ListRow[]): Promise<ListResults> {
  if (rows.length === 0) return { lists: [], failure: null };
  const stored = await listOutputBytes(
    db,
    runId,
    rows.map(({ row }) => row.step_id),
  );
  const lists = rows.map(({ row, needs }): ListResult => {
    const items = row.items ?? 0;
    const bytes = stored.get(row.step_id) ?? 0;
    return { row, output: Array<Json>(items).fill(null), bytes, needs };
  });
  const small = lists.filter(({ bytes }) => bytes <= largestOutput);
  for (const list of lists) {
    const failure = list.bytes <= largestOutput ? null : await readPart(db, runId, list);
    if (failure !== null) return { lists: [], failure };
  }
  const outputs = new Map(small.map(({ row, output }) => [row.step_id, output]));
  const items = small.length === 0 ? [] : await listItemResults(db, runId, [...outputs.keys()]);
  for (const { step_id, item, output } of items) {
    const list = outputs.get(step_id);
    if (list !== undefined && item <= list.length) list[item - 1] = output;
  }
  return { lists, failure: null };
}

/** O2: fills in the needed parts of a list that is too large as a whole. @returns why they are too large as well */
async function readPart(
  db: Db,
  run_id: string,
  { row, output, bytes, needs }: ListResult,
): Promise<Failure | null> {
  const { step_id } = row;
  if (needs.isWhole || (needs.fields.length > 0 && bytes > largestScan)) return tooLarge(step_id, bytes);
  const items = [...needs.items].map((item) => (item === 'last' ? output.length : item));
  let read = await sumItemBytes(db, { run_id, step_id, items });
  if (read > largestOutput) return tooLarge(step_id, read);
  if (needs.fields.length > 0) {
    const kept = await readFields(db, { run_id, step_id, output, fields: needs.fields });
    if (kept + read > largestOutput) return tooLarge(step_id, kept + read);
    read += kept;
  }
  const wanted = await readItemOutputs(db, { run_id, step_id, items }, largestOutput);
  for (const [item, value] of wanted) if (item <= output.length) output[item - 1] = value;
  return null;
}

interface FieldReading extends Pick<ListResult, 'output'> {
  readonly run_id: string;
  readonly step_id: string;
  readonly fields: ListNeeds['fields'];
}

/** Reads all items, some at a time, and keeps only fields of them. @returns their size, or more than is allowed */
async function readFields(db: Db, { run_id, step_id, output, fields }: FieldReading): Promise<number> {
  let kept = 0;
  for (let after = 0; after < output.length && kept <= largestOutput; ) {
    const page = { run_id, step_id, after, limit: output.length - after, bytes: scanPage };
    const rows = (await listItemOutputs(db, page)).filter(({ is_on_page }) => is_on_page);
    for (const { item, output: value } of rows) {
      const part = keepFields(value, fields);
      kept += writeJson(part).length;
      if (item <= output.length) output[item - 1] = part;
      after = item;
    }
    if (rows.length === 0) break;
  }
  return kept;
}

/** Reads results from the database into `steps`. @returns the steps with items, which cost the most to read */
async function readInto(
  steps: Record<string, StepScope>,
  db: Db,
  { runId, mentions }: { readonly runId: string; readonly mentions: readonly StepMention[] },
): Promise<ListResults> {
  const ids = mentions.map(({ step_id }) => step_id);
  const rows = await listStepResults(db, runId, ids);
  for (const row of rows) steps[row.step_id] = toScope(row);
  const read = new Map(
    mentions.flatMap((one) => (one.reads_output ? [[one.step_id, one.needs] as const] : [])),
  );
  const withItems = rows.flatMap((row): ListRow[] => {
    const needs = read.get(row.step_id);
    return needs === undefined || row.items === null || failed.has(row.state) ? [] : [{ row, needs }];
  });
  const answer = await readLists(db, runId, withItems);
  for (const { row, output } of answer.lists) steps[row.step_id] = { ...toScope(row), output };
  return answer;
}

interface KeptResults {
  get(runId: string, stepId: string): { readonly value: StepScope; readonly size: number } | undefined;
  /** @param bytes of the output as JSON text; a large one is not kept */
  keep(runId: string, stepId: string, result: { readonly value: StepScope; readonly bytes: number }): void;
}

function createKeptResults(): KeptResults {
  const kept = new LRUCache<string, { value: StepScope; size: number }>({
    max: mostKept, // small outputs take more memory than they count
    maxSize: cacheBytes,
    sizeCalculation: ({ size }) => size,
  });
  return {
    get: (runId, stepId) => kept.get(`${runId}/${stepId}`),
    keep: (runId, stepId, { value, bytes }) => {
      const size = bytes + 100;
      if (size <= largestKept) kept.set(`${runId}/${stepId}`, { value, size });
    },
  };
}

export function createStepResults(db: Db): StepResults {
  const kept = createKeptResults();
  return {
    scopeOf: async (runId, mentions) => {
      const steps: Record<string, StepScope> = {};
      const missing: StepMention[] = [];
      for (const mention of mentions) {
        const known = kept.get(runId, mention.step_id);
        if (known === undefined) missing.push(mention);
        else steps[mention.step_id] = known.value;
      }
      if (missing.length === 0) return { steps, failure: null };
      const { lists, failure } = await readInto(steps, db, { runId, mentions: missing });
      for (const { row, output, bytes } of lists) {
        const value = { ...toScope(row), output };
        if (succeeded.has(row.state)) kept.keep(runId, row.step_id, { value, bytes });
      }
      return { steps, failure };
    },
    outputOf: async (run_id, step_id, item) => (await findOutput(db, { run_id, step_id, item }))[0],
    sizesOf: async (runId, stepIds) => {
      const known = stepIds.flatMap((stepId) => {
        const size = kept.get(runId, stepId)?.size;
        return size === undefined ? [] : [[stepId, size] as const];
      });
      const sizes = new Map(known);
      const missing = stepIds.filter((stepId) => !sizes.has(stepId));
      const stored = missing.length === 0 ? [] : await listOutputBytes(db, runId, missing);
      for (const [stepId, size] of stored) sizes.set(stepId, size);
      return sizes;
    },
    remember: (runId, stepId, { output, costUsd }) => {
      const bytes = Buffer.byteLength(JSON.stringify(output));
      kept.keep(runId, stepId, { value: toAnswer(output, costUsd), bytes });
    },
  };
}

/** Step results that are being stored, by step id. */
export type UncommittedResults = ReadonlyMap<string, StepScope>;

export function toAnswer(output: Json, costUsd: number): StepScope {
  return { status: 'succeeded', cost_usd: costUsd, output };
}

/** Overlays the results with answers that are being stored. */
export function withAnswers(results: StepResults, answers: UncommittedResults): StepResults {
  return {
    ...results,
    scopeOf: async (runId, mentions) => {
      const stored = mentions.filter(({ step_id }) => !answers.has(step_id));
      const { steps, failure } =
        stored.length === 0 ? { steps: {}, failure: null } : await results.scopeOf(runId, stored);
      const ahead = mentions.flatMap(({ step_id }) => {
        const answer = answers.get(step_id);
        return answer === undefined ? [] : [[step_id, answer] as const];
      });
      return { steps: { ...steps, ...Object.fromEntries(ahead) }, failure };
    },
  };
}
