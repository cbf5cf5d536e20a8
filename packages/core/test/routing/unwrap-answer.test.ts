import { describe, expect, it } from 'vitest';
import { unwrapAnswer } from '../../src/call/outcome.ts';
import type { JsonObject } from '../../src/contracts/primitives.ts';

const plain: JsonObject = { type: 'object', properties: { output_path: { type: 'string' } } };
const own: JsonObject = { type: 'object', properties: { ok: { type: 'boolean' }, output: {} } };
const wrapped: JsonObject = { ok: true, output: { output_path: 'media://job/a.wav' } };

describe('unwrapAnswer', () => {
  it('unwraps {ok, output} when the output schema does not declare ok', () => {
    expect(unwrapAnswer({ output: plain }, wrapped)).toEqual({ ok: true, output: wrapped.output });
  });

  it.each([
    ['itself', own],
    ['by reference', { $defs: { answer: own }, $ref: '#/$defs/answer' }],
    ['in a branch', { allOf: [plain, { required: ['ok'] }] }],
  ])('returns an answer unchanged whose schema declares ok: %s', (_, output) => {
    expect(unwrapAnswer({ output }, wrapped)).toEqual({ ok: true, output: wrapped });
  });

  it('finds nothing declared in a list of branches that is none', () => {
    expect(unwrapAnswer({ output: { anyOf: { ok: true } } }, wrapped)).toEqual({
      ok: true,
      output: wrapped.output,
    });
  });

  it('takes a direct answer as it is', () => {
    const direct = { output_path: 'media://job/a.wav', output: 1 };
    expect(unwrapAnswer({ output: plain }, direct)).toEqual({ ok: true, output: direct });
  });

  it('finds no output where the answer is only {ok: true}, unless the schema declares ok', () => {
    expect(unwrapAnswer({ output: plain }, { ok: true })).toEqual({ ok: true });
    expect(unwrapAnswer({ output: own }, { ok: true })).toEqual({ ok: true, output: { ok: true } });
  });

  it('reads {ok: false, error} as a failure unless the schema declares ok', () => {
    const failure = { ok: false, error: 'no such codec' };
    expect(unwrapAnswer({ output: plain }, failure)).toEqual({ ...failure, body: failure });
    expect(unwrapAnswer({ output: own }, failure)).toEqual({ ok: true, output: failure });
  });

  it('ends on a schema that refers to itself', () => {
    expect(unwrapAnswer({ output: { $ref: '#' } }, wrapped)).toEqual({ ok: true, output: wrapped.output });
  });
});
