import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import {
  type AnsweredTask,
  findCorrectionFault,
  findCorrections,
  proposeCorrections,
  withAnswers,
} from '../../src/ladder/correction.ts';
import { writeRepairTemplate } from '../../src/repair/decided-repairs.ts';
import { proposeRepairs } from '../../src/repair/propose-repairs.ts';
import type { RankedSkill } from '../../src/skills/match.ts';
import { aSkill } from '../skills/a-skill.ts';
import { rateSpec } from './fake-ports.ts';

function aTask(task: Partial<AnsweredTask> = {}): AnsweredTask {
  return {
    capability: 'transcode',
    repair: 'apply',
    spec: rateSpec,
    original: { rate: '44100' },
    current: { rate: '44100' },
    failed: [],
    ...task,
  };
}

function aTemplate(id: string, template: string | undefined): RankedSkill {
  return { skill: aSkill({ id, template }), groups: {} };
}

function setRate(id: string, rate: number): RankedSkill {
  return aTemplate(id, JSON.stringify([{ op: 'replace', path: '/rate', value: rate }]));
}

const repaired = { input: { rate: 44_100 }, source: 'repair' };

it('a rule is applied once where there is no spec, and its own errors are not caught', async () => {
  expect(await withAnswers({ ...aTask(), spec: null }, ({ spec, capability }) => [spec, capability])).toEqual(
    [null, 'transcode'],
  );
  const fail = () => {
    throw new RangeError('of the rule');
  };
  await expect(withAnswers(aTask(), fail)).rejects.toThrow(RangeError);
});

it('a rule is applied again for each answer that takes longer, and finds the same', async () => {
  const asked: Json[] = [];
  const find = (input: Json) => {
    asked.push(input);
    return asked.length % 3 === 0 ? rateSpec.find(input) : Promise.resolve(rateSpec.find(input));
  };
  const task = aTask({ current: { rate: '44,100' }, original: { rate: '44,100' } });
  const { schema } = rateSpec;
  const repair = async (input: Json) => proposeRepairs({ schema, input, errorsOf: rateSpec.find });
  const spec = { schema, find, repair };
  for (const rule of [
    proposeCorrections,
    (one: AnsweredTask) => findCorrections(one, [setRate('one', 9_000)]),
  ])
    expect(await withAnswers({ ...task, spec }, rule as () => unknown)).toEqual(
      (rule as (one: AnsweredTask) => unknown)(task),
    );
  expect(asked.length).toBeGreaterThan(0);
  const refused = { ...task, spec: { ...spec, repair: () => Promise.reject(new Error('no thread')) } };
  await expect(withAnswers(refused, proposeCorrections)).rejects.toThrow('no thread');
});

describe('a corrected input', () => {
  it('may be executed when it is valid, new and touches nothing protected', () => {
    expect(findCorrectionFault(aTask({ failed: [{ rate: 8_000 }] }), { rate: 9_000 })).toBeNull();
  });

  it('is refused with each finding of the schema', () => {
    const find = () =>
      ['', '/rate'].map((pointer) => ({ pointer, keyword: 'x', params: {}, message: 'is wrong' }));
    expect(findCorrectionFault(aTask({ spec: { schema: {}, find } }), { rate: 9_000 })).toEqual({
      code: 'input_invalid',
      message: 'the corrected input does not match the input schema: / is wrong; /rate is wrong',
    });
  });

  it('is refused when it has failed before, whatever else has', () => {
    const task = aTask({ failed: [{ rate: 8_000 }, { rate: 9_000 }] });
    expect(findCorrectionFault(task, { rate: 9_000 })).toEqual({
      code: 'tried',
      message: 'this input has failed before',
    });
    expect(findCorrectionFault(task, { rate: 9_000 }, true)).toBeNull();
  });

  it('is refused when it leads elsewhere, unless a person decided so', () => {
    const task = aTask({ spec: null, original: { from: 'http://one/a', rate: 1 } });
    const input = { from: 'http://other/a', rate: 1 };
    expect(findCorrectionFault(task, input)).toEqual({
      code: 'change_refused',
      message: 'the corrected input is refused: /from is a URL or media reference, which stays as it is',
    });
    expect(findCorrectionFault(task, input, true)).toBeNull();
    expect(
      findCorrectionFault(aTask({ spec: null, original: 'http://one/a' }), 'http://other/a')?.message,
    ).toBe('the corrected input is refused: / is a URL or media reference, which stays as it is');
  });

  it('counts as valid where no instance has sent a schema', () => {
    expect(findCorrectionFault(aTask({ spec: null }), { rate: 1 })).toBeNull();
  });
});

