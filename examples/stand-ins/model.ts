/**
 * Small deterministic models. They have the schemas of a model, count tokens, and report what a model of that price
 * would cost, but they ask no provider: rules of the example write their answers.
 */
import { type Capability, defineCapability } from '@capstan/capability';
import { z } from 'zod';

interface StandInModel {
  readonly name: string;
  readonly description: string;
  /** USD per million tokens. */
  readonly price: { readonly input: number; readonly output: number };
  /**
   * @param question the last message of the user
   * @param fields names of the properties of `response_schema`
   * @returns the answer, as JSON
   */
  readonly answer: (question: string, fields: readonly string[]) => unknown;
}

const mostOutputTokens = 1_000;
/**
 * A small number keeps the rate near the price of a call: while calls are open, a budget reserves the rate of each.
 */
const mostQuestionTokens = 2_000;
const charactersPerToken = 4;

/** About as many as a model counts in English. */
function countTokens(value: unknown): number {
  return Math.ceil(JSON.stringify(value).length / charactersPerToken);
}

const ModelInput = z.object({
  messages: z.array(z.object({ role: z.enum(['system', 'user']), content: z.string() })).min(1),
  response_schema: z.record(z.string(), z.unknown()),
  max_output_tokens: z.number().int().min(1).max(mostOutputTokens).optional(),
  temperature: z.number().min(0).max(2).optional(),
});

const ModelOutput = z.object({
  json: z.unknown(),
  model: z.string(),
  finish_reason: z.enum(['stop']),
  usage: z.object({ input_tokens: z.number().int(), output_tokens: z.number().int() }),
  cost_usd: z.number(),
});

export function defineStandInModel({ name, description, price, answer }: StandInModel): Capability {
  const [input, output] = [price.input / 1e6, price.output / 1e6];
  return defineCapability({
    name,
    version: '1.0.0',
    description,
    input: ModelInput,
    output: ModelOutput,
    cost_model: {
      type: 'per_call',
      rate_usd: mostQuestionTokens * input + mostOutputTokens * output,
      worst_case: `{{ ((input.messages | json | length) / 2) * ${input} + (input.max_output_tokens ?? ${mostOutputTokens}) * ${output} }}`,
    },
    settle: 'reported',
    deterministic: true,
    tags: ['local', 'stand-in'],
    max_concurrency: 8,
    exec: ({ messages, response_schema }) => {
      const question = messages.findLast(({ role }) => role === 'user')?.content ?? '';
      const json = answer(question, Object.keys(Object(response_schema.properties)));
      const usage = { input_tokens: countTokens(messages), output_tokens: countTokens(json) };
      const cost = usage.input_tokens * input + usage.output_tokens * output;
      const model = `stand-in for ${name}`;
      return { json, model, finish_reason: 'stop' as const, usage, cost_usd: Number(cost.toFixed(9)) };
    },
  });
}
