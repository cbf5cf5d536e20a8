/** The environment of a model level, besides that of every instance. The key is never part of an error. */
import { z } from 'zod';

const BaseUrl = z
  .url({ protocol: /^https?$/ })
  .refine((url) => !/[@?#]/.test(url), { error: 'without user, query and fragment; a key is MODEL_API_KEY' });

const UsdPerMtok = z.coerce.number().min(0).max(10_000);

export const ModelSettingsSchema = z
  .object({
    MODEL_CAPABILITY: z
      .string()
      .regex(/^(model|embed)\.[A-Za-z0-9_.-]{1,122}$/, {
        error: 'model. or embed., and a name of letters, digits, _, - or dots',
      })
      .default('model.fast')
      .meta({
        description:
          'The name that callers use. `model.fast`, `model.capable`, `model.reasoning` and `model.top` are levels 1 to 4 of the ladder. A name that begins with `embed.` serves embeddings.',
      }),
    MODEL_PROVIDER: z
      .enum(['openai-compatible', 'anthropic'])
      .meta({ description: 'How the provider is spoken to.' }),
    MODEL_BASE_URL: BaseUrl.optional().meta({
      description:
        'Address below which `/chat/completions` or `/messages` is; optional for Anthropic itself.',
    }),
    MODEL_NAME: z.string().meta({ description: 'The model, as the provider calls it.' }),
    MODEL_API_KEY: z
      .string()
      .trim()
      .regex(/^[\x21-\x7e]+$/, { error: 'printable ASCII without spaces' })
      .optional()
      .meta({ description: 'Key for the provider; needed for Anthropic.' }),
    MODEL_RATE_USD: z.coerce.number().min(0).max(10_000).default(0).meta({
      description: 'The most that any call may cost. 0 = free.',
    }),
    MODEL_USD_PER_MTOK_IN: UsdPerMtok.optional().meta({
      description: 'USD per million input tokens; with both prices a call costs what it used.',
    }),
    MODEL_USD_PER_MTOK_OUT: UsdPerMtok.optional().meta({ description: 'USD per million output tokens.' }),
    MODEL_TIMEOUT_MS: z.coerce.number().int().min(100).max(3_600_000).default(120_000).meta({
      description: 'How long a whole answer may take; an earlier deadline of the caller counts.',
    }),
    MODEL_MAX_OUTPUT_TOKENS: z.coerce.number().int().min(1).max(1_000_000).default(4_096).meta({
      description: 'Upper bound and default of `max_output_tokens`.',
    }),
    MODEL_IMAGE_TOKENS: z.coerce.number().int().min(1).max(1_000_000).default(4_096).meta({
      description: 'The most tokens that the provider counts for one image.',
    }),
    MODEL_MAX_CONCURRENCY: z.coerce.number().int().min(1).max(10_000).default(4).meta({
      description: 'Calls at once; more of them wait in the instance.',
    }),
    MODEL_STRUCTURED_OUTPUT: z.enum(['json_schema', 'json_object', 'prompt']).default('json_schema').meta({
      description: 'How a `response_schema` is passed on; the last two state it in the system message.',
    }),
    MODEL_TOKEN_LIMIT_FIELD: z.enum(['max_tokens', 'max_completion_tokens']).default('max_tokens').meta({
      description: 'Name of the limit in OpenAI-compatible requests; newer OpenAI models want the second.',
    }),
  })
  .refine(({ MODEL_PROVIDER, MODEL_BASE_URL }) => MODEL_PROVIDER === 'anthropic' || MODEL_BASE_URL, {
    path: ['MODEL_BASE_URL'],
    error: 'needed because MODEL_PROVIDER is openai-compatible',
  })
  .refine(({ MODEL_PROVIDER, MODEL_API_KEY }) => MODEL_PROVIDER !== 'anthropic' || MODEL_API_KEY, {
    path: ['MODEL_API_KEY'],
    error: 'needed because MODEL_PROVIDER is anthropic',
  })
  .refine(
    ({ MODEL_PROVIDER, MODEL_CAPABILITY }) =>
      MODEL_PROVIDER !== 'anthropic' || !MODEL_CAPABILITY.startsWith('embed.'),
    {
      path: ['MODEL_CAPABILITY'],
      error: 'Anthropic has no embeddings; MODEL_PROVIDER=openai-compatible has',
    },
  )
  .superRefine((settings, context) => {
    const fault = findPriceFault(settings);
    if (fault !== null) context.addIssue({ code: 'custom', ...fault });
  });
export type ModelSettings = z.infer<typeof ModelSettingsSchema>;

/** A price that the reservation does not cover would be spent without being counted. */
function findPriceFault(settings: {
  readonly MODEL_RATE_USD: number;
  readonly MODEL_USD_PER_MTOK_IN?: number | undefined;
  readonly MODEL_USD_PER_MTOK_OUT?: number | undefined;
  readonly MODEL_MAX_OUTPUT_TOKENS: number;
}): { readonly path: string[]; readonly message: string } | null {
  const { MODEL_USD_PER_MTOK_IN: priceIn, MODEL_USD_PER_MTOK_OUT: priceOut } = settings;
  if (priceIn === undefined && priceOut === undefined) return null;
  if (priceIn === undefined || priceOut === undefined) {
    const missing = priceIn === undefined ? 'MODEL_USD_PER_MTOK_IN' : 'MODEL_USD_PER_MTOK_OUT';
    return { path: [missing], message: 'needed because the other price per token is set' };
  }
  const least = (settings.MODEL_MAX_OUTPUT_TOKENS * priceOut) / 1e6;
  if (priceIn + priceOut === 0 || (settings.MODEL_RATE_USD > 0 && settings.MODEL_RATE_USD >= least))
    return null;
  const output = `${settings.MODEL_MAX_OUTPUT_TOKENS} output tokens cost ${least}`;
  return {
    path: ['MODEL_RATE_USD'],
    message: `is ${settings.MODEL_RATE_USD}, but ${output}, and it has to cover the input too`,
  };
}

/**
 * Empty variables count as absent.
 * @throws Error that names every wrong variable and what is allowed
 */
export function readModelSettings(environment: NodeJS.ProcessEnv = process.env): ModelSettings {
  const present = Object.entries(environment).filter(([, value]) => value !== undefined && value !== '');
  const parsed = ModelSettingsSchema.safeParse(Object.fromEntries(present));
  if (parsed.success) return parsed.data;
  throw new Error(`settings of the model (docs/models.md): ${z.prettifyError(parsed.error)}`);
}
