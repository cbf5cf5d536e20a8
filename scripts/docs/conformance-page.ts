import { type ConformanceCase, isRefusal } from '../../test/conformance/case.ts';
import { allCases } from '../../test/conformance/cases/all-cases.ts';
import { listKeys } from '../../test/conformance/keys.ts';
import { code, createPage, formatTable, type Page } from './page.ts';

const introduction = `
The cases show the effect of every key of a pipeline, also when something fails. Each case runs twice in the tests: in one
process against mocks and in virtual time, as \`capstan run --mock\` does, and on the whole stack, with Temporal, Postgres
and HTTP. Both must have the result in this table. The keys are explained in [Write a pipeline](../write-a-pipeline.md), the codes
in [errors](errors.md).
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
        ['Key', '', 'Rule', 'Result'],
        listKeys().flatMap((key) => allCases.filter((one) => one.key === key).map(toRow)),
      ),
    ],
  });
}
