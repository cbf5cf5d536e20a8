/** `npm run bench:repair`: inputs with one wrong place, by mistake: how many the schema alone repairs, rightly or wrongly. */
import { playSpoiltInput, type SpoiltOutcome } from '../../test/core/repair/play-spoilt-input.ts';
import { spoilInputs } from '../../test/core/repair/spoilt-inputs.ts';

type Count = Record<SpoiltOutcome, number>;

const counts = new Map<string, Count>();
const all: Count = { right: 0, shown: 0, left: 0, wrong: 0 };
for (const spoilt of spoilInputs()) {
  const outcome = playSpoiltInput(spoilt);
  const count = counts.get(spoilt.mistake) ?? { right: 0, shown: 0, left: 0, wrong: 0 };
  count[outcome] += 1;
  all[outcome] += 1;
  counts.set(spoilt.mistake, count);
}

const widths = [34, 8, 10, 8, 8, 8];
function line(cells: readonly (string | number)[]): string {
  return cells
    .map((cell, at) =>
      at === 0 ? String(cell).padEnd(widths[0] ?? 0) : String(cell).padStart(widths[at] ?? 0),
    )
    .join('');
}
function row(name: string, { right, shown, left, wrong }: Count): string {
  return line([name, right + shown + left + wrong, right, shown, left, wrong]);
}

console.log(line(['mistake', 'inputs', 'repaired', 'shown', 'left', 'wrong']));
for (const [mistake, count] of counts) console.log(row(mistake, count));
console.log(row('all', all));
if (all.wrong > 0) process.exitCode = 1;
