import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import { endsOf, historyTextOf, keepError, maskError } from '../../src/ladder/error-text.ts';

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

  it('is the message of the capability, where it refused the input as such', () => {
    const refusal = { code: 'input_rejected', status: 422, message: 'HTTP 422: rate is odd' };
    expect(historyTextOf(refusal)).toBe('rate is odd');
    expect(historyTextOf({ ...refusal, status: 400, message: 'HTTP 400: no' })).toBe('HTTP 400: no');
    expect(historyTextOf({ ...refusal, code: 'capability_failed' })).toBe('HTTP 422: rate is odd');
  });
});

const canonical: [rule: string, text: string, masked: string][] = [
  ['numbers', 'bitrate 44100 must be <= 320', 'bitrate <n> must be <= <n>'],
  ['signs, fractions and units', 'offset -3.5s is not +7', 'offset <n> is not <n>'],
  ['lists of numbers, however long', 'sizes [1, 2, 3] not allowed', 'sizes [<n>] not allowed'],
  ['UUIDs', 'run 018f2b7c-9c1e-7d3a-b1aa-0242ac120002 failed', 'run <n> failed'],
  ['hex without a digit', 'object deadbeef is missing', 'object <n> is missing'],
  ['URLs', 'cannot read https://a.example/x?y=1&z=2: refused', 'cannot read <url> refused'],
  ['media references', 'missing media://job_1/intro.mov', 'missing <url>'],
  ['paths', 'cannot open /tmp/work/in.mp4: no such file', 'cannot open <path>: no such file'],
  ['Windows paths', 'cannot open C:\\Users\\me\\in.mp4.', 'cannot open <path>.'],
  ['shares', 'cannot open \\\\host\\media\\in', 'cannot open <path>'],
  ['relative paths', 'cannot open ../clips/in or clips/in.mov', 'cannot open <path> or <path>'],
  ['rooted paths without a dot', 'cannot open /tmp/work', 'cannot open <path>'],
  ['folders and homes', 'cannot open a/ or ~/in or ./in', 'cannot open <path> or <path> or <path>'],
  ['file names', 'intro.mov: invalid data', '<path>: invalid data'],
  ['file names of one letter', 'a.mov: invalid data', '<path>: invalid data'],
  ['no extension by itself', 'unsupported .mov', 'unsupported .mov'],
  ['no slash by itself', 'cannot divide a / b', 'cannot divide a / b'],
  ['quoted text', `property "a b" or 'c' or \`d\` missing`, 'property <text> or <text> or <text> missing'],
  ['values, but not keys', 'failed with codec=h264, rate=abc', 'failed with codec=<value>, rate=<value>'],
  ['no field after one slash', '/rate must be integer', '/rate must be integer'],
  [
    'no words with a slash or an apostrophe',
    "can't seek: input/output error",
    "can't seek: input/output error",
  ],
  ['colours and control characters', '\u001b[31mError:\u001b[0m\tbad\u0000 rate', 'error: bad rate'],
  ['nothing in an empty text', ' \n ', ''],
];

const lines: [rule: string, text: string, masked: string][] = [
  ['the last that looks like an error', 'frame 1\nError: bad rate\nelapsed 3 s\n', 'error: bad rate'],
  ['not a stack frame', 'TypeError: x is no list\n    at run (/app/a.ts:3:4)\n', 'typeerror: x is no list'],
  [
    'the end of a Python traceback',
    'Traceback (most recent call last):\n  File "/a/b.py", line 3, in error\nValueError: bad rate',
    'valueerror: bad rate',
  ],
  [
    'not a stack frame that names an error',
    'RangeError: bad rate\n  at onError (/a.ts:3:4)',
    'rangeerror: bad rate',
  ],
  ['the last one where none looks like an error', 'first\nexit status 3\n \n', 'exit status <n>'],
  [
    'of one end of a long text, never across both',
    `error ${'x'.repeat(3_000)}${'y'.repeat(3_000)}`,
    `error ${'x'.repeat(2_042)}`,
  ],
  [
    'one that only quotes an error where there is no other',
    'running\nsaid "bad input: invalid"\nbye',
    'said <text>',
  ],
  [
    'with the class that another line names',
    'DecodeError in stage two\nconversion failed',
    'DecodeError: conversion failed',
  ],
];

