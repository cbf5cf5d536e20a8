/** No regular expression of ours may take more than linear time: nearly all of them meet texts of strangers. */
import ts from 'typescript';
import { expect, test } from 'vitest';
import { readSources, type Source } from '../../../scripts/structure/source.ts';
import { type MakeText, measureExcessMs } from '../../../test/support/linear-time.ts';
import { isLong } from '../../../test/support/long.ts';

const limit = { length: 32_768, limitMs: 200 };
/** Besides those that a pattern names: one of each class that it may mean. */
const characters = [...(isLong ? 'a0 /:.-_"\\{[(<=é@%\'`\n\t' : 'a0 \n')];

function patternsOf({ file, tree }: Source): { file: string; pattern: RegExp }[] {
  const found: { file: string; pattern: RegExp }[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) {
      const [, source = '', flags = ''] = /^\/(.*)\/([a-z]*)$/s.exec(node.text) ?? [];
      found.push({ file, pattern: new RegExp(source, flags) });
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

const repeat =
  (part: string): MakeText =>
  (length) =>
    part.repeat(length / part.length);

/** Long runs of what it may look for, in places where it cannot end. */
function listTexts({ source }: RegExp): MakeText[] {
  const own = new Set([...characters, ...source.replace(/[A-Za-z0-9]/g, '')]);
  const words = source.match(/[A-Za-z]{2,}/g) ?? [];
  return [
    ...[...own].flatMap((one) => [repeat(one), (length: number) => `x${one.repeat(length)}\u0000`]),
    ...[...own].flatMap((one) => ['a', ' ', '"'].map((other) => repeat(one + other))),
    ...words.map(repeat),
  ];
}

/** What people set for their own process, and the decimals of one number. */
const ofNoStranger = /^(?:src\/(?:cli|dev)|packages\/console)\/|nano-usd/;
/** A pattern comes only where a value may begin. Files without such a place are not parsed. */
const mayHoldPattern =
  /(?:^|[(,=:[!&|?{;+\-%<>~^]|[}*][ \t]|\b(?:return|typeof|case|in|of|void|delete|await|yield|else|do|throw|default|extends)\b)[ \t]*\/(?![/*])/m;
const sources = readSources(['src', 'packages/*/src', 'capabilities'], (text) =>
  mayHoldPattern.test(text),
).filter(({ file }) => !ofNoStranger.test(file));

test.each(sources.flatMap(patternsOf))('$file: $pattern', ({ pattern }) => {
  const slow = listTexts(pattern).filter((make) => {
    const fresh = new RegExp(pattern);
    const act = (text: string): unknown => (fresh.global ? text.replace(fresh, '') : fresh.exec(text));
    return measureExcessMs(act, make, limit) > 0;
  });
  expect(slow.map((make) => make(32))).toEqual([]);
});
