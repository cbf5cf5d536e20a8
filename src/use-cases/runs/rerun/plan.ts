/**
 * The parts of a repeated run that a rerun keeps, and those that it does again: steps, items, and child runs that
 * continue. The preview, the start, and a step that continues a child run all decide here, from rows that no longer
 * change, so they agree. Values that `when`, items and inputs read are those of kept results, thus of the old run.
 */
import { createHash } from 'node:crypto';
import { parseMediaReference } from '@capstan/core/contracts/media';
import type { Repeat } from '@capstan/core/contracts/pipeline';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import {
  type CompiledDefinition,
  type CompiledStep,
  compileDefinition,
} from '@capstan/core/definition/compile';
import { evaluateCondition } from '@capstan/core/expression/condition';
import { findListedStep, mentionsOf } from '@capstan/core/expression/large-outputs';
import { references } from '@capstan/core/expression/template';
import { canonicalJson } from '@capstan/core/json/values';
import { findMediaJobs, type MediaMention } from '@capstan/core/media';
import {
  chooseReused,
  type ExecutedStep,
  inOrder,
  type Repetition,
  type ReuseChoice,
} from '@capstan/core/run/choose-reused';
import { type ItemPair, isKeptItem, pairItems, placeListed } from '@capstan/core/run/kept-items';
import { splitReference } from '@capstan/core/run/step-rules';
import type { Ctx } from '../../../context.ts';
import {
  countFailedItems,
  type FormerStepRow,
  type FormerUnitRow,
  listFormerSteps,
  listFormerUnits,
  listMentionedMedia,
  type RepeatedRun,
  readRepeatedRun,
} from '../../../db/run/rerun.ts';
import { countReruns } from '../../../db/run/run.ts';
import type { KnownDefinition } from '../../../parts/definitions/known-definitions.ts';
import { bindJobMedia } from '../../../parts/media/own-media.ts';
import {
  evaluateInRun,
  meetsCondition,
  type RunValues,
  readItems,
  resolveInput,
} from '../../run-data/evaluation.ts';
import { type IntakeCtx, newJob, type RunJob } from '../preparation.ts';

export type RerunPlanCtx = IntakeCtx & Pick<Ctx, 'results' | 'media'>;

export interface RerunTerms {
  /** The definition of the new run. */
  readonly known: KnownDefinition;
  readonly job: RunJob;
  readonly from: readonly string[] | null;
  readonly onlyFailed: boolean;
  /** Versions of child runs that are kept, by reference; others are looked up. */
  readonly versions: Readonly<Record<string, string>>;
}

/** A step that happens again, with the part of its former work that it keeps. */
export interface RepeatedWork extends ExecutedStep {
  readonly step: CompiledStep;
  /** By its `when`; null: that is known only when it is due. */
  readonly isWanted: boolean | null;
  /** Number of its items; null: it has none, or they are known only when it runs. */
  readonly total: number | null;
  readonly kept: readonly ItemPair[];
  /** Child runs that continue; item 0 = the step as a whole. */
  readonly continued: readonly { readonly item: number; readonly earlier_run_id: string }[];
}

export interface RerunPlan
  extends Omit<RerunTerms, 'from' | 'onlyFailed'>,
    Pick<ReuseChoice, 'reused' | 'skipped'> {
  readonly before: RepeatedRun;
  readonly compiled: CompiledDefinition;
  readonly executed: readonly RepeatedWork[];
  /** The values of the new run, as far as they are known. */
  readonly values: RunValues;
  /** Jobs whose files the kept results name. */
  readonly reusedJobs: ReadonlyMap<string, MediaMention>;
}

/** One of the two runs: its definition, and values for its expressions. */
interface RunSide {
  readonly compiled: CompiledDefinition;
  readonly values: RunValues;
}

interface TwoRuns {
  readonly former: RunSide;
  readonly next: RunSide;
  readonly steps: ReadonlyMap<string, FormerStepRow>;
}

/** Files that results name and that are gone, by step and item. */
type MissingFiles = ReadonlyMap<string, ReadonlyMap<number, string>>;