const same: [string, string][] = [
  [
    'concat of 3 clips failed: media://job_a/1.mp4 has no audio',
    'concat of 4 clips failed: media://job_b/9.mp4 has no audio',
  ],
  ['Invalid sample rate 44100', 'invalid  sample rate 48k'],
  ["ENOENT: no such file or directory, open '/tmp/a'", "ENOENT: no such file or directory, open '/var/b c'"],
  ['[mp4 @ 0x55d0c8] moov atom not found', '[mp4 @ 0x7ff102] moov atom not found'],
];

const different: [string, string][] = [
  [
    "bundler requires Ruby version >= 2.3.0.\nThe command '/bin/sh -c gem install bundler --no-ri' returned a non-zero code: 1",
    "ERROR: invalid option: --no-ri\nThe command '/bin/sh -c gem install bundler --no-ri' returned a non-zero code: 1",
  ],
  [
    "E: Unable to locate package python\nThe command '/bin/sh -c apt-get install --no-install-recommends python' returned a non-zero code: 100",
    "E: Failed to fetch the index\nThe command '/bin/sh -c apt-get install --no-install-recommends python' returned a non-zero code: 100",
  ],
  [
    'ModuleNotFoundError: numpy\nThe command `pip install --no-cache-dir .` returned a non-zero code: 1',
    'the wheel cannot be built\nThe command `pip install --no-cache-dir .` returned a non-zero code: 1',
  ],
  ['/rate must be integer', '/channels must be integer'],
  ['connection refused by codec', 'connection reset by codec'],
  ['RangeError: bad value', 'TypeError: bad value'],
  ['unknown codec', 'unknown container'],
];

describe('the canonical text of an error', () => {
  it.each(canonical)('masks %s', (_, text, masked) => {
    expect(maskError(text)).toBe(masked);
  });

  it.each(lines)('is %s', (_, text, masked) => {
    expect(maskError(text)).toBe(masked);
  });

  it.each(same)('is one for %j and %j', (a, b) => {
    expect(maskError(a)).toBe(maskError(b));
  });

  it.each(different)('is another for %j and %j', (a, b) => {
    expect(maskError(a)).not.toBe(maskError(b));
  });

  it('is the same for an error and for what a history keeps of it', () => {
    const part = fc.constantFrom('Error: bad rate 3\n', 'x'.repeat(700), 'é🎬 '.repeat(200), '\n', '/a/b "c');
    fc.assert(
      fc.property(fc.array(part, { maxLength: 60 }), (parts) => {
        const kept = keepError(parts.join(''));
        expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(8_192);
        expect(maskError(kept)).toBe(maskError(parts.join('')));
      }),
    );
  });

  it.each([0, 1, 2, 3])('is of whole characters, wherever the text is cut (%i)', (shift) => {
    const kept = keepError(`${'x'.repeat(shift)}${'🎬'.repeat(5_000)}${'y'.repeat(shift)}`);
    expect(kept).not.toMatch(/\p{Surrogate}/u);
    expect(Buffer.byteLength(kept)).toBeGreaterThan(8_170);
  });

  const hostile = [
    'a',
    '"',
    "'",
    "' a",
    '“',
    '/',
    '\\',
    'a/',
    ':',
    '1,',
    '<n> ',
    '=a',
    'a=',
    'a.',
    '.:',
    '\u001b[',
    'Error',
    'A_',
    '-+',
    ' \t',
  ];
  it.each(hostile)('takes no time for a megabyte of %j', (unit) => {
    const text = unit.repeat(Math.ceil(1_000_000 / unit.length));
    const spentMs = countProcessorMs();
    for (let times = 0; times < 5; times += 1) maskError(`${text}!`);
    expect(spentMs()).toBeLessThan(250);
  });
});
