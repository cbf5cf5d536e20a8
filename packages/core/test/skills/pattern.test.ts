import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyText } from '../../../../test/support/any-text.ts';
import { isLong } from '../../../../test/support/long.ts';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import { runs } from '../../../../test/support/runs.ts';
import { generalizeError } from '../../src/skills/generalize-error.ts';
import { matchPatterns, readPatterns } from '../../src/skills/pattern.ts';

function match(pattern: string, error: string) {
  const reading = readPatterns([pattern]);
  if (!reading.ok) throw new Error(reading.message);
  return matchPatterns(reading.patterns, error);
}

describe('readPatterns', () => {
  it.each([
    ['(a', /missing closing \): `\(a`/],
    ['(?=a)b', /unsupported Perl syntax: `\(\?=`/],
    ['(a)\\1', /invalid escape sequence/],
    ['a{1001}', /invalid repeat count/],
    ['(?:a{30}){30}b{900}', /at most 1000 instructions/],
    ['((a{9}b){9}c){9}d{400}', /at most 1000 instructions/],
    ['a'.repeat(501), /501 characters, at most 500/],
    ['(?<__proto__>a)', /group name __proto__/],
    ['(?P<constructor>a)', /group name constructor/],
    ['', /empty string/],
    ['a*', /empty string/],
    ['^', /empty string/],
    ['(?m)$', /empty string/],
    ['\\b', /empty string/],
    ['\\B|a', /empty string/],
  ])('refuses %s', (pattern, message) => {
    expect(readPatterns(['ok', pattern])).toEqual({
      ok: false,
      index: 1,
      message: expect.stringMatching(message),
    });
  });

  it('takes five patterns, not six', () => {
    expect(readPatterns(Array(5).fill('a')).ok).toBe(true);
    expect(readPatterns(Array(6).fill('a'))).toMatchObject({
      ok: false,
      message: expect.stringMatching(/at most 5/),
    });
  });

  it.each([
    '(a+)+$',
    '(x+x+)+y',
    '(?:a?){200}a{200}[bc]',
    '(?:(?:a|b|c|d)*){10}[ef]',
    '(?<g>.*).*.*.*.*.*.*.*.*.*.*.*[bc]q',
    '(?i)(?:\\pL|\\pN|.){1,40}[z!]',
    '(?:x|(?:a.{20}){20})[zy]',
    '(?s).*?a.{300}[zq]',
  ])('refuses or matches %s in bounded time', (pattern) => {
    const texts = ['a'.repeat(100_000), 'ab'.repeat(2_048), 'aé😀x'.repeat(800)];
    for (const text of texts) {
      let best = Number.POSITIVE_INFINITY;
      for (let tries = 0; tries < 3 && best >= 1_000; tries++) {
        const spentMs = countProcessorMs();
        const reading = readPatterns([pattern]);
        if (reading.ok) matchPatterns(reading.patterns, text);
        best = Math.min(best, spentMs());
      }
      expect(best).toBeLessThan(1_000);
    }
  });
});

describe('matchPatterns', () => {
  it('answers the named groups of the first pattern that matches', () => {
    const reading = readPatterns(['no', '(?<what>\\w+) is (?P<n>\\d+)(?<more>!)?', 'width']);
    expect(reading.ok && matchPatterns(reading.patterns, 'width is 5')).toEqual({ what: 'width', n: '5' });
    expect(match('width', 'width is 5')).toEqual({});
    expect(match('height', 'width is 5')).toBeNull();
  });

  it('looks at both ends of a long error, and at all of a short one', () => {
    const far = 'x'.repeat(2_047);
    expect(match('here', `here${far}${far}${far}`)).toEqual({});
    expect(match('here', `${far}${far}${far}here`)).toEqual({});
    expect(match('here', `${far}xx${far}here${far}xx${far}`)).toBeNull();
    expect(match('here', `${far}here${far.slice(3)}`)).toEqual({});
  });
});

describe('generalizeError', () => {
  it.each([
    [
      'ffmpeg exited with 1\nError: Invalid sample rate "44.1k" for /tmp/x/a.wav: must be 44100\n    at foo',
      { g1: '44.1k', g2: '44100' },
      'Error: Invalid sample rate "96k" for ./b.wav: must be 48000',
      'Error: Invalid frame rate "44.1k" for /tmp/x/a.wav: must be 44100',
    ],
    [
      'width 1081 not divisible by 2',
      { g1: '1081', g2: '2' },
      'libx264\n  width 7 not divisible by 2\r\nConversion failed!',
      'the width 1081 not divisible by 2',
    ],
    [
      'HTTP 422: {"error":"fps must be <= 60, got 120"}',
      { g1: '422', g2: '60', g3: '120' },
      'HTTP 400: {"error":"fps must be <= 30, got 31"}',
      'HTTP 422: {"error":"bitrate must be <= 60, got 120"}',
    ],
    [
      "cannot fetch https://a.example/x?y=1 (job_12ab): can't open 'a b.txt'",
      { g1: 'a b.txt' },
      "cannot fetch http://b.example (job_9): can't open ''",
      "cannot fetch it (job_12ab): can't open 'a b.txt'",
    ],
    [
      'the input does not match the input schema: /sample_rate must be integer, got "44.1k".',
      { g1: '44.1k' },
      'the input does not match the input schema: /sample_rate must be integer, got "48k".',
      'the input does not match the input schema: /bit_rate must be integer, got "44.1k".',
    ],
    [
      '/container must be one of "mp4", "matroska" or "webm", got "mkv"',
      { g1: 'mkv' },
      '/container must be one of "mp4", "matroska" or "ogg", got "mov"',
      '/codec must be one of "mp4", "matroska" or "webm", got "mkv"',
    ],
    [
      'cannot read /a.wav of /clips/0/start in /tmp7: see /rate.',
      {},
      'cannot read /b.wav of /clips/12/end in /tmp8: see /rate.',
      'cannot read /a.wav of /clips/0/start in /tmp7: see /fps.',
    ],
  ])('masks the variable parts of %j', (error, groups, alike, other) => {
    const pattern = generalizeError(error) ?? '';
    expect(match(pattern, error)).toEqual(groups);
    expect(match(pattern, alike)).not.toBeNull();
    expect(match(pattern, other)).toBeNull();
  });

  it('has no pattern for an error without text', () => {
    expect([generalizeError(''), generalizeError(' \r\n\t')]).toEqual([null, null]);
  });

  it('always matches the error that it was made from, and never the empty string', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        'Error: ',
        '"',
        "'",
        '`',
        '5',
        '-1.5',
        'a.b',
        '/tmp/x',
        'https://h/',
        ' ',
        '\n',
        '\\',
        '(?<g1>',
        '\\u0041',
      ),
      fc.constantFrom(
        '$',
        '^',
        '.',
        '*',
        '{',
        '}',
        '[',
        ']',
        '😀',
        '\ud800',
        '\u0000',
        '\v',
        '\u00a0',
        'x'.repeat(900),
      ),
      anyText({ maxLength: 8 }),
    );
    const text = fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join(''));
    fc.assert(
      fc.property(text, (error) => {
        const pattern = generalizeError(error);
        if (pattern === null) {
          expect(error).toMatch(/^[\t\n\f\r ]*$/);
          return;
        }
        expect(pattern.length).toBeLessThanOrEqual(500);
        expect(match(pattern, error)).not.toBeNull();
        expect(match(pattern, '')).toBeNull();
      }),
      { numRuns: runs(isLong ? 250 : 80) },
    );
  });
});
