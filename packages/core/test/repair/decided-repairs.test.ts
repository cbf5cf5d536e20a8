import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import type { RepairIdentity, ReviewProposal } from '../../src/contracts/review.ts';
import { isForbiddenName } from '../../src/json/values.ts';
import {
  chooseDecided,
  identifyRepairs,
  isSure,
  type RepairEvidence,
  readRepairTemplate,
  weighProposals,
  writeRepairTemplate,
} from '../../src/repair/decided-repairs.ts';
import { describeDecided } from '../../src/repair/describe-decided.ts';
import { proposeRepairs } from '../../src/repair/propose-repairs.ts';
import { createSchemaCompiler } from '../../src/schemas/schema-compiler.ts';

const digest = (text: string) => createHash('sha256').update(text).digest('hex');

const number = { type: 'number' };
function closed(properties: JsonObject, required: string[] = []): JsonObject {
  return { type: 'object', properties, required, additionalProperties: false };
}

/** Compiling takes longer than what is tested: each schema once. */
const known = new WeakMap<JsonObject, ReturnType<typeof compile>>();
function compile(schema: JsonObject) {
  return createSchemaCompiler().compile(schema).find;
}

function identify(schema: JsonObject, input: Json) {
  const errorsOf = known.get(schema) ?? compile(schema);
  known.set(schema, errorsOf);
  const { proposals } = proposeRepairs({ schema, input, errorsOf });
  return identifyRepairs({ schema, input, digest }, proposals);
}

function names(schema: JsonObject, input: Json) {
  return identify(schema, input).map((one) => one && `${one.operation} ${one.place}`);
}

describe('the identity of a repair', () => {
  const track = closed({ gain_db: number, wait: number, name: { enum: ['left', 'right'] } });
  const mix = closed({
    tracks: { type: 'array', items: track },
    by_name: { type: 'object', additionalProperties: track },
    rate: { type: 'integer' },
  });

  it.each<[string, Json, readonly (string | null)[]]>([
    ['a unit', { tracks: [{}, { gain_db: '-12 dB' }] }, ['coerce.dB /tracks/*/gain_db']],
    ['a place in a map', { by_name: { 'my voice': { gain_db: '3 dB' } } }, ['coerce.dB /by_name/{}/gain_db']],
    ['a multiple', { rate: '44.1k' }, ['coerce.k /rate']],
    ['a misspelt key', { tracks: [{ gian_db: 3 }] }, ['rename.key /tracks/*/gain_db']],
    ['a misspelt choice', { tracks: [{ name: 'lefft' }] }, ['respell.nearest /tracks/*/name']],
    ['one of two readings', { rate: '1,500' }, ['coerce.thousands-comma /rate']],
    [
      'either of two readings',
      { tracks: [{ gain_db: '1,500' }] },
      ['coerce.thousands-comma /tracks/*/gain_db', 'coerce.decimal-comma /tracks/*/gain_db'],
    ],
    [
      'a time without a unit in its key',
      { tracks: [{ wait: '10s' }] },
      ['coerce.s-in-itself /tracks/*/wait', 'coerce.s-in-smallest /tracks/*/wait'],
    ],
    ['a needless key', { tracks: [{ note: 'loud' }] }, ['drop.key /tracks/*/note']],
    ['several faults at once', { rate: '44.1k', tracks: [{ gain_db: '3 dB' }] }, [null]],
  ])('names the way and the place of %s', (_, input, expected) => {
    expect(names(mix, input)).toEqual(expected);
  });

  it('is the same for other values at other indices and keys', () => {
    const [one] = identify(mix, { tracks: [{ gain_db: '-12 dB' }] });
    const [other] = identify(mix, { tracks: [{}, {}, { gain_db: '-3.5 dB' }] });
    expect(one).not.toBeNull();
    expect(other).toEqual(one);
  });

  it('differs when the schema of the place has changed, and only then', () => {
    const change = (place: JsonObject, beside: JsonObject) => closed({ gain_db: place, beside });
    const input = { gain_db: '3 dB' };
    const before = identify(change(number, number), input);
    expect(identify(change(number, { type: 'string' }), input)).toEqual(before);
    expect(identify(change({ ...number, maximum: 6 }, number), input)).not.toEqual(before);
  });

  it('is none where another proposal has the same', () => {
    const schema = closed({ side: { enum: ['cat', 'car'] } });
    expect(identify(schema, { side: 'cax' })).toEqual([null, null]);
  });

  it('holds no value and no key of a map, whatever they are', () => {
    const word = fc.string({ minLength: 1, maxLength: 12 }).filter((text) => !isForbiddenName(text));
    const value = fc.integer({ min: 100_000, max: 999_999 });
    fc.assert(
      fc.property(word, value, (key, gain) => {
        const found = identify(mix, { by_name: Object.fromEntries([[key, { gain_db: `${gain} dB` }]]) });
        expect(found).toMatchObject([{ operation: 'coerce.dB', place: '/by_name/{}/gain_db' }]);
      }),
    );
  });
});

