import { bars, type Part, type Result, type Tenth } from './result.ts';

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
const usd = (amount: number): string => (1_000 * amount).toFixed(3);
const row = (name: string, ...cells: readonly string[]): string =>
  `${name.padEnd(12)}${cells.map((cell) => cell.padStart(15)).join('')}`;

const tenthRow = (name: string, { learning, plain }: Tenth): string =>
  row(
    name,
    percent(learning.withoutModel),
    usd(learning.usdPerFailure),
    percent(plain.withoutModel),
    usd(plain.usdPerFailure),
  );

const sortRow = (name: string, { failures, withoutModel, usdPerFailure, solved }: Part): string =>
  row(name, String(failures), percent(withoutModel), usd(usdPerFailure), percent(solved / failures));

const check = (name: string, value: string, bar: string, isMet: boolean): string =>
  `${name.padEnd(42)}${value.padStart(8)}  ${bar.padEnd(8)}${isMet ? 'pass' : 'FAIL'}`;

export const toTable = (result: Result): string => {
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
};
