import { expect, it } from 'vitest';
import { playSpoiltInput, type SpoiltOutcome } from './play-spoilt-input.ts';
import { type SpoiltInput, spoilInputs } from './spoilt-inputs.ts';

const spoilt = spoilInputs();

function play(mistake: SpoiltInput['mistake']): Record<SpoiltOutcome, number> {
  const counts = { right: 0, shown: 0, left: 0, wrong: 0 };
  for (const one of spoilt) if (one.mistake === mistake) counts[playSpoiltInput(one)] += 1;
  return counts;
}

it('the spoilt inputs are many, of each mistake', () => {
  expect(spoilt.length).toBeGreaterThan(500);
});

it.each<[SpoiltInput['mistake'], least: number]>([
  ['letters of a key swapped', 0.85],
  ['a letter of a key missing', 0.85],
  ['a key in camelCase', 1],
  ['letters of a choice swapped', 0.65],
  ['a letter of a choice missing', 1],
  ['a choice in capitals', 1],
  ['a number or a truth as text', 1],
  ['one item without its list', 1],
  ['a key in the outermost object', 1],
  ['a constant left out', 1],
])('%s: at least %d of them are repaired, and none otherwise than it was', (mistake, least) => {
  const { right, shown, left, wrong } = play(mistake);
  expect(wrong).toBe(0);
  expect(right / (right + shown + left)).toBeGreaterThanOrEqual(least);
});

it.each<[SpoiltInput['mistake']]>([
  ['another word for a choice'],
  ['a key left out'],
  ['a number as text with its unit'],
])('%s: nothing is made up', (mistake) => {
  expect(play(mistake)).toMatchObject({ right: 0, wrong: 0 });
});
