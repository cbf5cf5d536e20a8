import { compileCondition } from '@capstan/core/expression/condition';
import { compileTemplate } from '@capstan/core/expression/template';
import { describe, expect, it } from 'vitest';
import {
  foreseeCondition,
  foreseeSteps,
  foreseeValue,
  type KnownFacts,
  PlanWork,
} from '../../../src/use-cases/plans/partial-evaluation.ts';

const run = { id: 'run_1', job_id: 'job_1', attempt: 1, pipeline: 'trailer', version: '1' };
const known: KnownFacts = {
  work: new PlanWork(),
  job: { fast: false, clips: ['a', 'b'] },
  run,
  steps: foreseeSteps(['open', 'left_out'], (index) => (index === 1 ? { status: 'skipped' } : null)),
};
const withoutJob: KnownFacts = { ...known, job: null };

const unknown = { kind: 'unknown' };
function value(of: unknown) {
  return { kind: 'known', value: of };
}

describe('before a run', () => {
  it.each([
    ['job.fast', value(false)],
    ['job.fast && steps.open.output.ok', value(false)],
    ['!job.fast || steps.open.output.ok', value(true)],
    ['steps.open.output.ok && job.fast', unknown],
    ['steps.open.status == "succeeded"', unknown],
    ['steps.left_out.status == "skipped"', value(true)],
    ['(steps.left_out.output.ok ?? true)', value(true)],
    ['(steps.open.output.ok ?? true)', unknown],
    ['run.pipeline == "trailer"', value(true)],
    ['job.slow', { kind: 'wrong', pointer: '/w', message: expect.stringContaining('job.slow') }],
    ['steps.left_out.output.ok', { kind: 'wrong', pointer: '/w', message: expect.any(String) }],
  ])('%s is %o', async (text, expected) => {
    expect(await foreseeCondition(known, compileCondition(text, '/w'))).toEqual(expected);
  });

  it('knows a value when all of its parts are known', async () => {
    const template = compileTemplate({
      clips: '{{ job.clips }}',
      at: '{{ index }}',
      clip: '{{ item.path }}',
    });
    expect(await foreseeValue(known, template, { item: { path: 'x' }, index: 3 })).toEqual(
      value({ clips: ['a', 'b'], at: 3, clip: 'x' }),
    );
    expect(await foreseeValue(known, template)).toEqual(unknown);
  });

  it('knows nothing of a job that is not given', async () => {
    expect(await foreseeCondition(withoutJob, compileCondition('(job.fast ?? false)'))).toEqual(unknown);
    expect(await foreseeValue(withoutJob, compileTemplate({ all: '{{ job }}' }))).toEqual(unknown);
  });
});
