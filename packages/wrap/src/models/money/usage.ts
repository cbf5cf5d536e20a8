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
const part = Count.optional();

export const Usage = z.object({
  /** All tokens of the question, those of a cache included; null where the provider counts none. */
  input_tokens: Count.nullable(),
  /** All tokens of the answer, reasoning included. */
  output_tokens: Count.nullable(),
  cached_read_tokens: part,
  cached_write_tokens: part,
  /** Those of `cached_write_tokens` that are kept for an hour. */
  cached_write_1h_tokens: part,
  input_image_tokens: part,
  input_audio_tokens: part,
  reasoning_tokens: part,
  output_image_tokens: part,
  output_audio_tokens: part,
});
export type Usage = z.infer<typeof Usage>;

export const unknownUsage: Usage = { input_tokens: null, output_tokens: null };

type UsagePart = Exclude<keyof Usage, 'input_tokens' | 'output_tokens'>;
type CountFields = Readonly<Record<string, Json>>;

/** Some servers write counts as texts. */
function countOf(value: Json | undefined): number | null {
  const count = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof count === 'number' && count >= 0 && Number.isFinite(count) ? Math.ceil(count) : null;
}

function fieldsOf(value: Json | undefined): CountFields {
  return isPlainObject(value) ? value : {};
}

function largest(...counts: readonly (number | null)[]): number | null {
  const known = counts.filter((count) => count !== null);
  return known.length === 0 ? null : Math.max(...known);
}

/** Where reports differ, the least that is more than nothing: tokens of a cache are cheaper than others. */
function leastOf(...values: readonly (Json | undefined)[]): number {
  const counts = values.map(countOf).filter((count) => count !== null && count > 0) as number[];
  return counts.length === 0 ? 0 : Math.min(...counts);
}

function mostOf(...values: readonly (Json | undefined)[]): number {
  return largest(...values.map(countOf)) ?? 0;
}

function sumOf(...values: readonly (Json | undefined)[]): number | null {
  const counts = values.map(countOf);
  return counts.every((count) => count === null)
    ? null
    : counts.reduce<number>((sum, count) => sum + (count ?? 0), 0);
}

function withoutNone(
  parts: Readonly<Partial<Record<UsagePart, number>>>,
): Partial<Record<UsagePart, number>> {
  return Object.fromEntries(Object.entries(parts).filter(([, count]) => count > 0));
}

/** What a provider reports of a question or of an answer. */
interface CountedSide {
  readonly total: number | null;
  readonly details: CountFields;
}

/** The larger of a total and of the kinds of content, which do not overlap. */
function totalOf({ total, details }: CountedSide): number | null {
  return largest(total, sumOf(details.text_tokens, details.audio_tokens, details.image_tokens));
}

/** Tokens of a cache, under the names that OpenAI and those who speak its protocol have for them. */
function readCache(
  usage: CountFields,
  details: CountFields,
): { readonly read: number; readonly write: number } {
  return {
    read: leastOf(
      details.cached_tokens,
      usage.prompt_cache_hit_tokens,
      usage.cached_tokens,
      usage.cache_read_input_tokens,
    ),
    write: mostOf(
      details.cache_write_tokens,
      details.cache_creation_tokens,
      usage.cache_creation_input_tokens,
    ),
  };
}

interface OpenAiSides {
  readonly usage: CountFields;
  readonly input: CountedSide;
  readonly output: CountedSide;
  readonly all: number | null;
}