const anIdentity = fc.record({
  operation: fc.constantFrom('coerce.dB', 'rename.key', 'coerce.%'),
  place: fc.constantFrom('/a', '/a of schema b', '/a/*/{}', '/ at /b', ''),
  schema_sha256: fc.constantFrom(digest('one'), digest('two')),
});

test('the template of a decided repair reads as the identity that it was written from', () => {
  fc.assert(
    fc.property(anIdentity, (one) => {
      expect(readRepairTemplate(writeRepairTemplate(one))).toEqual(one);
    }),
  );
  expect(readRepairTemplate('repair the roof')).toBeNull();
});

test('a decided repair is chosen only where no other proposal is decided', () => {
  const proposed = fc.array(fc.option(anIdentity), { maxLength: 3 });
  fc.assert(
    fc.property(proposed, fc.array(anIdentity, { maxLength: 3 }), (proposals, decided) => {
      const known = decided.map(writeRepairTemplate);
      const hits = proposals.flatMap((one, at) =>
        one !== null && known.includes(writeRepairTemplate(one)) ? [at] : [],
      );
      expect(chooseDecided(proposals, decided)).toBe(hits.length === 1 ? hits[0] : null);
    }),
  );
});

describe('evidence', () => {
  const anEvidence = fc.record({
    outcome: fc.constantFrom('for', 'for', 'for', 'against'),
    run_id: fc.constantFrom('run_1', 'run_2', 'run_3'),
  }) as fc.Arbitrary<RepairEvidence>;
  const agreed = (...runs: string[]): RepairEvidence[] => runs.map((run_id) => ({ outcome: 'for', run_id }));

  it.each<[string, RepairEvidence[], boolean]>([
    ['nothing', [], false],
    ['two decisions', agreed('a', 'b'), false],
    ['three decisions in one run', agreed('a', 'a', 'a'), false],
    ['three decisions in two runs', agreed('a', 'a', 'b'), true],
    ['one of many against it', [...agreed('a', 'b', 'c', 'd'), { outcome: 'against', run_id: 'e' }], false],
  ])('of %s is enough: %j, %s', (_, evidence, expected) => {
    expect(isSure(evidence)).toBe(expected);
  });

  it('does not depend on the order, and nothing outweighs a decision against', () => {
    fc.assert(
      fc.property(fc.array(anEvidence, { maxLength: 8 }), fc.nat(), (evidence, seed) => {
        const turned = [...evidence.slice(seed % 9), ...evidence.slice(0, seed % 9)];
        expect(isSure(turned)).toBe(isSure(evidence));
        expect(isSure([...evidence, { outcome: 'against', run_id: 'run_9' }])).toBe(false);
      }),
    );
  });

  it('only grows towards sure by decisions for it', () => {
    fc.assert(
      fc.property(fc.array(anEvidence, { maxLength: 8 }), anEvidence, (evidence, more) => {
        if (isSure(evidence)) expect(isSure([...evidence, more])).toBe(more.outcome === 'for');
      }),
    );
  });
});

describe('a decision about proposals', () => {
  const repair = (place: string): RepairIdentity => ({
    operation: 'coerce.dB',
    place,
    schema_sha256: digest(''),
  });
  const proposals: ReviewProposal[] = [
    { input: { gain: 1 }, patch: [], source: 'repair', repair: repair('/one') },
    { input: { gain: 2 }, patch: [], source: 'repair', repair: repair('/two') },
    { input: { gain: 3 }, patch: [], source: 'repair' },
  ];
  const weigh = (decided: Parameters<typeof weighProposals>[1]) =>
    weighProposals(proposals, decided).map(({ proposal, outcome }) => [proposal, outcome]);

  it.each<[string, Parameters<typeof weighProposals>[1], readonly (readonly [number, string])[]]>([
    [
      'is for the one that worked and against the others',
      { kind: 'succeeded', input: { gain: 2 } },
      [
        [0, 'against'],
        [1, 'for'],
      ],
    ],
    [
      'is against all when another input worked',
      { kind: 'succeeded', input: { gain: 9 } },
      [
        [0, 'against'],
        [1, 'against'],
      ],
    ],
    ['is against the one that failed only', { kind: 'failed', input: { gain: 1 } }, [[0, 'against']]],
    ['is nothing when another input failed', { kind: 'failed', input: { gain: 9 } }, []],
    [
      'is against all that were rejected',
      { kind: 'rejected' },
      [
        [0, 'against'],
        [1, 'against'],
      ],
    ],
  ])('%s', (_, decided, expected) => {
    expect(weigh(decided)).toEqual(expected);
  });
});

test('the people whose decisions a repair follows are named', () => {
  expect(describeDecided({ by: ['ana', 'ben'], times: 3 })).toBe('as decided by ana, ben (3 times)');
  expect(describeDecided({ by: ['ana'], times: 1 })).toBe('as decided by ana (1 time)');
  const others: Json[] = ['ana', null, { by: 'ana', times: 3 }, { times: 3 }];
  expect(others.map(describeDecided)).toEqual([null, null, null, null]);
});
