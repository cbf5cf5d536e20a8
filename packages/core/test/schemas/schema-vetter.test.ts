import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { aHeavySchema } from '../../../../test/use-cases/registry/heavy-schema.ts';
import type { JsonObject } from '../../src/contracts/primitives.ts';
import {
  createSchemaVetter,
  type SchemaVetter,
  type SchemaVetterOptions,
} from '../../src/schemas/schema-vetter.ts';

const vetters: SchemaVetter[] = [];
function aVetter(options: SchemaVetterOptions): SchemaVetter {
  const vetter = createSchemaVetter(options);
  vetters.push(vetter);
  return vetter;
}
/** Starts its thread once. */
const usual = createSchemaVetter();
afterEach(() => Promise.all(vetters.splice(0).map((vetter) => vetter.close())));
afterAll(() => usual.close());

/** Not simple, so a thread looks at it. */
const good: JsonObject = { type: 'object', properties: { a: { type: 'string', pattern: '^a' } } };

describe('vet', () => {
  it('accepts schemas that compile, and gives the reason for others', async () => {
    expect(await usual.vet(good)).toBeNull();
    expect(await usual.vet({ type: 'objekt' })).toMatch(/type/);
    expect(await usual.vet({ $ref: '#/$defs/none' })).toMatch(/none/);
  });

  it('refuses a schema that overflows the stack, which is smaller in the thread than here', async () => {
    const names = Array.from({ length: 490 }, (_, at) => [`d${at}`, { not: { $ref: `#/$defs/d${at + 1}` } }]);
    const $defs = Object.fromEntries([...names, ['d490', {}]]);
    expect(await usual.vet({ $ref: '#/$defs/d0', $defs })).toBe(
      'its references lead too far from each other',
    );
  });

  it('stops a schema that takes too long, and continues with the next one', async () => {
    const vetter = aVetter({ timeLimitMs: 60 });
    expect(await vetter.vet(aHeavySchema())).toBe('takes more than 60 ms to compile');
    expect(await vetter.vet(good)).toBeNull();
  });

  it('counts processor time: who waits for a busy process is not late', async () => {
    const vetter = aVetter({ timeLimitMs: 60 });
    await vetter.vet(good);
    await new Promise(setImmediate); // timers come before the thread's answer from here
    const verdict = vetter.vet({ ...good, title: 'another' });
    for (let turn = 0; turn < 20; turn++) await Promise.resolve(); // it is sent to the thread, which has not answered
    const busyUntil = performance.now() + 300;
    while (performance.now() < busyUntil);
    expect(await verdict).toBeNull();
  });

  it('stops a schema that takes too much memory, and continues with the next one', async () => {
    const vetter = aVetter({ timeLimitMs: 20_000, heapLimitMb: 40 });
    expect(await vetter.vet(aHeavySchema())).toBe('takes more than 40 MiB to compile');
    expect(await vetter.vet(good)).toBeNull();
  });

  it('answers many at once, each its own', async () => {
    const schemas = Array.from({ length: 20 }, (_, at): JsonObject => (at % 2 ? good : { type: `t${at}` }));
    const faults = await Promise.all(schemas.map((schema) => usual.vet(schema)));
    expect(faults.map((fault) => fault === null)).toEqual(schemas.map((schema) => schema === good));
  });

  it('ends with the caller’s signal, and serves others afterwards', async () => {
    const vetter = aVetter({ timeLimitMs: 20_000 });
    await vetter.vet(good);
    const abort = new AbortController();
    const vetting = vetter.vet(aHeavySchema(), abort.signal);
    abort.abort(new Error('enough'));
    await expect(vetting).rejects.toThrow('enough');
    expect(await vetter.vet({ ...good, title: 'another' })).toBeNull();
  });
});
