/** Names that a project gives to models, so that programs keep the names they know. */
import { z } from 'zod';
import { CapabilityName, Instant, listOf } from './primitives.ts';

/** What the names of capabilities begin with that serve a kind of request in OpenAI's form. */
export const modelPrefixes = { chat: 'model.', embeddings: 'embed.' } as const;
export type ModelKind = keyof typeof modelPrefixes;

export function isModelName(name: string): boolean {
  return Object.values(modelPrefixes).some((prefix) => name.startsWith(prefix));
}

/** The most aliases of a project. */
export const mostAliases = 200;

const segment = '[A-Za-z0-9_][A-Za-z0-9_.:@+-]*';

/** `gpt-4o`, `openai/gpt-4o`, `llama3:8b`. */
export const AliasName = z
  .string()
  .max(128)
  .regex(new RegExp(`^${segment}(/${segment})*$`), {
    error: 'letters, digits and _ . : @ + - with single slashes between, such as openai/gpt-4o',
  })
  .refine((name) => !isModelName(name), {
    error: 'a name that begins with model. or embed. is a capability; an alias is another name',
  });

export const ModelAliasRequest = z
  .strictObject({
    capability: z.string().regex(/^(model|embed)\.[A-Za-z0-9_.-]{1,122}$/, {
      error: 'an alias leads to a capability model.NAME or embed.NAME',
    }),
  })
  .meta({ id: 'ModelAliasRequest' });

export const ModelAlias = z
  .strictObject({
    name: z.string(),
    /** The capability that requests with this name call. */
    capability: CapabilityName,
    /** A key or a person. */
    set_by: z.string(),
    updated_at: Instant,
  })
  .meta({ id: 'ModelAlias' });
export type ModelAlias = z.infer<typeof ModelAlias>;
export const ModelAliasList = listOf(ModelAlias).meta({ id: 'ModelAliasList' });
