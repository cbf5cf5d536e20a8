/** The kinds of wrapped capabilities, and the fields that the files of all kinds have. */

import { Registration, SharedWith, WarmUp } from '@capstan/core/contracts/capability';
import {
  Affinity,
  CapabilityName,
  durationWithin,
  Json,
  JsonObject,
  Tags,
  VersionText,
} from '@capstan/core/contracts/primitives';
import { z } from 'zod';
import { FilesPart, noFiles } from './call-files.ts';
import { anthropic } from './kinds/anthropic.ts';
import { comfyui } from './kinds/comfyui.ts';
import { command } from './kinds/command.ts';
import { cog, fal, replicate } from './kinds/hosted.ts';
import { http } from './kinds/http.ts';
import { openai } from './kinds/openai.ts';
import type { WrapKind } from './wrap-kind.ts';

/** The kinds by the name that `kind` has in the file; the part of the kind has the same name. */
export const kinds = {
  command,
  http,
  openai,
  anthropic,
  comfyui,
  replicate,
  fal,
  cog,
} as const satisfies Record<string, WrapKind>;

export type KindName = keyof typeof kinds;

export const kindNames = Object.keys(kinds) as [KindName, ...KindName[]];

/** One part of the cost of a call: `value / per × rate_usd`. */
const MeasuredPart = z.strictObject({
  value: z.union([z.string(), z.number()]),
  rate_usd: z.number().min(0),
  per: z.number().positive().default(1),
});

const CostPart = z
  .strictObject({
    type: z.enum(['per_second', 'per_call', 'free']),
    rate_usd: z.number().min(0).max(10_000).default(0),
    notes: z.string().max(2_000).optional(),
    measured: z.array(MeasuredPart).min(1).max(10).optional(),
  })
  .refine(({ type, rate_usd }) => (type === 'free') === (rate_usd === 0), {
    path: ['rate_usd'],
    error: 'is 0 for the type free, and more than 0 for the others',
  })
  .refine(({ type, measured }) => type !== 'free' || measured === undefined, {
    path: ['measured'],
    error: 'a free call is not measured; give it a type and a rate_usd, the most that a call may cost',
  });

export const common = {
  kind: z.enum(kindNames),
  name: CapabilityName,
  version: VersionText,
  description: z.string().min(1).max(10_000),
  tags: Tags.default([]),
  input: JsonObject.optional(),
  output: JsonObject.optional(),
  cost: CostPart.default({ type: 'free', rate_usd: 0 }),
  max_concurrency: z.number().int().min(1).max(10_000).default(1),
  warm_up: WarmUp.optional(),
  shared_with: SharedWith.optional(),
  timeout: durationWithin('1ms', '24h').optional(),
  affinity: Affinity.optional(),
  max_resident: Registration.shape.max_resident,
  deterministic: z.boolean().default(false),
  stops: z.boolean().default(false),
  files: FilesPart.default(noFiles),
  result: Json.optional(),
} as const;

export const CommonPart = z.strictObject(common);

export type WrapFile = z.infer<typeof CommonPart>;
