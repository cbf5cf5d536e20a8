/**
 * Results of finished steps. Small ones stay in memory where they were made, so that a chain of steps on one worker
 * reads nothing back; the others are read from the database, all mentioned ones by one query. The output of a step with
 * items is the list of their outputs, put together when it is read and cached only when the step has ended. withAnswers
 * overlays results that are being stored.
 */
import { LRUCache } from 'lru-cache';
import type { Failure, Json } from '../../contracts/primitives.ts';
import type { StepState } from '../../contracts/run-step.ts';
import type { StepScope } from '../../core/expression/evaluation.ts';
import { type CompiledTemplate, references } from '../../core/expression/template.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import type { Db } from '../../db/connect.ts';
import { listItemResults, listOutputBytes, listStepResults, type StepResultRow } from '../../db/step/step.ts';

/** A step that expressions mention. */
interface StepMention {
  readonly step_id: string;
  /** Not only its state, error or cost. */
  readonly reads_output: boolean;
}

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
  remember(runId: string, stepId: string, answer: StepAnswer): void;
  /** Total size of the outputs of some steps, including those of their items, as JSON text in bytes. */
  bytesOf(runId: string, stepIds: readonly string[]): Promise<number>;
}

const cacheBytes = 64 * 1_048_576;
/** For the open runs. */
const mostKept = 10_000;
const largestKept = 262_144;
/** The limit of the output of a run, and of all items of a step together, bytes. */
export const largestOutput = 16 * 1_048_576;

/** Lists each step once. */
export function mentionsOf(template: CompiledTemplate): StepMention[] {
  const reads = new Map<string, boolean>();
  for (const { root, segments } of references(template)) {
    const [step, field] = segments;
    if (root !== 'steps' || typeof step !== 'string') continue;
    reads.set(step, reads.get(step) === true || field === undefined || field === 'output');
  }
  return [...reads].map(([step_id, reads_output]) => ({ step_id, reads_output }));
}

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
    message: `the outputs of all items of step ${stepId} take ${bytes} bytes; at most ${largestOutput} are allowed`,
  };
}

/** The result of a step with items. */
interface ListResult {
  readonly row: StepResultRow;
  readonly output: Json[];
  /** Bytes of the output as JSON text. */
  readonly bytes: number;
}

interface ListResults {
  readonly lists: readonly ListResult[];
  readonly failure: Failure | null;
}

/** Combines the outputs of items. An item without one has null: it failed and was tolerated, or was skipped. */
async function readLists(db: Db, runId: string, rows: readonly StepResultRow[]): Promise<ListResults> {
  if (rows.length === 0) return { lists: [], failure: null };
  const ids = rows.map(({ step_id }) => step_id);
  const stored = await listOutputBytes(db, runId, ids);
  const lists = rows.map((row) => {
    const items = row.items ?? 0;
    const bytes = (stored.get(row.step_id) ?? 0) + 5 * items;
    return { row, output: Array<Json>(items).fill(null), bytes };
  });
  const large = lists.find(({ bytes }) => bytes > largestOutput);
  if (large !== undefined) return { lists: [], failure: tooLarge(large.row.step_id, large.bytes) };
  const outputs = new Map(lists.map(({ row, output }) => [row.step_id, output]));
  for (const { step_id, item, output } of await listItemResults(db, runId, ids)) {
    const list = outputs.get(step_id);
    if (list !== undefined && item <= list.length) list[item - 1] = output;
  }
  return { lists, failure: null };
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
  const read = new Set(mentions.flatMap(({ step_id, reads_output }) => (reads_output ? [step_id] : [])));
  const withItems = rows.filter(
    ({ step_id, items, state }) => items !== null && read.has(step_id) && !failed.has(state),
  );
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
    bytesOf: async (runId, stepIds) => {
      const sizes = stepIds.map((stepId) => kept.get(runId, stepId)?.size ?? null);
      const missing = stepIds.filter((_, index) => sizes[index] === null);
      const stored = missing.length === 0 ? [] : (await listOutputBytes(db, runId, missing)).values();
      return [...sizes, ...stored].reduce<number>((sum, size) => sum + (size ?? 0), 0);
    },
    remember: (runId, stepId, { output, costUsd }) => {
      const bytes = Buffer.byteLength(JSON.stringify(output));
      kept.keep(runId, stepId, { value: toAnswer(output, costUsd), bytes });
    },
  };
}

/** Step results that are being stored, by step id. */
export type AnswersAhead = ReadonlyMap<string, StepScope>;

export function toAnswer(output: Json, costUsd: number): StepScope {
  return { status: 'succeeded', cost_usd: costUsd, output };
}

/** Overlays the results with answers that are being stored. */
export function withAnswers(results: StepResults, answers: AnswersAhead): StepResults {
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
