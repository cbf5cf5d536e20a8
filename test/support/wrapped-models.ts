/** Models as `capstan capability wrap` defines them, from the fields of their files. */
import type { Capability } from '@capstan/capability';
import { readWrapFile } from '@capstan/wrap/wrap-file';

export const modelKey = 'sk-very-secret-0123456789';

export interface ModelFile {
  readonly kind?: 'openai' | 'anthropic';
  readonly name?: string;
  /** Of the provider, with `/v1`. */
  readonly url: string;
  /** Further fields of the file. */
  readonly file?: object;
  /** Further fields of the part of the kind. */
  readonly part?: object;
}

type ModelPrice = Pick<Required<ModelFile>, 'file' | 'part'>;

/** @param rateUsd the most that a call costs @param prices USD per million tokens of input and output */
export function priceAt(rateUsd: number, prices?: readonly [input: number, output: number]): ModelPrice {
  const [input, output] = prices ?? [];
  return {
    file: rateUsd === 0 ? {} : { cost: { type: 'per_call', rate_usd: rateUsd } },
    part: prices === undefined ? {} : { prices: { input, output } },
  };
}

export const priced = priceAt(0.02, [1.5, 3]);

function writeModelFile({ kind = 'openai', name = 'model.fast', url, file, part }: ModelFile): string {
  const endpoint = name.startsWith('embed.') ? 'embeddings' : 'chat';
  const spoken = kind === 'openai' ? { endpoint } : {};
  return JSON.stringify({
    kind,
    name,
    version: '1.0.0',
    description: 'Asks a model.',
    max_concurrency: 4,
    ...file,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the file
    [kind]: { base_url: url, token: '${MODEL_KEY}', model: 'small', ...spoken, ...part },
  });
}

/** @throws Error with the faults of the file */
export function defineModel(model: ModelFile): Capability {
  const reading = readWrapFile(writeModelFile(model), {
    folder: '/nowhere',
    stateDir: '/nowhere',
    environment: { MODEL_KEY: modelKey },
  });
  if ('capability' in reading) return reading.capability;
  throw new Error(reading.findings.map(({ pointer, message }) => `${pointer}: ${message}`).join('\n'));
}
