import { expect, test } from 'vitest';
import { describeFindings, summarizeFindings } from '../../src/json/values.ts';

const findings = ['', '/a', '/b', '/c', '/d', '/e', '/f', '/f'].map((pointer) => ({
  pointer,
  message: 'is odd',
}));

test('a person reads five findings and the count of the others, a comparison all of them once', () => {
  expect(summarizeFindings(findings)).toBe(
    '/ is odd; /a is odd; /b is odd; /c is odd; /d is odd; and 2 more',
  );
  expect(describeFindings(findings)).toMatch(/; \/e is odd; \/f is odd$/);
  expect(summarizeFindings(findings.slice(0, 5))).toBe(describeFindings(findings.slice(0, 5)));
});