function readSides({ usage, input, output, all }: OpenAiSides): Usage {
  const { read, write } = readCache(usage, input.details);
  const cached = read + write;
  const asked = totalOf(input);
  const written = totalOf(output);
  const gap = all === null || asked === null || written === null ? 0 : all - asked - written;
  // More of a cache than the whole question has, or as much as the total lacks: it was counted beside it.
  const isBeside = cached > (asked ?? 0) || (cached > 0 && gap === cached);
  const question = isBeside ? (asked ?? 0) + cached : asked;
  const rest = all === null || question === null ? null : all - question;
  const reasoning = mostOf(output.details.reasoning_tokens);
  // More thoughts than the whole answer has: the same.
  const beside = reasoning > (written ?? 0) ? (written ?? 0) + reasoning : null;
  return {
    input_tokens: question,
    output_tokens: largest(written, rest, beside),
    ...withoutNone({
      cached_read_tokens: read,
      cached_write_tokens: write,
      input_image_tokens: mostOf(input.details.image_tokens),
      input_audio_tokens: mostOf(input.details.audio_tokens),
      reasoning_tokens: reasoning,
      output_image_tokens: mostOf(output.details.image_tokens),
      output_audio_tokens: mostOf(output.details.audio_tokens),
    }),
  };
}

/** `usage` of chat completions and of embeddings. */
export function readOpenAiUsage(value: Json | undefined): Usage {
  const usage = fieldsOf(value);
  const { prompt_tokens, prompt_cache_hit_tokens, prompt_cache_miss_tokens } = usage;
  const asked = largest(countOf(prompt_tokens), sumOf(prompt_cache_hit_tokens, prompt_cache_miss_tokens));
  return readSides({
    usage,
    input: { total: asked, details: fieldsOf(usage.prompt_tokens_details) },
    output: { total: countOf(usage.completion_tokens), details: fieldsOf(usage.completion_tokens_details) },
    all: countOf(usage.total_tokens),
  });
}

/** `usage` of OpenAI's responses. */
export function readResponsesUsage(value: Json | undefined): Usage {
  const usage = fieldsOf(value);
  return readSides({
    usage,
    input: { total: countOf(usage.input_tokens), details: fieldsOf(usage.input_tokens_details) },
    output: { total: countOf(usage.output_tokens), details: fieldsOf(usage.output_tokens_details) },
    all: countOf(usage.total_tokens),
  });
}

/** Of Anthropic's messages, whose tokens of a cache are counted beside the others. */
export function readAnthropicUsage(value: Json | undefined): Usage {
  const usage = fieldsOf(value);
  const asked = countOf(usage.input_tokens);
  const kept = fieldsOf(usage.cache_creation);
  const hour = mostOf(kept.ephemeral_1h_input_tokens);
  const write = Math.max(
    mostOf(usage.cache_creation_input_tokens),
    hour + mostOf(kept.ephemeral_5m_input_tokens),
  );
  const read = mostOf(usage.cache_read_input_tokens);
  const reasoning = mostOf(fieldsOf(usage.output_tokens_details).thinking_tokens);
  const written = countOf(usage.output_tokens);
  return {
    input_tokens: asked === null ? null : asked + read + write,
    output_tokens: reasoning > (written ?? 0) ? (written ?? 0) + reasoning : written,
    ...withoutNone({
      cached_read_tokens: read,
      cached_write_tokens: write,
      cached_write_1h_tokens: hour,
      reasoning_tokens: reasoning,
    }),
  };
}

type Merge = (before: number | null, after: number | null) => number | null;

function merge(before: Usage, after: Usage, one: Merge): Usage {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof Usage>;
  const counts = [...names].map((name) => [name, one(before[name] ?? null, after[name] ?? null)]);
  return Object.fromEntries(counts) as Usage;
}

/** Of two reports of parts of an answer: counts grow while an answer does. */
export function mergeUsage(before: Usage, after: Usage): Usage {
  return merge(before, after, largest);
}

/** Of two reports of one answer the last counts, as far as it counts anything. */
export function laterUsage(before: Usage, after: Usage): Usage {
  return (after.input_tokens ?? 0) + (after.output_tokens ?? 0) === 0 ? before : after;
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
export function toReport(usage: Usage): NonNullable<FailureReport['usage']> {
  return Object.fromEntries(Object.entries(usage).filter(([, count]) => count !== null));
}
