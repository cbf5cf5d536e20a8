import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ModelSettingsSchema, readModelSettings } from '../../capabilities/model/configuration.ts';
import { readDocument } from '../docs/documents.ts';

const openai = {
  MODEL_PROVIDER: 'openai-compatible',
  MODEL_BASE_URL: 'http://127.0.0.1:11434/v1',
  MODEL_NAME: 'small',
};
const prices = { MODEL_USD_PER_MTOK_IN: '1', MODEL_USD_PER_MTOK_OUT: '10' };

describe('the settings of a model', () => {
  it('need a provider, its address and a model; empty variables count as absent', () => {
    expect(readModelSettings({ ...openai, MODEL_API_KEY: '', OTHER: 'x' })).toEqual({
      ...openai,
      MODEL_CAPABILITY: 'model.fast',
      MODEL_RATE_USD: 0,
      MODEL_TIMEOUT_MS: 120_000,
      MODEL_MAX_OUTPUT_TOKENS: 4_096,
      MODEL_IMAGE_TOKENS: 4_096,
      MODEL_MAX_CONCURRENCY: 4,
      MODEL_STRUCTURED_OUTPUT: 'json_schema',
      MODEL_TOKEN_LIMIT_FIELD: 'max_tokens',
    });
  });

  it.each<[string, Record<string, string>, RegExp]>([
    ['no provider', { MODEL_PROVIDER: '' }, /openai-compatible.*anthropic[\s\S]*MODEL_PROVIDER/],
    ['no address', { MODEL_BASE_URL: '' }, /needed because MODEL_PROVIDER is openai-compatible/],
    ['a password in the address', { MODEL_BASE_URL: 'http://u:p@host/v1' }, /a key is MODEL_API_KEY/],
    [
      'Anthropic without a key',
      { MODEL_PROVIDER: 'anthropic' },
      /needed because MODEL_PROVIDER is anthropic/,
    ],
    [
      'a name without its prefix',
      { MODEL_CAPABILITY: 'gpt' },
      /model\. or embed\., and a name[\s\S]*MODEL_CAPABILITY/,
    ],
    [
      'embeddings of Anthropic',
      { MODEL_PROVIDER: 'anthropic', MODEL_API_KEY: 'k', MODEL_CAPABILITY: 'embed.a' },
      /Anthropic has no embeddings/,
    ],
    ['one price of two', { MODEL_USD_PER_MTOK_IN: '1', MODEL_RATE_USD: '1' }, /MODEL_USD_PER_MTOK_OUT/],
    ['prices, but free', prices, /4096 output tokens cost 0\.04096[\s\S]*MODEL_RATE_USD/],
    ['a price below its output', { ...prices, MODEL_RATE_USD: '0.04' }, /is 0\.04, but 4096 output tokens/],
  ])('are refused with %s', (_name, more, message) => {
    expect(() => readModelSettings({ ...openai, ...more })).toThrow(message);
  });

  it('never show the key', () => {
    const read = () => readModelSettings({ ...openai, MODEL_API_KEY: 'se cret' });
    expect(read).toThrow(/MODEL_API_KEY/);
    expect(read).not.toThrow(/cret/);
  });

  it('are all in the table of the guide, with their defaults', () => {
    const { properties = {} } = z.toJSONSchema(ModelSettingsSchema, { io: 'output' });
    const guide = readDocument('docs/models.md');
    const rows = [...guide.matchAll(/^\| `(MODEL_\w+)` \| (.*?) \| (.*?) \| (.*) \|$/gm)];
    expect(rows.map(([, name, , shown, meaning]) => [name, shown, meaning])).toEqual(
      Object.entries(properties as Record<string, { default?: unknown; description?: string }>).map(
        ([name, { default: value, description }]) => [
          name,
          value === undefined ? expect.stringMatching(/^(required|none)$/) : `\`${value}\``,
          description,
        ],
      ),
    );
  });
});
