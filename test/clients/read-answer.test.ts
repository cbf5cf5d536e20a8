import { mostValues } from '@capstan/core/contracts/limits';
import { describe, expect, it } from 'vitest';
import { readAnswer } from '../../src/clients/read-answer.ts';
import { countProcessorMs } from '../support/processor-time.ts';

function read(text: string) {
  const headers = { 'content-type': 'application/json' };
  return readAnswer({ status: 200, headers, body: Buffer.from(text) }, 16 * 1_048_576);
}

function listOf(values: number, value = '1'): string {
  return `{"a":[${Array.from({ length: values }, () => value).join()}]}`;
}

describe('an answer', () => {
  it('of 16 MiB of empty lists is refused before it is parsed', () => {
    const text = `{"a":[${'[],'.repeat(5_500_000)}[]]}`;
    const spentMs = countProcessorMs();
    expect(read(text)).toEqual({
      kind: 'malformed',
      message: `the answer holds more than the ${mostValues} values that are allowed`,
    });
    expect(spentMs()).toBeLessThan(400);
  });

  it('may hold as many values as a request, and one more not', () => {
    expect(read(listOf(mostValues - 2))).toMatchObject({ kind: 'answered' });
    expect(read(listOf(mostValues - 1))).toMatchObject({ kind: 'malformed' });
  });

  it('may hold more than a request may, however large it is', () => {
    const strange = `{"constructor":"\\u0000\\ud800","long":"${'x'.repeat(1_000_000)}"}`;
    expect(read(strange)).toMatchObject({ kind: 'answered' });
  });
});
