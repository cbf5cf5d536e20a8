/**
 * The tokens of an answer, as providers count them. They differ: reasoning may be counted beside the answer or within it,
 * tokens of a cache beside the question or within it, and some servers write zeros. Where parts and total disagree the
 * larger counts, and zeros beside an answer are no count at all.
 */

import type { FailureReport } from '@capstan/core/contracts/capability';
import type { Json } from '@capstan/core/contracts/primitives';
import { isPlainObject } from '@capstan/core/json/values';
import { z } from 'zod';

const Count = z.number().int().min(0);

export const Usage = z.object({
  /** All tokens of the question, those of a cache included; null where the provider counts none. */
  input_tokens: Count.nullable(),
  /** All tokens of the answer, reasoning included. */
  output_tokens: Count.nullable(),
  cached_read_tokens: Count.optional(),
  cached_write_tokens: Count.optional(),
  reasoning_tokens: Count.optional(),
});
export type Usage = z.infer<typeof Usage>;

export const unknownUsage: Usage = { input_tokens: null, output_tokens: null };

/** Some servers write counts as texts. */
function countOf(value: Json | undefined): number | null {
  const count = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof count === 'number' && count >= 0 && Number.isFinite(count) ? Math.ceil(count) : null;
}

function fieldsOf(value: Json | undefined): Readonly<Record<string, Json>> {
  return isPlainObject(value) ? value : {};
}

function largest(...counts: readonly (number | null)[]): number | null {
  const known = counts.filter((count) => count !== null);
  return known.length === 0 ? null : Math.max(...known);
}

type UsagePart = 'cached_read_tokens' | 'cached_write_tokens' | 'reasoning_tokens';

function partsOf(parts: Readonly<Record<UsagePart, number | null>>): Pick<Usage, UsagePart> {
  return Object.fromEntries(Object.entries(parts).filter(([, count]) => (count ?? 0) > 0));
}

/** `usage` of chat completions and of embeddings. */
export function readOpenAiUsage(usage: Json | undefined): Usage {
  const { prompt_tokens, completion_tokens, total_tokens, ...more } = fieldsOf(usage);
  const [prompt, written, total] = [prompt_tokens, completion_tokens, total_tokens].map(countOf);
  const reasoning = countOf(fieldsOf(more.completion_tokens_details).reasoning_tokens);
  const cached = countOf(fieldsOf(more.prompt_tokens_details).cached_tokens);
  const known = written ?? null;
  const question = prompt ?? null;
  const rest = total == null || question === null ? null : total - question;
  // More thoughts than the whole answer has: they were counted beside it.
  const beside = (reasoning ?? 0) > (known ?? 0) ? (known ?? 0) + (reasoning ?? 0) : null;
  return {
    input_tokens: question,
    output_tokens: largest(known, rest, beside),
    ...partsOf({ cached_read_tokens: cached, cached_write_tokens: null, reasoning_tokens: reasoning }),
  };
}

/** `usage` of OpenAI's responses. */
export function readResponsesUsage(usage: Json | undefined): Usage {
  const fields = fieldsOf(usage);
  return readOpenAiUsage({
    prompt_tokens: fields.input_tokens ?? null,
    completion_tokens: fields.output_tokens ?? null,
    total_tokens: fields.total_tokens ?? null,
    prompt_tokens_details: fields.input_tokens_details ?? null,
    completion_tokens_details: fields.output_tokens_details ?? null,
  });
}

/** Of Anthropic's messages, whose tokens of a cache are counted beside the others. */
export function readAnthropicUsage(usage: Json | undefined): Usage {
  const fields = fieldsOf(usage);
  const question = countOf(fields.input_tokens);
  const cached_read_tokens = countOf(fields.cache_read_input_tokens);
  const cached_write_tokens = countOf(fields.cache_creation_input_tokens);
  const input = question === null ? null : question + (cached_read_tokens ?? 0) + (cached_write_tokens ?? 0);
  return {
    input_tokens: input,
    output_tokens: countOf(fields.output_tokens),
    ...partsOf({ cached_read_tokens, cached_write_tokens, reasoning_tokens: null }),
  };
}

/** One count of two reports of an answer: counts grow while an answer does. */
export function mergeUsage(before: Usage, after: Usage): Usage {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof Usage>;
  const counts = [...names].map((name) => [name, largest(before[name] ?? null, after[name] ?? null)]);
  return Object.fromEntries(counts) as Usage;
}

/** Zeros are no counts: every question has a token, and so has every answer that is not empty. */
export function withoutZeros(usage: Usage, isEmpty: boolean): Usage {
  const { input_tokens, output_tokens } = usage;
  return {
    ...usage,
    input_tokens: input_tokens === 0 ? null : input_tokens,
    output_tokens: output_tokens === 0 && !isEmpty ? null : output_tokens,
  };
}

/** The sum of several answers; null if the count of one answer is unknown. */
export function sumUsage(all: readonly Usage[]): Usage {
  const names = new Set(all.flatMap((usage) => Object.keys(usage) as (keyof Usage)[]));
  const isTotal = (name: keyof Usage) => name === 'input_tokens' || name === 'output_tokens';
  const sums = [...names].map((name) => {
    const counts = all.map((usage) => usage[name] ?? (isTotal(name) ? null : 0));
    return [
      name,
      counts.reduce<number | null>((sum, count) => (sum === null || count === null ? null : sum + count), 0),
    ];
  });
  return Object.fromEntries(sums) as Usage;
}

/** As an error answer reports it. */
export function toReport({ input_tokens, output_tokens }: Usage): NonNullable<FailureReport['usage']> {
  return {
    ...(input_tokens === null ? {} : { input_tokens }),
    ...(output_tokens === null ? {} : { output_tokens }),
  };
}