export async function planRerun(
  ctx: RerunPlanCtx,
  before: RepeatedRun,
  terms: RerunTerms,
): Promise<RerunPlan> {
  const { known, job, versions } = terms;
  const runs = await readBoth(ctx, before, terms);
  const repetition = await describeRepetition(ctx, runs, { before, terms });
  const first = chooseReused({ ...repetition, missing: new Map() });
  const { missing, mentioned } = await findMissing(ctx, before, first);
  const firstMissing = [...missing].map(([id, items]) => [id, [...items.values()][0] ?? ''] as const);
  const choice = missing.size === 0 ? first : chooseReused({ ...repetition, missing: new Map(firstMissing) });
  const units = await readUnits(ctx, before, choice);
  const executed = await planWorks(runs, choice, { units, missing });
  const kept = new Set(choice.reused);
  for (const work of executed) for (const { former } of work.kept) kept.add(nameOf(work.id, former));
  const references = mentioned.filter(
    ({ step_id, item }) => kept.has(step_id) || kept.has(nameOf(step_id, item)),
  );
  return {
    before,
    compiled: runs.next.compiled,
    known,
    job,
    versions,
    reused: choice.reused,
    skipped: choice.skipped,
    executed,
    values: runs.next.values,
    reusedJobs: findMediaJobs(references.map(({ reference }) => reference)),
  };
}

function nameOf(stepId: string, item: number): string {
  return `${stepId}/${item}`;
}

/** Both runs have the id and attempt of the old one: that these differ is no reason to do anything again. */
async function readBoth(
  ctx: RerunPlanCtx,
  before: RepeatedRun,
  { known, job }: RerunTerms,
): Promise<TwoRuns> {
  const { run_id: id, pipeline } = before;
  const attempt = 1 + (await countReruns(ctx.db, id));
  const sideOf = (
    definition: RepeatedRun['definition'],
    { job_id, body }: Pick<RunJob, 'job_id' | 'body'>,
  ): RunSide => {
    const run = { id, job_id, attempt, pipeline, version: definition.version };
    const context = { run_id: id, scope: { job: body, run }, lists: createLists() };
    return { compiled: compileDefinition(definition), values: { context, results: ctx.results } };
  };
  const rows = await listFormerSteps(ctx.db, id);
  return {
    former: sideOf(before.definition, { job_id: before.job_id, body: before.job }),
    next: sideOf(known.definition, job),
    steps: new Map(rows.map((row) => [row.step_id, row])),
  };
}

/** The lists of `for_each`, each evaluated once. */
function createLists(): RunValues['context']['lists'] {
  const lists = new Map<string, ReturnType<RunValues['context']['lists']['of']>>();
  return {
    of: (name, make) => {
      const list = lists.get(name) ?? make();
      lists.set(name, list);
      return list;
    },
  };
}

async function describeRepetition(
  { db }: RerunPlanCtx,
  { next, steps }: TwoRuns,
  { before, terms }: { readonly before: RepeatedRun; readonly terms: RerunTerms },
): Promise<Omit<Repetition, 'missing'>> {
  const { known, job, from, onlyFailed } = terms;
  return {
    compiled: next.compiled,
    before: before.definition,
    roots: { job: job.body, run: { job_id: job.job_id, version: known.definition.version } },
    rootsBefore: { job: before.job, run: { job_id: before.job_id, version: before.definition.version } },
    from,
    onlyFailed,
    states: new Map([...steps].map(([id, { state }]) => [id, state])),
    failedItems: await countFailedItems(db, before.run_id),
    left: await findLeft(next, steps),
  };
}

/** Steps that were skipped, and whose `when` is false. */
async function findLeft(
  { compiled, values }: RunSide,
  former: TwoRuns['steps'],
): Promise<ReadonlySet<string>> {
  const left = new Set<string>();
  for (const step of compiled.steps) {
    const { id } = step.definition;
    if (former.get(id)?.state === 'skipped' && (await isLeft(values, step))) left.add(id);
  }
  return left;
}

async function isLeft(values: RunValues, { when }: CompiledStep): Promise<boolean> {
  if (when === null) return false;
  const happens = await evaluateInRun(values, when, evaluateCondition);
  return 'value' in happens && !happens.value;
}

