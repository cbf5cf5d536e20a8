import { type ConformanceCase, isRefusal } from '../../test/conformance/case.ts';
import { allCases } from '../../test/conformance/cases/all-cases.ts';
import { listKeys } from '../../test/conformance/keys.ts';
import { code, createPage, formatTable, type Page } from './page.ts';

const introduction = `
Each row is a case: a pipeline that uses the key in the first column, and the result of its run. A *happy* case shows the
effect of the key. An *unhappy* case shows the result if something fails, or if the value is refused. The steps of the
cases have short names such as \`a\` and \`b\`. [Write a pipeline](../write-a-pipeline.md) explains the keys, and
[errors](errors.md) explains the codes.

The tests run each case twice: with mocks and in virtual time, as \`capstan run --mock\` does, and on the whole stack with
Temporal, Postgres and HTTP. Both runs must have the result in this table.
`;

type Step = NonNullable<Exclude<ConformanceCase['expected'], { refused: string }>['steps']>[string];

function describeStep(id: string, step: Step): string[] {
  if (typeof step === 'string') return [`${id} ${step}`];
  const { state, error, attempts, items } = step;
  const parts = [
    ...(state === undefined ? [] : [state]),
    ...(error === undefined ? [] : [code(error)]),
    ...(attempts === undefined ? [] : [`after ${attempts === 1 ? 'one attempt' : `${attempts} attempts`}`]),
    ...(items === undefined ? [] : [`items ${items.join(', ')}`]),
  ];
  return parts.length === 0 ? [] : [`${id} ${parts.join(' ')}`];
}

function describeExpected({ expected }: ConformanceCase): string {
  if (isRefusal(expected)) {
    const at = expected.pointer === undefined ? '' : ` at ${code(expected.pointer)}`;
    return `refused: ${code(expected.refused)}${at}`;
  }
  const { outcome, error, output, steps = {} } = expected;
  const parts = [
    error === undefined || error === 'step_failed' ? (outcome ?? '') : `${outcome ?? ''} ${code(error)}`,
    ...Object.entries(steps).flatMap(([id, step]) => describeStep(id, step)),
    ...(output === undefined ? [] : [`output ${code(JSON.stringify(output))}`]),
  ];
  return parts.join('; ');
}

function toRow(one: ConformanceCase) {
  return [code(one.key), one.path, one.name, describeExpected(one)];
}

export function createConformancePage(): Page {
  return createPage('docs/reference/conformance.md', {
    title: 'What every key does',
    source: 'test/conformance/cases',
    sections: [
      introduction,
      formatTable(
        ['Key', 'Case', 'Rule', 'Result'],
        listKeys().flatMap((key) => allCases.filter((one) => one.key === key).map(toRow)),
      ),
    ],
  });
}
