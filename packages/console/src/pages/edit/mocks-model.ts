/**
 * Mocks files made from a past run, with the result of a trial as the expectation. The usual reader reads them, so
 * `capstan run PIPELINE --mock mocks.yaml` accepts them unchanged.
 */

import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { Run } from '@capstan/core/contracts/run';
import type { RunStep } from '@capstan/core/contracts/run-step';
import type {
  Expectation,
  MockCapability,
  MockDecision,
  MockReply,
  Mocks,
} from '@capstan/core/mock-run/mocks';
import type { LocalResult } from '@capstan/core/mock-run/run-locally';
import { type Document, parseDocument, stringify } from 'yaml';
import type { LiveSpecs } from '../../worker/messages.ts';
import { mockOfSpec } from '../../worker/mock-of-spec.ts';

interface FormerOutputs {
  readonly run: Pick<Run, 'run_id' | 'steps'>;
  /** By step; for a step with `for_each` the list of its items' outputs. */
  readonly outputs: Readonly<Record<string, Json>>;
}

export interface FormerRun extends FormerOutputs {
  readonly job: JsonObject;
  /** The child runs, in the order in which they are requested. */
  readonly below: readonly FormerOutputs[];
}

/** Keeps an output literal, even if it looks like an expression. */
function literally(output: Json): Json {
  return /\{\{|"\$literal"/.test(JSON.stringify(output)) ? { $literal: output } : output;
}

function delayOf({ started_at, finished_at }: Pick<RunStep, 'started_at' | 'finished_at'>): {
  delay?: string;
} {
  if (started_at === null || finished_at === null) return {};
  return { delay: `${Math.max(0, Date.parse(finished_at) - Date.parse(started_at))}ms` };
}

const refusal = 422;

function fail(step: RunStep): MockReply {
  const message = step.error?.message ?? 'it failed in the run that this is made from';
  return { step: step.id, error: { status: refusal, message } };
}

/** One reply per item in their order, the last for all later ones. */
function replyItems(step: RunStep, outputs: readonly Json[]): MockReply[] {
  const replies = outputs.map(
    (output): MockReply => (output === null ? fail(step) : { step: step.id, output: literally(output) }),
  );
  return replies.map((reply, index) => (index === replies.length - 1 ? reply : { ...reply, times: 1 }));
}

function repliesOf(step: RunStep, output: Json | undefined): MockReply[] {
  if (step.state === 'failed' || step.state === 'unknown') return [fail(step)];
  if (output === undefined) return [];
  if (step.items !== undefined && Array.isArray(output)) return replyItems(step, output);
  return [{ step: step.id, ...delayOf(step), output: literally(output) }];
}

function decisionOf(step: RunStep, output: Json | undefined): MockDecision {
  const after = delayOf(step).delay ?? '0s';
  return output === undefined ? { after, action: 'reject' } : { after, action: 'output', output };
}

function mocksOfCapability(replies: readonly MockReply[], live: MockCapability | undefined): MockCapability {
  // Steps that the run did not reach get the same reply as without a run.
  const rest = live?.replies ?? [{}];
  return { ...live, replies: [...replies, ...rest] };
}

/** The replies by capability and step, one run after another. */
type RepliesByStep = Map<string, Map<string, MockReply[][]>>;

function gather(replies: RepliesByStep, step: RunStep, output: Json | undefined): void {
  if (step.capability === undefined) return;
  const bySteps = replies.get(step.capability) ?? new Map<string, MockReply[][]>();
  replies.set(step.capability, bySteps);
  const own = repliesOf(step, output);
  if (own.length > 0) bySteps.set(step.id, [...(bySteps.get(step.id) ?? []), own]);
}

/** A step that occurs in several runs answers once for each, and then as in the last one. */
function inTurn(runs: readonly (readonly MockReply[])[]): MockReply[] {
  return runs.flatMap((replies, index) =>
    index === runs.length - 1 ? replies : replies.map((reply) => ({ ...reply, times: 1 })),
  );
}

/**
 * Capabilities answer as in the run and its child runs; prices and schemas are today's. Replies name steps, not runs:
 * steps of one id that call one capability in several runs answer in turn.
 */
export function mocksOfRun(former: FormerRun, specs: LiveSpecs): Mocks {
  const replies: RepliesByStep = new Map();
  const reviews: Record<string, MockDecision[]> = {};
  for (const { run, outputs } of [former, ...former.below]) {
    for (const step of run.steps) {
      const output = outputs[step.id];
      gather(replies, step, output);
      const isDecided = step.review !== undefined && (output !== undefined || step.state === 'failed');
      if (isDecided) reviews[step.id] = [...(reviews[step.id] ?? []), decisionOf(step, output)];
    }
  }
  const capabilities = [...replies].map(([name, bySteps]) => {
    const spec = specs[name];
    const own = [...bySteps.values()].flatMap(inTurn);
    return [name, mocksOfCapability(own, spec === undefined ? undefined : mockOfSpec(spec))] as const;
  });
  const decided = Object.keys(reviews).length === 0 ? {} : { reviews };
  return { job: former.job, capabilities: Object.fromEntries(capabilities), ...decided };
}

const width = { lineWidth: 100 };

export function writeMocks(mocks: Mocks, runId: string): string {
  return `# What capabilities answered in ${runId}. Time is virtual.\n${stringify(mocks, width)}`;
}

function expectationOf({ outcome, error, output, steps, calls }: LocalResult): Expectation {
  const wholes = steps.filter(({ item }) => item === 0).map(({ id, state }) => [id, state] as const);
  const failure = error === null ? {} : { error: error.code };
  const made = Object.entries(calls).filter(([, count]) => count > 0);
  return {
    outcome,
    ...failure,
    output,
    steps: Object.fromEntries(wholes),
    calls: Object.fromEntries(made),
  };
}

export interface TriedMocks {
  readonly text: string;
  readonly definition: PipelineDefinition;
  readonly specs: LiveSpecs;
  /** The pipelines that it starts, as they are stored. */
  readonly pipelines: readonly PipelineDefinition[];
  readonly result: LocalResult;
}

/** Keeps the mocks' own statements about a pipeline. */
function savePipelines(document: Document, pipelines: readonly PipelineDefinition[]): void {
  const kept = (document.toJS() as Pick<Mocks, 'pipelines'>).pipelines ?? [];
  const isKept = ({ pipeline, version }: PipelineDefinition): boolean =>
    kept.some((one) => typeof one !== 'string' && one.pipeline === pipeline && one.version === version);
  const left = pipelines.filter((one) => !isKept(one));
  if (left.length > 0) document.setIn(['pipelines'], document.createNode([...left, ...kept]));
}

/** The mocks with their comments, plus the live capabilities that they omit, and the result. */
export function saveMocks({ text, definition, specs, pipelines, result }: TriedMocks): string {
  const document = parseDocument(text);
  if (document.contents === null) document.contents = document.createNode({}) as never;
  if (!document.hasIn(['capabilities'])) document.setIn(['capabilities'], document.createNode({}));
  const capabilities = document.get('capabilities') as { flow?: boolean } | null;
  for (const { capability } of [definition, ...pipelines].flatMap(({ steps }) => steps)) {
    const spec = capability === undefined ? undefined : specs[capability];
    if (spec === undefined || document.hasIn(['capabilities', capability])) continue;
    if (capabilities !== null) capabilities.flow = false;
    document.setIn(['capabilities', capability], document.createNode(mockOfSpec(spec)));
  }
  savePipelines(document, pipelines);
  document.setIn(['expect'], document.createNode(expectationOf(result)));
  return document.toString(width);
}