const looksAtOnce = 32;

/** Files are looked for only where everything else allows to keep a result. */
async function findMissing(
  { db, media, ownMedia }: RerunPlanCtx,
  { project_id, run_id }: RepeatedRun,
  { reused, executed }: ReuseChoice,
) {
  const parts = executed.flatMap(({ id, keeps }) => (keeps === 'none' ? [] : [id]));
  const stepIds = [...reused, ...parts];
  const mentioned = stepIds.length === 0 ? [] : await listMentionedMedia(db, run_id, stepIds);
  const missing = new Map<string, Map<number, string>>();
  const look = async ({ step_id, item, reference }: (typeof mentioned)[number]): Promise<void> => {
    const path = parseMediaReference(reference);
    if (path === null) return;
    // For a file that is not the project's, its absence is not revealed either.
    const isForeign = (await ownMedia.findForeign(project_id, reference)) !== null;
    if (!isForeign && (await media.exists(path))) return;
    const items = missing.get(step_id) ?? new Map<number, string>();
    missing.set(step_id, items.set(item, reference));
  };
  for (let at = 0; at < mentioned.length; at += looksAtOnce) {
    await Promise.all(mentioned.slice(at, at + looksAtOnce).map(look));
  }
  return { missing, mentioned };
}

type FormerUnits = ReadonlyMap<string, readonly FormerUnitRow[]>;

/** The units of steps that keep a part of their work. */
async function readUnits(
  { db }: RerunPlanCtx,
  { run_id }: RepeatedRun,
  { executed }: ReuseChoice,
): Promise<FormerUnits> {
  const ids = executed.flatMap(({ id, keeps }) => (keeps === 'none' ? [] : [id]));
  const units = new Map<string, FormerUnitRow[]>(ids.map((id) => [id, []]));
  if (ids.length === 0) return units;
  for (const unit of await listFormerUnits(db, run_id, ids)) units.get(unit.step_id)?.push(unit);
  return units;
}

interface FormerWork {
  readonly units: FormerUnits;
  readonly missing: MissingFiles;
}

/** Plans each step after those before it, whose items may be its own. */
async function planWorks(
  runs: TwoRuns,
  { executed }: ReuseChoice,
  work: FormerWork,
): Promise<readonly RepeatedWork[]> {
  const { compiled } = runs.next;
  const choices = new Map(executed.map((choice) => [choice.id, choice]));
  const planned = new Map<string, RepeatedWork>();
  for (const index of inOrder(compiled)) {
    const choice = choices.get(compiled.steps[index]?.definition.id ?? '');
    if (choice !== undefined) planned.set(choice.id, await planWork(runs, choice, { ...work, planned }));
  }
  return executed.flatMap(({ id }) => planned.get(id) ?? []);
}

interface WorkBefore extends FormerWork {
  /** The steps before it that happen again. */
  readonly planned: ReadonlyMap<string, RepeatedWork>;
}

async function planWork(runs: TwoRuns, executed: ExecutedStep, work: WorkBefore): Promise<RepeatedWork> {
  const { next } = runs;
  const { id, keeps } = executed;
  const step = next.compiled.steps[next.compiled.indexOf.get(id) ?? -1] as CompiledStep;
  const isWanted = keeps === 'none' && step.when !== null ? null : await foreseeWhen(next, step, work);
  const nothing: RepeatedWork = { ...executed, step, isWanted, total: null, kept: [], continued: [] };
  if (keeps === 'none' || isWanted === false) return nothing;
  const gone = work.missing.get(id);
  const rows = (work.units.get(id) ?? []).map((row) =>
    gone?.has(row.item) === true ? { ...row, state: 'failed' as const } : row,
  );
  if (step.definition.repeat !== undefined) {
    return { ...nothing, ...(await keepRounds(runs, step, { keeps, rows, repeat: step.definition.repeat })) };
  }
  if (step.items === null) return { ...nothing, continued: listContinued(step, rows, undefined) };
  const items = rows.filter(({ item }) => item > 0);
  if (keeps === 'listed') return { ...nothing, ...keepListed(step, items, work) };
  const total = await countItems(runs, step, keeps);
  if (keeps === 'all') return { ...nothing, total, ...keepSame(step, items) };
  return total === null ? nothing : { ...nothing, total, ...(await keepEqual(runs, step, { items, total })) };
}

