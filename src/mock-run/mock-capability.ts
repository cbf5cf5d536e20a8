/** What a mocked capability does with a call: the first reply that matches and is not used up. */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { parseDuration } from '../core/duration.ts';
import { evaluateCondition, readCondition } from '../core/expression/condition.ts';
import type { Dialect } from '../core/expression/dialect.ts';
import { ExpressionError, type ExpressionSyntaxError } from '../core/expression/errors.ts';
import { evaluateTemplate } from '../core/expression/evaluate.ts';
import { filterNames } from '../core/expression/filters.ts';
import { type CompiledTemplate, readTemplate } from '../core/expression/template.ts';
import { MockFault, showBriefly } from './mock-fault.ts';
import type { MockCapability, MockReply } from './mocks.ts';

export interface MockCall {
  readonly input: JsonObject;
  readonly step_id: string;
  /** Position of the instance, from 1. */
  readonly instance: number;
}

export type MockAnswer = { readonly delayMs: number } & (
  | { readonly kind: 'output'; readonly output: Json }
  | { readonly kind: 'error'; readonly status: number; readonly message: string }
  | { readonly kind: 'garbage' | 'lost' | 'refused' }
);

/** @throws MockFault when no reply matches */
export type AnswerCall = (call: MockCall) => MockAnswer;

interface CompiledReply {
  readonly reply: MockReply;
  readonly when: CompiledTemplate | null;
  readonly output: CompiledTemplate | null;
  left: number;
}

const inputDialect: Dialect = {
  roots: ['input'],
  filterNames,
  rootHint: 'a field of the input is written input.<field>',
};

/** @param pointer of the replies in their document */
export function compileReplies(
  replies: readonly MockReply[],
  pointer = '',
): { readonly compiled: CompiledReply[]; readonly errors: readonly ExpressionSyntaxError[] } {
  const errors: ExpressionSyntaxError[] = [];
  const compiled = replies.map((reply, index): CompiledReply => {
    const at = `${pointer}/${index}`;
    const when = reply.when === undefined ? null : readCondition(reply.when, `${at}/when`, inputDialect);
    const output =
      reply.output === undefined ? null : readTemplate(reply.output, `${at}/output`, inputDialect);
    errors.push(...(when?.errors ?? []), ...(output?.errors ?? []));
    return {
      reply,
      when: when?.condition ?? null,
      output: output?.template ?? null,
      left: reply.times ?? Number.POSITIVE_INFINITY,
    };
  });
  return { compiled, errors };
}

export function createMockCapability(name: string, { replies }: MockCapability): AnswerCall {
  const { compiled, errors } = compileReplies(replies ?? [{}]);
  if (errors[0] !== undefined) throw errors[0];
  return (call) => {
    const chosen = compiled.find((one) => one.left > 0 && isFor(one, call));
    if (chosen === undefined) {
      const seen = `step ${call.step_id} with the input ${showBriefly(call.input)}`;
      throw new MockFault(`no reply of the mock ${name} matches the call of ${seen}`);
    }
    chosen.left -= 1;
    return answer(name, chosen, call);
  };
}

function isFor({ reply, when }: CompiledReply, call: MockCall): boolean {
  if (reply.step !== undefined && reply.step !== call.step_id) return false;
  if (reply.instance !== undefined && reply.instance !== call.instance) return false;
  return when === null || holds(when, call.input);
}

/** A condition about a value that this input does not have is not met. */
function holds(when: CompiledTemplate, input: JsonObject): boolean {
  try {
    return evaluateCondition(when, { input, match: {} });
  } catch (error) {
    if (error instanceof ExpressionError) return false;
    throw error;
  }
}

function answer(name: string, { reply, output }: CompiledReply, { input }: MockCall): MockAnswer {
  const delayMs = reply.delay === undefined ? 0 : parseDuration(reply.delay);
  if (reply.error !== undefined) return { kind: 'error', delayMs, ...reply.error };
  for (const kind of ['garbage', 'lost', 'refused'] as const)
    if (reply[kind] === true) return { kind, delayMs };
  if (output === null) return { kind: 'output', delayMs, output: input };
  try {
    return { kind: 'output', delayMs, output: evaluateTemplate(output, { input, match: {} }) };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    throw new MockFault(`the output of the mock ${name} cannot be made: ${error.message}`);
  }
}
