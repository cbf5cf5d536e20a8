/** No regular expression of ours may take more than linear time: nearly all of them meet texts of strangers. */
import ts from 'typescript';
import { expect, test } from 'vitest';
import { readSources, type Source } from '../../scripts/structure/source.ts';
import { countProcessorMs } from '../support/processor-time.ts';

const length = 32_768;
const characters = [...'a0 /:.-_"\\{[(<=é@%\'`\n\t'];

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

/** Long runs of what it may look for, in places where it cannot end. */
function listTexts({ source }: RegExp): string[] {
  const own = new Set([...characters, ...source.replace(/[A-Za-z0-9]/g, '')]);
  const words = source.match(/[A-Za-z]{2,}/g) ?? [];
  return [
    ...[...own].flatMap((one) => [one.repeat(length), `x${one.repeat(length)}\u0000`]),
    ...[...own].flatMap((one) => ['a', ' ', '"'].map((other) => (one + other).repeat(length / 2))),
    ...words.map((word) => word.repeat(length / word.length)),
  ];
}

/** What people set for their own process, and the decimals of one number. */
const ofNoStranger = /^src\/(?:cli|dev)\/|nano-usd/;
const sources = readSources(['src', 'capabilities']).filter(({ file }) => !ofNoStranger.test(file));

test.each(sources.flatMap(patternsOf))('$file: $pattern', ({ pattern }) => {
  for (const text of listTexts(pattern)) {
    const fresh = new RegExp(pattern);
    const spentMs = countProcessorMs();
    if (fresh.global) text.replace(fresh, '');
    else fresh.exec(text);
    expect(spentMs(), JSON.stringify(text.slice(0, 10))).toBeLessThan(200);
  }
});