/** @returns whether its condition holds; null if that is unknown so far */
async function foreseeWhen(
  { values }: RunSide,
  step: CompiledStep,
  { planned }: Pick<WorkBefore, 'planned'>,
): Promise<boolean | null> {
  if (step.when === null) return true;
  const isOpen = mentionsOf(step.when).some(({ step_id }) => planned.has(step_id));
  return isOpen ? null : !(await isLeft(values, step));
}

/** @returns null if that is unknown so far */
async function countItems({ next, steps }: TwoRuns, step: CompiledStep, keeps: ExecutedStep['keeps']) {
  const known = steps.get(step.definition.id)?.items ?? null;
  if (keeps === 'all' && known !== null) return known;
  const list = await readItems(next.values, step);
  return 'value' in list && list.value !== null ? list.value.length : null;
}

type Pairs = Pick<RepeatedWork, 'kept' | 'continued'>;

function keepSame(step: CompiledStep, rows: readonly FormerUnitRow[]): Pairs {
  return keepPlaced(step, rows, new Map(rows.map(({ item }) => [item, item])));
}

/** Keeps the items whose element is kept of the step whose output is their list. */
function keepListed(
  step: CompiledStep,
  rows: readonly FormerUnitRow[],
  { planned }: Pick<WorkBefore, 'planned'>,
): Pairs & Pick<RepeatedWork, 'total'> {
  const listed = planned.get(step.items === null ? '' : (findListedStep(step.items) ?? ''));
  if (listed === undefined) return { total: null, kept: [], continued: [] };
  const countsItems = references(step.input).some(({ root }) => root === 'index');
  return { total: listed.total, ...keepPlaced(step, rows, placeListed(listed.kept, countsItems)) };
}

/** @param placeOf the new item of a former one; none: it has no work to keep */
function keepPlaced(
  step: CompiledStep,
  rows: readonly FormerUnitRow[],
  placeOf: ReadonlyMap<number, number>,
): Pairs {
  const kept = rows.filter(isKeptItem).flatMap(({ item: former }) => {
    const item = placeOf.get(former);
    return item === undefined ? [] : [{ item, former }];
  });
  const others = rows.filter((row) => !isKeptItem(row));
  return { kept, continued: listContinued(step, others, placeOf) };
}

/** @param placeOf the new item of a former one; undefined: the same */
function listContinued(
  { kind }: CompiledStep,
  rows: readonly FormerUnitRow[],
  placeOf: ReadonlyMap<number, number> | undefined,
): RepeatedWork['continued'] {
  if (kind !== 'run') return [];
  return rows.flatMap(({ item: former, sub_run_id: earlier_run_id }) => {
    const item = placeOf === undefined ? former : placeOf.get(former);
    return earlier_run_id === null || item === undefined ? [] : [{ item, earlier_run_id }];
  });
}

/** Keeps the items with an equal input; a result is kept only if the step still calls the same. */
async function keepEqual(
  { former, next }: TwoRuns,
  step: CompiledStep,
  { items, total }: { readonly items: readonly FormerUnitRow[]; readonly total: number },
): Promise<Pairs> {
  const before = former.compiled.steps[former.compiled.indexOf.get(step.definition.id) ?? -1];
  if (before === undefined || before.items === null) return { kept: [], continued: [] };
  const rows: (FormerUnitRow & { input: string })[] = [];
  for (const row of items) {
    const input = await textOfInput(former.values, before, row.item);
    if (input !== undefined) rows.push({ ...row, input });
  }
  const inputs: (string | undefined)[] = [];
  for (let item = 1; item <= total; item++) inputs.push(await textOfInput(next.values, step, item));
  const pairs = pairItems(rows, inputs);
  const placeOf = new Map(
    pairs.flatMap((one, index) => (one === undefined ? [] : [[one, index + 1] as const])),
  );
  const callsSame = targetOf(before) === targetOf(step);
  return callsSame
    ? keepPlaced(step, rows, placeOf)
    : { kept: [], continued: listContinued(step, rows, placeOf) };
}

