import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { type PatchOperation, valueAt } from '../../src/json/patch.ts';
import { canonicalJson, isPlainObject } from '../../src/json/values.ts';
import { applyRepair, proposeRepairs } from '../../src/repair/propose-repairs.ts';
import { brokenInputs, inputSchemas } from './broken-inputs.ts';
import { inputChecks } from './play-broken-input.ts';

interface Spoilt {
  readonly capability: keyof typeof inputSchemas;
  readonly input: Json;
}

type Spoil = (object: JsonObject, key: string, other: string) => JsonObject;

function without(object: JsonObject, key: string): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== key));
}

/** How a key or its value goes wrong. */
const spoils: readonly Spoil[] = [
  (object, key) => without(object, key),
  (object, key) => ({ ...without(object, key), [key.toUpperCase()]: object[key] ?? null }),
  (object, key) => ({ ...without(object, key), [`${key}s`]: object[key] ?? null }),
  (object, key) => ({ ...without(object, key), [key.replace('_', '')]: object[key] ?? null }),
  (object, key, other) => ({ ...object, [key]: object[other] ?? null }),
  (object, key) => ({ ...object, [`${key}2`]: object[key] ?? null }),
  (object, key) => ({ ...object, [key]: null }),
  (object, key) => ({ ...object, [key]: [object[key] ?? null] }),
  (object, key) => ({ ...object, [key]: ` ${String(object[key])}\n` }),
  (object, key) => ({ ...object, [key]: String(object[key]).toUpperCase() }),
  (object, key) => ({ ...object, [key]: Number(object[key]) * 11 || -1 }),
  (object, key) => ({ ...object, extra: object[key] ?? null }),
];

/** One of the spoils at a key of the object, or of an object inside it. */
function spoilAt(input: Json, [deep, key, other, kind]: readonly number[]): Json {
  if (Array.isArray(input))
    return input.map((item) => spoilAt(item, [deep ?? 0, key ?? 0, other ?? 0, kind ?? 0]));
  if (!isPlainObject(input)) return input;
  const keys = Object.keys(input);
  const pick = (at = 0): string => keys[at % keys.length] ?? '';
  const child = input[pick(key)];
  if ((deep ?? 0) > 0 && child !== undefined && typeof child === 'object') {
    return { ...input, [pick(key)]: spoilAt(child, [(deep ?? 0) - 1, other ?? 0, key ?? 0, kind ?? 0]) };
  }
  const spoil = spoils[(kind ?? 0) % spoils.length];
  return spoil === undefined ? input : spoil(input, pick(key), pick(other));
}

const anySpoilt: fc.Arbitrary<Spoilt> = fc
  .tuple(
    fc.constantFrom(...brokenInputs),
    fc.boolean(),
    fc.array(fc.array(fc.nat(20), { minLength: 4, maxLength: 4 }), { minLength: 1, maxLength: 3 }),
  )
  .map(([{ capability, input, answer }, isRight, places]) => ({
    capability,
    input: places.reduce(spoilAt, isRight && answer !== null ? answer : input),
  }));

/** Texts that hold a reference, however deep, and the value at an output path; sorted. */
function protectedIn(value: Json, isPath = false): string[] {
  const own = isPath || (typeof value === 'string' && value.includes('://')) ? [canonicalJson(value)] : [];
  if (value === null || typeof value !== 'object') return own;
  return [...own, ...Object.entries(value).flatMap(([key, one]) => protectedIn(one, key === 'output_path'))];
}

function references(value: Json): string[] {
  return protectedIn(value)
    .filter((text) => text.includes('://') && text.startsWith('"'))
    .sort();
}

/** As RFC 6902 has it: a failing test fails the whole. */
function guardsHold(input: Json, operations: readonly PatchOperation[]): boolean {
  return operations.every((operation, at) => {
    if (operation.op !== 'test') return true;
    const now = applyRepair(input, operations.slice(0, at));
    const seen = now === undefined ? undefined : valueAt(now, operation.path);
    return seen !== undefined && canonicalJson(seen) === canonicalJson(operation.value);
  });
}

function repairOf({ capability, input }: Spoilt) {
  return proposeRepairs({ schema: inputSchemas[capability], input, errorsOf: inputChecks[capability].find });
}

describe('whatever is wrong with an input', () => {
  it('a proposal makes it valid, by a patch whose guards hold', () => {
    fc.assert(
      fc.property(anySpoilt, (spoilt) => {
        for (const { operations } of repairOf(spoilt).proposals) {
          expect(guardsHold(spoilt.input, operations)).toBe(true);
          const repaired = applyRepair(spoilt.input, operations);
          expect(repaired).toBeDefined();
          expect(inputChecks[spoilt.capability](repaired ?? null)).toEqual([]);
        }
      }),
      { numRuns: runs(200) },
    );
  });

  it('an applied repair is one operation, the only proposal of its kind, and leaves references as they are', () => {
    let applied = 0;
    fc.assert(
      fc.property(anySpoilt, (spoilt) => {
        const { applicable, proposals } = repairOf(spoilt);
        if (applicable === null) return;
        applied++;
        expect(proposals).toEqual([applicable]);
        expect(applicable.operations.filter(({ op }) => op !== 'test')).toHaveLength(1);
        const repaired = applyRepair(spoilt.input, applicable.operations) ?? null;
        expect(references(repaired)).toEqual(references(spoilt.input));
        const before = valueAt(spoilt.input, '/output_path');
        if (before !== undefined) expect(valueAt(repaired, '/output_path')).toEqual(before);
      }),
      { numRuns: runs(200) },
    );
    expect(applied).toBeGreaterThan(runs(2));
  });
});
