import { bars, type Part, type Result, type Tenth } from './result.ts';

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
function usd(amount: number): string {
  return (1_000 * amount).toFixed(3);
}
function row(name: string, ...cells: readonly string[]): string {
  return `${name.padEnd(12)}${cells.map((cell) => cell.padStart(15)).join('')}`;
}

function tenthRow(name: string, { learning, plain }: Tenth): string {
  return row(
    name,
    percent(learning.withoutModel),
    usd(learning.usdPerFailure),
    percent(plain.withoutModel),
    usd(plain.usdPerFailure),
  );
}

function sortRow(name: string, { failures, withoutModel, usdPerFailure, solved }: Part): string {
  return row(name, String(failures), percent(withoutModel), usd(usdPerFailure), percent(solved / failures));
}

function check(name: string, value: string, bar: string, isMet: boolean): string {
  return `${name.padEnd(42)}${value.padStart(8)}  ${bar.padEnd(8)}${isMet ? 'pass' : 'FAIL'}`;
}

export function toTable(result: Result): string {
  const { at, seed, tenths, whole, bySort, lastQuarter, saved } = result;
  const { learning, plain } = whole;
  return [
    `${at}  Node ${process.version}  ${learning.failures} failures, seed ${seed}, ${result.seconds.toFixed(0)} s`,
    '',
    row('', 'with skills', '', 'without', ''),
    row('tenth', 'without model', 'USD per 1000', 'without model', 'USD per 1000'),
    ...tenths.map((tenth, index) => tenthRow(String(index + 1), tenth)),
    tenthRow('all', whole),
    '',
    row('last quarter', 'failures', 'without model', 'USD per 1000', 'solved'),
    ...Object.entries(bySort).map(([sort, part]) => sortRow(sort, part)),
    sortRow('all', lastQuarter),
    '',
    `skills ${result.skills}, flagged ${result.flagged}; solved ${percent(learning.solved / learning.failures)} with skills, ${percent(plain.solved / plain.failures)} without`,
    ...result.wrong.map(({ kind, at: index }) => `wrong repair of failure ${index}: ${kind}`),
    '',
    check(
      'solved without a model, last quarter',
      percent(lastQuarter.withoutModel),
      `> ${100 * bars.withoutModel} %`,
      lastQuarter.withoutModel > bars.withoutModel,
    ),
    check(
      'spent less than without skills',
      percent(saved),
      `>= ${(100 * bars.saved).toFixed(0)} %`,
      saved >= bars.saved,
    ),
    check('wrong repairs', String(learning.wrong), `<= ${bars.wrong}`, learning.wrong <= bars.wrong),
  ].join('\n');
}
