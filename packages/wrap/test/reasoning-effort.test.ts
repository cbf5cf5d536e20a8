/** How long a model thinks, if its file lists efforts. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { defineModel, type ModelFile } from '../../../test/support/wrapped-models.ts';
import { startModelLevel, user } from './model-level.ts';

type Kind = NonNullable<ModelFile['kind']>;

async function aLevel() {
  const level = await startModelLevel();
  onTestFinished(level.close);
  return level;
}

/** The body that the provider gets. */
async function sent(kind: Kind, reasoning_effort: unknown, input: object) {
  const level = await aLevel();
  const model = await level.start({ kind, part: { reasoning_effort } });
  onTestFinished(() => model.stop());
  const { status, request } = await level.ask({ ...user('a'), ...input }, { text: '{}' }, model);
  expect(status).toBe(200);
  return (request?.body ?? {}) as Record<string, unknown>;
}

const usual = ['low', 'medium', 'high'];

describe('a model of the kind openai', () => {
  it.each([
    [usual, 'low', 'low'],
    [usual, 'minimal', 'low'],
    [usual, 'none', 'low'],
    [usual, 'max', 'high'],
    [['none', 'high'], 'low', 'none'],
    [['none', 'default'], 'default', 'default'],
    [['minimal', 'xhigh'], 'medium', 'minimal'],
    [usual, 'enormous', undefined],
    [usual, undefined, undefined],
  ])('that takes %j gets for %s the effort %s', async (takes, asked, effort) => {
    const body = await sent('openai', takes, { reasoning_effort: asked });
    expect(body.reasoning_effort).toBe(effort);
  });
});

describe('a model of the kind anthropic', () => {
  const adaptive = { thinking: { type: 'adaptive' } };
  const tools = [{ name: 'f' }];
  const called = {
    messages: [
      ...user('a').messages,
      {
        role: 'assistant',
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'a', content: 'x' },
    ],
    tools,
  };

  it.each<[takes: unknown, asked: string, more: object, expected: object]>([
    [usual, 'minimal', {}, { ...adaptive, output_config: { effort: 'low' } }],
    [usual, 'xhigh', { temperature: 0.5, top_p: 0.5 }, { ...adaptive, output_config: { effort: 'high' } }],
    [usual, 'none', { temperature: 0.5 }, { temperature: 0.5 }],
    [usual, 'enormous', {}, {}],
    [
      usual,
      'high',
      { response_schema: { type: 'object' } },
      {
        ...adaptive,
        output_config: { effort: 'high', format: { type: 'json_schema', schema: { type: 'object' } } },
      },
    ],
    [
      usual,
      'high',
      { tools, tool_choice: 'required', temperature: 0.5 },
      { temperature: 0.5, output_config: { effort: 'high' } },
    ],
    [usual, 'high', called, { ...adaptive, output_config: { effort: 'high' } }],
    [{ low: 1_024, high: 3_000 }, 'medium', {}, { thinking: { type: 'enabled', budget_tokens: 1_024 } }],
    [
      { low: 1_024, high: 3_000 },
      'max',
      { temperature: 0.5 },
      { thinking: { type: 'enabled', budget_tokens: 3_000 } },
    ],
    [
      { low: 1_024, high: 3_000 },
      'high',
      { max_output_tokens: 2_000 },
      { thinking: { type: 'enabled', budget_tokens: 1_999 } },
    ],
    [{ low: 1_024, high: 3_000 }, 'high', { max_output_tokens: 1_024 }, {}],
    [{ low: 1_024 }, 'low', { tools, tool_choice: { name: 'f' } }, {}],
    [{ low: 1_024 }, 'low', called, {}],
  ])('that takes %j gets for %s with %j: %j', async (takes, asked, more, expected) => {
    const body = await sent('anthropic', takes, { reasoning_effort: asked, ...more });
    const { thinking, output_config, temperature, top_p } = body;
    expect({ thinking, output_config, temperature, top_p }).toEqual({
      thinking: undefined,
      output_config: undefined,
      temperature: undefined,
      top_p: undefined,
      ...expected,
    });
  });
});

describe('a file', () => {
  const define = (kind: Kind, part: object) => defineModel({ kind, url: 'http://127.0.0.1:1/v1', part });

  it.each<Kind>(['openai', 'anthropic'])(
    'of the kind %s declares the field only if it lists efforts',
    async (kind) => {
      const fields = (part: object) => Object.keys(define(kind, part).spec.input.properties as object);
      expect(fields({})).not.toContain('reasoning_effort');
      expect(fields({ reasoning_effort: usual })).toContain('reasoning_effort');
      const level = await aLevel();
      expect((await level.ask({ ...user('a'), reasoning_effort: 'low' }, { text: 'x' })).status).toBe(422);
    },
  );

  it.each<[Kind, unknown]>([
    ['openai', []],
    ['openai', 'low'],
    ['openai', { low: 1_024 }],
    ['anthropic', {}],
    ['anthropic', { low: 1_023 }],
    ['anthropic', { low: 'much' }],
  ])('of the kind %s cannot have %j', (kind, reasoning_effort) => {
    expect(() => define(kind, { reasoning_effort })).toThrow(/reasoning_effort/);
  });
});
