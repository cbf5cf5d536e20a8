import { describe, expect, it } from 'vitest';
import { endsOf, historyTextOf, keepError } from '../../../src/core/ladder/error-text.ts';

describe('the ends of a text', () => {
  it.each([
    ['abcdef', 3, ['abcdef']],
    ['abcdefg', 3, ['abc', 'efg']],
    ['abc', 0, ['', '']],
    ['\u007f\u0080bcdef', 2, ['\u007f', 'ef']],
    ['abcde\u0080\u007f', 2, ['ab', '\u007f']],
    ['éabcdé', 2, ['é', 'é']],
    ['éabcdé', 1, ['', '']],
    ['\u07ff\u0800cd\u0800\u07ff', 4, ['\u07ff', '\u07ff']],
    ['\u0800bcdef\u0800', 3, ['\u0800', '\u0800']],
    ['\u0800bcdef\u0800', 2, ['', '']],
    ['\uffffbcdef\uffff', 3, ['\uffff', '\uffff']],
    ['🎬bcdef🎬', 4, ['🎬', '🎬']],
    ['🎬bcdef🎬', 3, ['', '']],
    ['\u{10000}bcdef\u{10000}', 4, ['\u{10000}', '\u{10000}']],
    ['\u{10000}bcdef\u{10000}', 3, ['', '']],
    ['a🎬cdefg🎬b', 5, ['a🎬', '🎬b']],
    ['a🎬cdefg🎬b', 4, ['a', 'b']],
  ])('of %j, %d bytes each, are whole characters', (text, limit, ends) => {
    expect(endsOf(text, limit)).toEqual(ends);
  });
});

describe('what a history keeps of an error', () => {
  it('is all of it up to 8 KiB', () => {
    expect(keepError('x'.repeat(8_192))).toBe('x'.repeat(8_192));
    expect(keepError('é'.repeat(4_096))).toBe('é'.repeat(4_096));
  });

  it('is the first and the last half of what is longer', () => {
    const kept = `${'a'.repeat(4_092)}\n[…]\n${'b'.repeat(4_092)}`;
    expect(keepError(`${'a'.repeat(4_097)}${'b'.repeat(4_097)}`)).toBe(kept);
  });

  it('is what the capability says, where it refused the input as such', () => {
    const refusal = { code: 'input_rejected', status: 422, message: 'HTTP 422: rate is odd' };
    expect(historyTextOf(refusal)).toBe('rate is odd');
    expect(historyTextOf({ ...refusal, status: 400, message: 'HTTP 400: no' })).toBe('HTTP 400: no');
    expect(historyTextOf({ ...refusal, code: 'capability_failed' })).toBe('HTTP 422: rate is odd');
  });
});
