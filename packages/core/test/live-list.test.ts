import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LiveList, type OpenEntry } from '../src/live-list.ts';

test('a live list has the members that were added and not removed, in any order', () => {
  const act = fc.oneof(fc.constant<'add'>('add'), fc.nat(20));
  fc.assert(
    fc.property(fc.array(act, { maxLength: 100 }), (acts) => {
      const open = new LiveList<number>();
      const added: OpenEntry<number>[] = [];
      const expected = new Set<number>();
      for (const [at, kind] of acts.entries()) {
        if (kind === 'add') {
          added.push(open.add(at));
          expected.add(at);
        } else {
          const entry = added[kind];
          if (entry !== undefined) expect(open.remove(entry)).toBe(expected.delete(entry.member));
        }
        expect(open.size).toBe(expected.size);
        expect(new Set(open.members())).toEqual(expected);
      }
    }),
  );
});

test('members may leave while it is read', () => {
  const open = new LiveList<string>();
  for (const member of ['a', 'b', 'c']) open.add(member);
  const seen: string[] = [];
  for (const entry of open.entries()) {
    seen.push(entry.member);
    open.remove(entry);
  }
  expect([seen, open.size]).toEqual([['a', 'b', 'c'], 0]);
});
