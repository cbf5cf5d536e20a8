import fc from 'fast-check';
import { expect, it } from 'vitest';
import { countCallable, type LineRoute, lineOf, routeOfLine } from '../../src/routing/call-line.ts';
import { anInstance } from './a-snapshot.ts';

const aRoute = fc.record<LineRoute>({
  scope: fc.option(fc.constantFrom('prj_a', '{', '["x"]'), { nil: null }),
  capability: fc.constantFrom('cut', 'model.fast'),
  versionRange: fc.option(fc.constantFrom('^1', '1.0.0'), { nil: null }),
  tags: fc.uniqueArray(fc.constantFrom('gpu', 'local', '{"scope":1}')),
});

function sorted({ scope = null, capability, versionRange, tags }: LineRoute) {
  return { scope, capability, versionRange, tags: [...tags].sort() };
}

it('the name of a line identifies its route and, where a project has instances of its own, the project', () => {
  fc.assert(
    fc.property(aRoute, aRoute, (one, other) => {
      expect(sorted(routeOfLine(lineOf(one)))).toEqual(sorted(one));
      const areAlike = JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
      expect(lineOf(one) === lineOf(other)).toBe(areAlike);
    }),
  );
});

it.each([
  ['keeps its slot for its work', 'held', 2],
  ['frees its slot at once', 'freed', 2 + 2 * 4],
] as const)('a long call that %s is called as early as that allows', (_, answers_later, room) => {
  const route: LineRoute = { capability: 'upscale', versionRange: null, tags: [] };
  const instance = anInstance('a', { max_concurrency: 2, duration_ms: 600_000, answers_later });
  expect(countCallable(route, [instance], { called: 0, nowMs: 0 })).toBe(room);
  expect(countCallable(route, [instance], { called: 100, nowMs: 0 })).toBe(0);
});
