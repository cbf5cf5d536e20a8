import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NamedFleet, type Ownership, serves, shownShares } from '../../src/routing/visible-to.ts';

const projects = ['a', 'b', 'c', 'all', ''];
const anOwnership = fc.record<Ownership>({
  owner_project: fc.constantFrom(...projects),
  shared_with: fc.oneof(
    fc.constant('all' as const),
    fc.array(fc.constantFrom(...projects), { maxLength: 4 }),
  ),
});

describe('an instance of project a', () => {
  const own = (shared_with: Ownership['shared_with']): Ownership => ({ owner_project: 'a', shared_with });
  it.each([
    [[], { a: true, b: false, all: false }],
    ['all', { a: true, b: true, all: true }],
    [['b'], { a: true, b: true, c: false, all: false }],
    [['b', 'c'], { b: true, c: true, d: false }],
    // A list with the id of a project that is called all names that project.
    [['all'], { a: true, all: true, b: false }],
  ] as const)('that is shared with %j serves %j', (shared_with, expected) => {
    const seen = Object.keys(expected).map((project) => [project, serves(own(shared_with), project)]);
    expect(Object.fromEntries(seen)).toEqual(expected);
  });

  it.each([
    [['b', 'c'], 'a', ['b', 'c']],
    [['b', 'c'], 'b', ['b']],
    ['all', 'c', 'all'],
  ] as const)(
    'that is shared with %j shows to %s that it is shared with %j',
    (shared_with, viewer, shown) => {
      expect(shownShares(own(shared_with), viewer)).toEqual(shown);
    },
  );
});

it('the owners of a fleet are those whom an instance serves that does not serve all', () => {
  const fleet = new NamedFleet<string, readonly string[]>((instances) => instances);
  fleet.add('shared', { owner_project: 'a', shared_with: 'all' });
  expect(fleet.owners()).toEqual([]);
  fleet.add('own', { owner_project: 'b', shared_with: ['c'] });
  expect(fleet.owners()).toEqual(['b', 'c']);
});

describe('the index of a fleet', () => {
  it('has for each project the instances that serve it, each once, and no other', () => {
    fc.assert(
      fc.property(
        fc.array(anOwnership, { maxLength: 8 }),
        fc.constantFrom(...projects, 'nobody'),
        (fleet, project) => {
          const index = new NamedFleet((instances: readonly Ownership[]) => instances);
          for (const instance of fleet) index.add(instance, instance);
          expect(index.instances).toEqual(fleet);
          const expected = fleet.filter((instance) => serves(instance, project));
          expect(new Set(index.of(project))).toEqual(new Set(expected));
          expect(index.of(project).length).toBe(expected.length);
          expect(index.isOwn(project)).toBe(expected.some(({ shared_with }) => shared_with !== 'all'));
          expect(index.of(null)).toEqual(fleet.filter(({ shared_with }) => shared_with === 'all'));
        },
      ),
    );
  });

  it('makes the fleet of a project once, and one for all projects without instances of their own', () => {
    let made = 0;
    const index = new NamedFleet((instances: readonly string[]) => {
      made += 1;
      return instances;
    });
    index.add('shared', { owner_project: 'a', shared_with: 'all' });
    index.add('own', { owner_project: 'b', shared_with: [] });
    for (const project of ['b', 'b', 'c', 'd', 'a']) index.of(project);
    expect([made, index.of('b'), index.of('c') === index.of('d')]).toEqual([2, ['own', 'shared'], true]);
  });
});
