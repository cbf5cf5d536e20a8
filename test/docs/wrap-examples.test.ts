/** The files of examples/wrap are valid, and docs/wrap.md names every kind and every key. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { findingsOf, linesOf } from '../../packages/wrap/test/support.ts';

const folder = 'examples/wrap';
const examples = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
const page = readFileSync('docs/wrap.md', 'utf8');

/** Each variable that a file names has an address, which is a text for other places too. */
function environmentOf(text: string): NodeJS.ProcessEnv {
  const names = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name);
  return Object.fromEntries(names.map((name) => [name, 'https://service.example.com']));
}

test.each(examples)('%s is valid', (name) => {
  const text = readFileSync(`${folder}/${name}`, 'utf8');
  expect(linesOf(findingsOf(text, environmentOf(text), folder))).toEqual([]);
});

test('each kind has an example, and the guide links each example', () => {
  const [unknownKind] = findingsOf('kind: none');
  const kinds = unknownKind?.message.replace('expected one of ', '').split(', ') ?? [];
  const shown = examples.map((name) => /^kind: (\w+)$/m.exec(readFileSync(`${folder}/${name}`, 'utf8'))?.[1]);
  expect(kinds.length).toBeGreaterThan(1);
  expect(kinds.filter((kind) => !shown.includes(kind))).toEqual([]);
  expect(examples.filter((name) => !page.includes(`../${folder}/${name}`))).toEqual([]);
});

test('the guide names every key of the file and of each kind', () => {
  const keys = examples.flatMap((name) => {
    const kind = name.replace(/[-.].*/, '');
    const [fault] = findingsOf(`${readFileSync(`${folder}/${name}`, 'utf8')}\n_: 1\n`, {}, folder).filter(
      ({ code }) => code === 'key_unknown',
    );
    return [kind, ...(fault?.message.split('allowed are ')[1]?.split(', ') ?? [])];
  });
  expect(keys.length).toBeGreaterThan(examples.length * 10);
  const allowed = new Set(
    keys.filter((key) => /^[a-z_]+$/.test(key) && !['ffmpeg', 'imagemagick'].includes(key)),
  );
  expect([...allowed].filter((key) => !page.includes(`\`${key}\``))).toEqual([]);
});