describe('what level 0 tries', () => {
  it('is the repair, then the templates in their order, each input once', () => {
    const skills = [setRate('one', 44_100), setRate('two', 9_000), setRate('three', 9_000)];
    expect(findCorrections(aTask(), skills)).toEqual([repaired, { input: { rate: 9_000 }, source: 'two' }]);
  });

  it.each(['off', 'propose'] as const)('is no repair where the pipeline sets %s', (repair) => {
    expect(findCorrections(aTask({ repair }), [])).toEqual([]);
  });

  it('is no repair while no instance has sent a schema', () => {
    expect(findCorrections(aTask({ spec: null }), [])).toEqual([]);
  });

  it('is four at most, the first ones', () => {
    const skills = [1, 2, 3, 4, 5].map((n) => setRate(`s${n}`, 8_000 + n));
    expect(findCorrections(aTask(), skills).map(({ source }) => source)).toEqual([
      'repair',
      's1',
      's2',
      's3',
    ]);
  });

  it('is nothing that is invalid, has failed before or does not apply', () => {
    const skills = [
      setRate('low', 1),
      setRate('tried', 8_000),
      aTemplate('elsewhere', '[{"op":"replace","path":"/speed","value":1}]'),
      aTemplate('text', 'say it again'),
      aTemplate('merge', '{"rate":8001}'),
      aTemplate('broken', '[{'),
      aTemplate('none', undefined),
    ];
    expect(findCorrections(aTask({ repair: 'off', failed: [{ rate: 8_000 }] }), skills)).toEqual([]);
  });
});

describe('what a person may choose from', () => {
  const proposal = {
    input: { rate: 44_100 },
    patch: [expect.objectContaining({ path: '/rate', value: 44_100 })],
    source: 'repair',
    note: expect.stringMatching(/./),
  };

  it.each(['apply', 'propose'] as const)('is each valid repair, where the pipeline sets %s', (repair) => {
    const [one, ...others] = proposeCorrections(aTask({ repair }));
    expect(one).toMatchObject({ ...proposal, patch: expect.any(Array) });
    expect(one?.patch.at(-1)).toMatchObject({ path: '/rate', value: 44_100 });
    expect(others).toEqual([]);
  });

  it('is also one that has failed before', () => {
    expect(proposeCorrections(aTask({ failed: [{ rate: 44_100 }] }))).toMatchObject([
      { input: { rate: 44_100 } },
    ]);
  });

  it('is nothing where the pipeline wants none, or no instance has sent a schema', () => {
    expect(proposeCorrections(aTask({ repair: 'off' }))).toEqual([]);
    expect(proposeCorrections(aTask({ spec: null }))).toEqual([]);
  });

  it('is nothing that is still invalid', () => {
    expect(proposeCorrections(aTask({ current: { rate: '7' }, original: { rate: '7' } }))).toEqual([]);
  });
});

describe('a decided repair', () => {
  const digest = (text: string) => String(text.length);
  const schema_sha256 = '0'.repeat(64);
  const decided = (operation: string) =>
    aTemplate(operation, writeRepairTemplate({ operation, place: '/rate', schema_sha256 }));
  /** A text with a comma has two readings, so neither is the schema's own. */
  const aDoubt = (task: Partial<AnsweredTask> = {}) => {
    const current = { rate: '44,100' };
    const spec = { ...rateSpec, schema: { ...rateSpec.schema, properties: { rate: { type: 'number' } } } };
    const find = (input: Json) =>
      typeof (input as JsonObject).rate === 'number' ? [] : rateSpec.find(input);
    return aTask({
      spec: { ...spec, find },
      original: current,
      current,
      digest: () => schema_sha256,
      ...task,
    });
  };
  const [thousands, decimal] = [decided('coerce.thousands-comma'), decided('coerce.decimal-comma')];

  it('is applied where people have decided between proposals', () => {
    expect(findCorrections(aDoubt(), [])).toEqual([]);
    const found = findCorrections(aDoubt({ repair: 'propose' }), [thousands]);
    expect(found).toEqual([{ input: { rate: 44_100 }, source: 'coerce.thousands-comma' }]);
  });

  it('is not applied where another proposal is decided too, where repairs are off, or without its schema', () => {
    expect(findCorrections(aDoubt(), [thousands, decimal])).toEqual([]);
    expect(findCorrections(aDoubt({ repair: 'off' }), [thousands])).toEqual([]);
    expect(findCorrections(aDoubt({ digest }), [thousands])).toEqual([]);
    expect(findCorrections(aDoubt({ spec: null }), [thousands])).toEqual([]);
  });

  it('has the name of its own decision, whatever else is decided', () => {
    const found = findCorrections(aDoubt(), [decided('coerce.other'), thousands]);
    expect(found).toEqual([{ input: { rate: 44_100 }, source: 'coerce.thousands-comma' }]);
  });

  it('is named in the proposals of a task whose decisions count', () => {
    const named = { operation: 'coerce.thousands-comma', place: '/rate', schema_sha256 };
    expect(proposeCorrections(aDoubt())).toMatchObject([{ repair: named }, {}]);
    const { digest: _, ...uncounted } = aDoubt();
    expect(proposeCorrections(uncounted).some((proposal) => 'repair' in proposal)).toBe(false);
  });
});
