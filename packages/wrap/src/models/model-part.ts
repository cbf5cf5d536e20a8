/** The parts of the YAML file that models have in common. */

import { durationWithin, JsonObject } from '@capstan/core/contracts/primitives';
import { z } from 'zod';
import { FixedHeaders, Secret, ServiceAddress } from '../wrap-kind.ts';
import { ChatPrices, type PricedPart } from './money/file-prices.ts';

/** Of every endpoint. */
export const providerFields = {
  base_url: ServiceAddress,
  token: Secret.optional(),
  /** Sent with each request, in place of those of the protocol. */
  headers: FixedHeaders.default({}),
  model: z.string().min(1),
  /** Further fields of each request; null removes a field. */
  settings: JsonObject.default({}),
} as const;

const Tokens = z.number().int().min(1).max(1_000_000);

export const chatFields = {
  ...providerFields,
  prices: ChatPrices.optional(),
  max_output_tokens: Tokens.default(4_096),
  image_tokens: Tokens.default(4_096),
  idle_timeout: durationWithin('1ms', '24h').default('2m'),
} as const;

const EffortName = z.string().regex(/^[\w-]{1,32}$/, { error: 'an effort is a word, such as low' });

/** The efforts that a model knows. */
export const Efforts = z.array(EffortName).min(1);

/** Anthropic refuses fewer. */
export const leastBudget = 1_024;

/** The tokens that a model may think, by the effort. */
export const Budgets = z
  .record(EffortName, z.number().int().min(leastBudget).max(1_000_000))
  .refine((budgets) => Object.keys(budgets).length > 0, { error: 'an effort is needed, such as low' });

export interface ProviderPart {
  readonly base_url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly model: string;
  readonly settings: JsonObject;
  readonly idle_timeout?: string;
}

export interface ChatModelPart extends ProviderPart, PricedPart {
  readonly max_output_tokens: number;
  readonly image_tokens: number;
  readonly structured_output: 'json_schema' | 'json_object' | 'prompt';
  readonly reasoning_effort?: z.infer<typeof Efforts> | z.infer<typeof Budgets> | undefined;
}

/** From the shortest thought to the longest. */
const order = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** The nearest effort that a model knows, of two the lower one; undefined: the word has no place in the order. */
export function chooseEffort(
  asked: string,
  { reasoning_effort: known = [] }: ChatModelPart,
): string | undefined {
  const names = Array.isArray(known) ? known : Object.keys(known);
  if (names.includes(asked)) return asked;
  const at = order.indexOf(asked);
  if (at < 0) return undefined;
  const ordered = order.filter((name) => names.includes(name));
  const distance = (name: string): number => Math.abs(order.indexOf(name) - at);
  return ordered.toSorted((one, other) => distance(one) - distance(other))[0];
}
