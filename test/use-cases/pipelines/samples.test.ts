/** The examples against the specs of the capabilities that come with Capstan. */
import { readFileSync } from 'node:fs';
import { createInputForms } from '@capstan/core/definitions/input-forms';
import { readDefinition } from '@capstan/core/definitions/read-definition';
import { expect, test } from 'vitest';
import { capability as audioMix } from '../../../capabilities/audio-mix/index.ts';
import { capability as concat } from '../../../capabilities/concat/index.ts';
import { capability as thumbnail } from '../../../capabilities/thumbnail/index.ts';

const forms = createInputForms();
const samples = new Map(
  [audioMix, concat, thumbnail].map(({ spec }) => [spec.name, forms.addSpec(spec.name, spec)]),
);
const facts = {
  knownCapabilities: new Set(samples.keys()),
  strict: true,
  specsOf: ({ capability = '' }) => [samples.get(capability) ?? []].flat(),
};

function read(file: string) {
  return readFileSync(new URL(`../../../examples/${file}`, import.meta.url), 'utf8');
}

test.each(['concat/pipeline.json', 'highlight-reel/pipeline.yaml'])('%s has no finding', (file) => {
  expect(readDefinition({ text: read(file), contentType: null }, facts).findings).toEqual([]);
});

test('a wrong field of a sample is found before anything runs', () => {
  const text = read('highlight-reel/pipeline.yaml').replace(
    'join.output.output_path',
    'join.output.outputpath',
  );
  expect(readDefinition({ text, contentType: null }, facts).findings).toMatchObject([
    { severity: 'error', code: 'path_unknown', suggestion: 'did you mean "output_path"?' },
  ]);
});
