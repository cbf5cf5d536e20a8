/**
 * Executes the units of a batch: the ready ones in parallel, and each following one as soon as its dependencies have
 * answered, so that its claim goes out with their ends. A batch is short: after a quarter of a second it returns its
 * results so far, and open units continue without it, until an execution from the queue takes them over or the process
 * stops.
 */

import type { CallSuccess } from '@capstan/core/call/types';
import type { StepScope } from '@capstan/core/expression/evaluation';
import type { StepEnd } from '@capstan/core/workflow-payloads';
import type { WorkerCtx } from '../../context.ts';
import { toAnswer } from '../../parts/definitions/step-results.ts';
import { type ClosedRun, closeRun, type RunClosing } from '../runs/closing.ts';
import type { UnitInBatch } from './call.ts';
import { executeStep } from './execution.ts';

export interface InlineUnit {
  readonly step_id: string;
  /** Absent or 0 = the step as a whole. */
  readonly item?: number;
  readonly escalates?: boolean;
  readonly total_timeout_ms: number;
  /** Indexes of earlier units of the batch that must have succeeded. */
  readonly after?: readonly number[];
}

export interface InlineRequest {
  readonly run_id: string;
  readonly budget_version?: number;
  readonly units: readonly InlineUnit[];
  /** The run succeeds when all of the units do, and is closed with them. */
  readonly closes?: true;
}

/** B7. left: not begun. again: an execution from the queue gets the unit's end. */
export type InlineResult = Extract<StepEnd, { kind: 'succeeded' | 'waiting' }> | 'left' | 'again';

export interface InlineBatchResult {
  /** The result of each unit, in their order. */
  readonly results: readonly InlineResult[];
  /** The end of the run; null: it is not closed. */
  readonly closed: ClosedRun | null;
}

/** B4: units that run in parallel. */
const mostOpen = 32;
/** How a batch is executed; tests supply steps that end on demand. */
interface InlineOptions {
  readonly execute: typeof executeStep;
  readonly close: (ctx: WorkerCtx, closing: RunClosing) => Promise<ClosedRun>;
  readonly longestMs: number;
}

export const inWorker: InlineOptions = { execute: executeStep, close: closeRun, longestMs: 250 };

/** It never rejects. */
export async function executeInline(
  ctx: WorkerCtx,
  request: InlineRequest,
  options: InlineOptions = inWorker,
): Promise<InlineBatchResult> {
  const results = await new InlineBatch(ctx, request, options).finish();
  const isDone =
    request.closes === true &&
    results.every((result) => typeof result !== 'string' && result.kind === 'succeeded');
  const closing = { run_id: request.run_id, outcome: 'succeeded', error: null } as const;
  // B12: if closing fails here, the workflow of the run retries until it is closed.
  return { results, closed: isDone ? await options.close(ctx, closing).catch(() => null) : null };
}

/** The progress of a unit. */
interface UnitProgress {
  state: 'left' | 'open' | 'answered' | 'succeeded' | 'failed';
  /** Its answer, while it is being stored. */
  answer: StepScope | null;
  /** Whether it succeeds. */
  success: Promise<boolean>;
  result: InlineResult;
}

function notBegun(): UnitProgress {
  return { state: 'left', answer: null, success: Promise.resolve(false), result: 'left' };
}

const unfinishedStates: ReadonlySet<UnitProgress['state']> = new Set(['answered', 'succeeded']);

class InlineBatch {
  readonly #ctx: WorkerCtx;
  readonly #request: InlineRequest;
  readonly #options: InlineOptions;
  readonly #units: UnitProgress[];
  /** Not begun, in order. */
  readonly #waiting: Set<number>;
  #open = 0;
  #isOver = false;
  #finish: () => void = () => undefined;

  constructor(ctx: WorkerCtx, request: InlineRequest, options: InlineOptions) {
    this.#ctx = ctx;
    this.#request = request;
    this.#options = options;
    this.#units = request.units.map(notBegun);
    this.#waiting = new Set(request.units.keys());
  }

  async finish(): Promise<readonly InlineResult[]> {
    const ended = new Promise<void>((resolve) => {
      this.#finish = resolve;
    });
    const timer = setTimeout(this.#finish, this.#options.longestMs);
    this.#beginMore();
    await ended;
    this.#isOver = true;
    clearTimeout(timer);
    return this.#units.map(({ result }) => result);
  }

  #unit(index: number): UnitProgress {
    return this.#units[index] as UnitProgress;
  }

  #leaveToQueue(): void {
    for (const index of this.#waiting) this.#unit(index).result = 'again';
    this.#waiting.clear();
  }

  #beginMore(): void {
    if (this.#ctx.inFlightSteps.isRetiring()) this.#leaveToQueue();
    for (const index of this.#waiting) {
      if (this.#isOver || this.#open === mostOpen) break;
      if (this.#isDue(index)) this.#begin(index);
    }
    if (this.#open === 0) this.#finish();
  }

  #isDue(index: number): boolean {
    const { after = [] } = this.#request.units[index] as InlineUnit;
    return after.map((before) => this.#unit(before).state).every((state) => unfinishedStates.has(state));
  }

  #begin(index: number): void {
    const { units, ...run } = this.#request;
    const { step_id, item = 0, escalates = false, total_timeout_ms, after = [] } = units[index] as InlineUnit;
    const unit = this.#unit(index);
    this.#waiting.delete(index);
    this.#open += 1;
    const key = { run_id: run.run_id, step_id, item, revision: 0 };
    const end = this.#ctx.inFlightSteps.begin(key, (own) =>
      this.#options.execute(
        this.#ctx,
        { escalates, ...key, ...run },
        {
          round: 1,
          remainingMs: total_timeout_ms,
          batch: { ...this.#whatItFollows(after), onAnswered: (end) => this.#noteAnswer(unit, end) },
          ...own,
        },
      ),
    );
    const success = end.then(
      (ended) => this.#noteEnd(unit, ended),
      () => this.#noteEnd(unit, null),
    );
    Object.assign(unit, { state: 'open', result: 'again', success });
  }

  /** The answers that are being stored and that a unit may use. */
  #whatItFollows(after: readonly number[]): Pick<UnitInBatch, 'answers' | 'stored'> {
    const answers = new Map<string, StepScope>();
    for (const index of after) {
      const { answer } = this.#unit(index);
      if (answer !== null) answers.set((this.#request.units[index] as InlineUnit).step_id, answer);
    }
    if (answers.size === 0) return { answers, stored: null };
    const successes = Promise.all(after.map((index) => this.#unit(index).success));
    return { answers, stored: successes.then((all) => all.every(Boolean)) };
  }

  #noteAnswer(unit: UnitProgress, { output, attempt }: CallSuccess): void {
    if (attempt === null || attempt.number > 1) return; // the rows hold the cost of earlier attempts
    unit.answer = toAnswer(output, attempt.cost_usd);
    unit.state = 'answered';
    this.#beginMore();
  }

  #noteEnd(unit: UnitProgress, end: StepEnd | null): boolean {
    const hasSucceeded = end?.kind === 'succeeded';
    unit.state = hasSucceeded ? 'succeeded' : 'failed';
    unit.answer = null;
    if (hasSucceeded || end?.kind === 'waiting') unit.result = end;
    this.#open -= 1;
    this.#beginMore();
    return hasSucceeded;
  }
}
