/**
 * One list of cases for both drivers of a run: the one in this process and the one on Temporal. A case shows what a key
 * of a definition does, with scripted capabilities, and the required result wherever it runs.
 */
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { Expectation, Mocks } from '@capstan/core/mock-run/mocks';

/** Both drivers honour it: durations are short, for one of them waits in earnest. */
export type Script = Pick<Mocks, 'capabilities' | 'reviews' | 'budget_reviews' | 'control' | 'events'> & {
  readonly pipelines?: readonly PipelineDefinition[];
};

/** The definition, or the job, is not taken. */
export interface Refusal {
  readonly refused: string;
  /** Into the definition; absent where the run is refused, whose definition is sound. */
  readonly pointer?: string;
}

export interface ConformanceCase {
  /** The rule. */
  readonly name: string;
  /** `<object>.<key>` of the definition contract, such as `step.when`. */
  readonly key: string;
  readonly path: 'happy' | 'unhappy';
  /** Complete but for `pipeline` and `version`; of a refused one, as its author wrote it. */
  readonly definition: JsonObject;
  readonly job?: JsonObject;
  readonly script?: Script;
  readonly expected: Expectation | Refusal;
}

type Part = Omit<ConformanceCase, 'name' | 'key' | 'path' | 'definition'>;

function make(path: ConformanceCase['path']) {
  return (key: string, name: string, definition: object, part: Part): ConformanceCase => ({
    name,
    key,
    path,
    definition: definition as JsonObject,
    ...part,
  });
}

export const happy = make('happy');
export const unhappy = make('unhappy');

/** Of the definition. */
export function refused(code: string, pointer: string): Part {
  return { expected: { refused: code, pointer } };
}

export function isRefusal(expected: ConformanceCase['expected']): expected is Refusal {
  return 'refused' in expected;
}

export function completeDefinition({ definition }: ConformanceCase): JsonObject {
  return {
    pipeline: 'conformance',
    version: '1',
    ...definition,
  };
}

/** Answers its input. */
export const echo = {};
/** Fails once, then answers its input. */
export const failsOnce = { replies: [{ times: 1, error: { status: 500, message: 'broken' } }, {}] };
export const fails = { replies: [{ error: { status: 500, message: 'broken' } }] };
export const rejects = { replies: [{ error: { status: 422, message: 'n is wrong' } }] };
/** Takes a number `n` and answers it. */
export const takesNumber = {
  input: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
};
/** Once, soon, without a wait that takes time in earnest. */
export const onceMore = { max: 1, initial: '10ms' };
export const succeeded = { outcome: 'succeeded' } as const;
