import { describe, expect, it } from 'vitest';
import type { CostModel } from '../../src/contracts/capability.ts';
import { findCostFaults } from '../../src/money/cost-expressions.ts';

describe('the faults of a price by the input', () => {
  const none = '{{ input.n }}';

  it.each<
    [
      name: string,
      cost_model: Partial<CostModel>,
      settle: 'computed' | 'reported',
      faults: [string, string][],
    ]
  >([
    ['none without expressions', { type: 'per_call' }, 'computed', []],
    ['none with two', { type: 'per_call', worst_case: none, expected: none }, 'reported', []],
    ['none with a price per second', { type: 'per_second', worst_case: none }, 'computed', []],
    ['none with an expectation only', { type: 'per_call', expected: none }, 'computed', []],
    [
      'a text that is more than an expression',
      { type: 'per_second', worst_case: '{{ input.n }} USD' },
      'computed',
      [
        [
          'worst_case',
          'at character 1: one {{ }} is the whole text, such as {{ (input | tokens) * 0.000003 }}',
        ],
      ],
    ],
    [
      'the place of an error, and a suggestion',
      { type: 'per_second', expected: '{{ input.n -1 }}' },
      'computed',
      [['expected', 'at character 12: - between two values needs white space on both sides; write a - b']],
    ],
    [
      'the place of an error without a suggestion',
      { type: 'per_second', worst_case: '{{ input.n * }}' },
      'computed',
      [['worst_case', 'at character 14: expected a path, a value or (, found "}}"']],
    ],
    [
      'none with a price that grows up to a worst case',
      { type: 'per_call', worst_case: none, per_token: none },
      'reported',
      [],
    ],
    [
      'a price that grows without a worst case',
      { type: 'per_call', per_token: none },
      'reported',
      [['per_token', 'needs `worst_case`, up to which the call may grow']],
    ],
    [
      'a price per call without a report',
      { type: 'per_call', worst_case: none },
      'computed',
      [['worst_case', 'needs settle: "reported", because each call costs the whole rate otherwise']],
    ],
  ])('are %s', (_, cost_model, settle, faults) => {
    const found = findCostFaults({ cost_model: { type: 'free', rate_usd: 1, ...cost_model }, settle });
    expect(found.map(({ field, message }) => [field, message])).toEqual(faults);
  });
});

describe('an expression of a price, when it is registered', () => {
  const big = `"${'x'.repeat(100)}" | replace("x", "${'x'.repeat(100)}")`;
  const faultOf = (text: string) =>
    findCostFaults({
      cost_model: { type: 'per_second', rate_usd: 1, worst_case: text },
      settle: 'computed',
    })[0]?.message;
  const readAgain = ' | lower'.repeat(100);

  it.each([
    ['builds a text', `{{ (${big} | replace("x", "${'y'.repeat(100)}") | length) * 0.1 }}`],
    ['reads its input again and again', `{{ (input.prompt${readAgain} | length) * 0.1 }}`],
    ['reads a value deep in it', `{{ (input.a.b${readAgain} | length) * 0.1 }}`],
    ['reads a value of a list', `{{ (input.a[3].b${readAgain} | length) * 0.1 }}`],
    [
      'reads values of two paths',
      `{{ (input.a.b${readAgain} | length) + input.a.c + input.a[1] + input.a.b }}`,
    ],
    ['reads values of two keys of an item', `{{ (input.a[0].b${readAgain} | length) + input.a[0].c }}`],
    [
      'reads values of two places of a list',
      `{{ (input.a[1].b${readAgain} | length) + input.a[0].c + input.a[1].c }}`,
    ],
    [
      'reads the texts of a conversation',
      `{{ (input.messages[*].content | join("")${readAgain} | length) * 0.1 }}`,
    ],
    ['reads an input of which it names no part', `{{ (input | json${readAgain} | length) * 0.1 }}`],
    ['looks into lists', `{{ (input.messages${' | sort_by("role")'.repeat(200)} | length) * 0.1 }}`],
    ['reads a built text', `{{ (${big}${' | basename'.repeat(200)} | length) * 0.1 }}`],
  ])('is refused with the figure when it %s', (_, text) => {
    expect(faultOf(text)).toMatch(
      /^takes \d+ units of work for an input of usual size; at most 30000 are allowed$/,
    );
  });

  it.each([
    ['a list of texts', `{{ (input.texts[*] | join("")${readAgain} | length) * 0.1 }}`, 252_119],
    ['a conversation', `{{ (input | json${readAgain} | length) * 0.1 }}`, 293_763],
  ])('takes the same work each time, over %s', (_, text, units) => {
    expect(faultOf(text)).toContain(`takes ${units} units`);
  });

  it('is refused when it takes more work than a request may', () => {
    expect(faultOf(`{{ (${big}${' | basename'.repeat(500)} | length) * 0.1 }}`)).toBe(
      'takes more than 1000000 units of work for an input of usual size; at most 30000 are allowed',
    );
  });

  it.each([
    '{{ (input.messages | tokens) * 0.000003 + (input.max_output_tokens ?? 4096) * 0.000015 }}',
    '{{ (input | tokens) * 0.000003 }}',
    '{{ (input.n ?? 1) * ((input.messages | tokens) * 0.000003 + input.max_output_tokens * 0.000015) }}',
    '{{ (input.texts[*].body | join("") | length) * 0.000001 }}',
    '{{ input.frames[0].width * input.frames[0].height * 1e-9 + 0.01 }}',
    '{{ input.frames[999999999].width }}',
  ])('is accepted when it is cheap: %s', (text) => {
    expect(faultOf(text)).toBeUndefined();
  });
});