interface FormerRounds {
  readonly keeps: ExecutedStep['keeps'];
  readonly rows: readonly FormerUnitRow[];
  readonly repeat: Repeat;
}

/**
 * Keeps the first rounds, as long as each has a result and an equal input, up to the one that meets the condition. None
 * is kept of rounds that are exhausted already: then the step would fail again at once.
 */
async function keepRounds(
  { former, next }: TwoRuns,
  step: CompiledStep,
  { keeps, rows, repeat }: FormerRounds,
): Promise<Pairs> {
  const before = former.compiled.steps[former.compiled.indexOf.get(step.definition.id) ?? -1];
  if (before === undefined || before.until === null || targetOf(before) !== targetOf(step)) return noPairs;
  const byRound = new Map(rows.map((row) => [row.item, row]));
  const kept: ItemPair[] = [];
  for (let item = 1; item <= repeat.max; item++) {
    const row = byRound.get(item);
    const input = keeps === 'all' ? '' : await textOfInput(next.values, step, item);
    const isSame = keeps === 'all' || input === (await textOfInput(former.values, before, item));
    if (row === undefined || input === undefined || !isSame) return { kept, continued: [] };
    const [output] = await listOutputs(next.values, step, row);
    if (output === undefined) {
      return { kept, continued: listContinued(step, [row], undefined) };
    }
    kept.push({ item, former: item });
    const holds = await meetsCondition(next.values, step, { item, output });
    if ('value' in holds && holds.value) return { kept, continued: [] };
  }
  return noPairs;
}

const noPairs: Pairs = { kept: [], continued: [] };

/** The output of a round that has one to keep, in a list. */
async function listOutputs(
  { context, results }: RunValues,
  { definition }: CompiledStep,
  { item, state }: FormerUnitRow,
): Promise<readonly Json[]> {
  if (!isKeptItem({ state })) return [];
  const output = await results.outputOf(context.run_id, definition.id, item);
  return output === undefined ? [] : [output];
}

/** @returns equal texts for equal inputs; undefined: it cannot be evaluated */
async function textOfInput(values: RunValues, step: CompiledStep, item: number): Promise<string | undefined> {
  const resolved = await resolveInput(values, step, item);
  if ('error' in resolved) return undefined;
  return createHash('sha256').update(canonicalJson(resolved.input)).digest('base64');
}

/** What an item's input is sent to. */
function targetOf({ definition, kind }: CompiledStep): string {
  const { capability = null, capability_version = null, tags = [], pipeline = null } = definition;
  const { wait = null, review = null } = definition;
  return canonicalJson({ kind, capability, capability_version, tags, pipeline, wait, review } as Json);
}

export interface ContinuedOrder {
  readonly project_id: string;
  readonly earlier_run_id: string;
  /** `name@version` or `name@alias` */
  readonly reference: string;
  /** The job that the step gives. */
  readonly input: JsonObject;
  readonly versions: RerunTerms['versions'];
}

/**
 * The rerun of a child run: its results are kept, and what failed happens again.
 * @returns null if there is nothing to continue: the run was deleted, or the step names another pipeline now
 */
export async function planContinued(
  ctx: RerunPlanCtx,
  { project_id, earlier_run_id, reference, input, versions }: ContinuedOrder,
): Promise<RerunPlan | null> {
  const before = await readRepeatedRun(ctx.db, { project_id, run_id: earlier_run_id });
  const [pipeline, name] = splitReference(reference);
  if (before?.pipeline !== pipeline) return null;
  const version = versions[reference];
  const choice = version === undefined ? { reference: name } : { version };
  const known = await ctx.definitions.find(project_id, pipeline, choice);
  const { job_id, job: body } = before;
  const isSame = canonicalJson(bindJobMedia(input, job_id)) === canonicalJson(body);
  const job: RunJob = isSame ? { job_id, body, isNew: false } : newJob(input);
  return planRerun(ctx, before, { known, job, from: null, onlyFailed: true, versions });
}
