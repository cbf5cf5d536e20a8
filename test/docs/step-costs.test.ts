import { expect, test } from 'vitest';
import { summarizePaths } from '../../bench/path/marks.ts';
import { readFigures } from '../../scripts/docs/step-costs/figures.ts';
import { createStepCostsPage } from '../../scripts/docs/step-costs/page.ts';

test('a stage begins at the mark before it that the side has', () => {
  const path = { 'workflow started': 2, 'first call': 9, answered: 5 };
  expect(summarizePaths([path, { ...path, 'first call': 7 }])).toEqual({
    marks: [
      { name: 'workflow started', at_ms: 2, stage_ms: 2 },
      { name: 'first call', at_ms: 8, stage_ms: 6 },
    ],
    aside: [{ name: 'answered', at_ms: 5 }],
  });
});

test('other figures change only the text between the markers of the page', () => {
  const figures = readFigures();
  const { capstan } = figures.engine.sides;
  const sides = { ...figures.engine.sides, capstan: { ...capstan, runs_per_second: 12_345.6 } };
  const [before, after] = [figures, { ...figures, engine: { ...figures.engine, sides } }].map((some) =>
    createStepCostsPage(some).text.split('\n'),
  );
  const changed = after?.filter((line, index) => line !== before?.[index]);
  expect(changed).toEqual([expect.stringMatching(/^\| runs per second, 32 in flight \| 12345\.6 /)]);
  expect(after).toHaveLength(before?.length ?? 0);
});
