/** What a unit of work of an expression takes, for each filter and operator on values of many shapes. */
import { Meter } from '@capstan/core/expression/meter';
import { type CompiledTemplate, compileTemplate } from '@capstan/core/expression/template';
import {
  conditionTemplate,
  filterTemplate,
  heavyConditions,
  heavyFilters,
  heavyValues,
  jobOf,
  repeated,
  work,
} from '../../packages/core/test/expression/heavy-work.ts';

/** A few milliseconds. */
const units = 300_000;
/** Less is over before it can be measured, such as the error of a filter that does not take the value. */
const fewest = 20_000;
const rounds = 3;
const mostNs = 50;

const templates: [name: string, template: CompiledTemplate][] = [
  ...Object.values(heavyFilters)
    .flat()
    .map((text): [string, CompiledTemplate] => [text, filterTemplate(text)]),
  ...heavyConditions.map((text): [string, CompiledTemplate] => [text, conditionTemplate(text)]),
  ['the value itself', compileTemplate('{{ job.v }}')],
  ['a text with it', compileTemplate('a {{ job.v }} b')],
];

/** @returns nanoseconds of processor time for one unit, in the best of some rounds; null: too few units */
function measure(template: CompiledTemplate, job: ReturnType<typeof jobOf>): number | null {
  let bestNs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const meter = new Meter(units);
    const before = process.cpuUsage();
    work(repeated(template), job, meter);
    const { user, system } = process.cpuUsage(before);
    if (meter.spent < fewest) return null;
    bestNs = Math.min(bestNs, ((user + system) * 1_000) / meter.spent);
  }
  return bestNs;
}

/** Each is compiled before any is measured. */
for (const value of Object.values(heavyValues(100)))
  for (const [, template] of templates) work(repeated(template), jobOf(value), new Meter(5_000));

const rows: { readonly ns: number; readonly name: string }[] = [];
for (const size of [10, 1_000, 20_000]) {
  for (const [shape, value] of Object.entries(heavyValues(size))) {
    for (const [name, template] of templates) {
      const ns = measure(template, jobOf(value));
      if (ns !== null) rows.push({ ns, name: `${name.slice(0, 40)} on ${shape} of ${size}` });
    }
  }
}
rows.sort((a, b) => b.ns - a.ns);
for (const { ns, name } of rows.slice(0, 20)) console.log(`${ns.toFixed(1).padStart(6)} ns  ${name}`);
const median = rows[Math.floor(rows.length / 2)]?.ns ?? 0;
const worst = rows[0]?.ns ?? 0;
console.log(
  `a unit takes ${median.toFixed(1)} ns at the median of ${rows.length}, and at most ${worst.toFixed(1)} ns, <= ${mostNs} ns: ${worst <= mostNs ? 'pass' : 'FAIL'}`,
);
if (worst > mostNs) process.exitCode = 1;
