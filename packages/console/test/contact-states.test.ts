/** Contact between tabs: what each of them reports, in every order of what may happen to tabs, server and network. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { beginContact, contactOf, mostAsks } from '../src/live/contact-states.ts';
import {
  awakeTabs,
  contacts,
  createWorld,
  endTab,
  freeze,
  livingLeaders,
  openTab,
  pass,
  request,
  settle,
  thaw,
  turnNetwork,
  turnServer,
  turnStreams,
  type World,
} from './support/tab-world.ts';

/** Enough for a silent leader to be replaced, and for the answer of its successor. */
const ticksUntilKnown = mostAsks + 2;

function passUntilKnown(world: World): void {
  for (let tick = 0; tick < ticksUntilKnown; tick += 1) {
    world.now += 1;
    pass(world);
    settle(world);
  }
}

function aWorld(tabs: number): World {
  const world = createWorld();
  for (let at = 0; at < tabs; at += 1) openTab(world);
  settle(world);
  return world;
}

const happenings = [
  'open',
  'end',
  'freeze',
  'thaw',
  'thaw_deaf',
  'down',
  'up',
  'restart',
  'offline',
  'online',
  'request',
  'pass',
  'hour',
  'refuse',
  'admit',
] as const;

type Happening = (typeof happenings)[number];

function sleepAnHour(world: World): void {
  for (const tab of world.tabs) freeze(tab);
  world.now += 3_600;
  for (const tab of world.tabs) thaw(tab, true);
}

function happen(world: World, what: Happening, at: number): void {
  const tab = world.tabs[at % Math.max(1, world.tabs.length)];
  if (what === 'open') openTab(world);
  else if (what === 'pass') pass(world);
  else if (what === 'hour') sleepAnHour(world);
  else if (what === 'down' || what === 'up') turnServer(world, what === 'up');
  else if (what === 'offline' || what === 'online') turnNetwork(world, what === 'online');
  else if (what === 'refuse' || what === 'admit') turnStreams(world, what === 'refuse');
  else if (what === 'restart') {
    turnServer(world, false);
    turnServer(world, true);
  } else if (tab === undefined) return;
  else if (what === 'end') endTab(world, tab);
  else if (what === 'freeze') freeze(tab);
  else if (what === 'thaw' || what === 'thaw_deaf') thaw(tab, what === 'thaw_deaf');
  else if (!tab.isFrozen) request(world, tab);
}

/** Those that claim an outage. */
function claimants(world: World): number[] {
  return awakeTabs(world).flatMap(({ state }) => {
    const contact = contactOf(state);
    return contact.kind === 'lost' ? [contact.since] : [];
  });
}

function expectTruth(world: World): void {
  const claimed = claimants(world);
  if (livingLeaders(world).length > 0) expect(claimed).toEqual([]);
  for (const since of claimed) expect(world.silences).toContain(since);
}

const story = fc.array(fc.tuple(fc.constantFrom(...happenings), fc.nat(5)), { maxLength: 60 });

function play(world: World, told: readonly (readonly [Happening, number])[]): void {
  for (const [what, at] of told) {
    world.now += 1;
    happen(world, what, at);
    settle(world);
    expectTruth(world);
  }
}

describe('in every order of events', () => {
  test('no tab claims an outage that no request has shown, or beside a tab with a stream', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), story, (tabs, told) => play(aWorld(tabs), told)),
      {
        numRuns: runs(300),
      },
    );
  });

  test('all tabs are live on one stream soon after the server is back, also if some sleep', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), story, (tabs, told) => {
        const world = aWorld(tabs);
        play(world, told);
        turnServer(world, true);
        turnStreams(world, false);
        if (!world.isOnline) turnNetwork(world, true);
        openTab(world);
        settle(world);
        passUntilKnown(world);
        expect(new Set(contacts(world))).toEqual(new Set(['live']));
        expect(livingLeaders(world)).toHaveLength(1);
      }),
      { numRuns: runs(300) },
    );
  });

  test('all tabs report a server that is gone, and one answer to any of them ends that everywhere', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), story, fc.nat(5), (tabs, told, at) => {
        const world = aWorld(tabs);
        play(world, told);
        openTab(world);
        turnServer(world, false);
        for (const tab of awakeTabs(world)) request(world, tab);
        settle(world);
        passUntilKnown(world);
        expect(new Set(contacts(world))).toEqual(new Set(['lost']));
        turnServer(world, true);
        if (!world.isOnline) turnNetwork(world, true);
        const awake = awakeTabs(world);
        request(world, awake[at % awake.length] as (typeof awake)[number]);
        settle(world);
        expect(claimants(world)).toEqual([]);
      }),
      { numRuns: runs(300) },
    );
  });
});

describe('a story', () => {
  test('a tab that watches nothing new learns that the stream is open', () => {
    const world = aWorld(1);
    openTab(world);
    settle(world);
    expect(contacts(world)).toEqual(['live', 'live']);
  });

  test('the next tab takes the lock of a killed leader, and all read what they missed', () => {
    const world = aWorld(3);
    const before = world.tabs.map(({ reads }) => reads);
    endTab(world, world.tabs[0] as World['tabs'][number]);
    settle(world);
    expect(contacts(world)).toEqual(['live', 'live']);
    expect(world.tabs.map(({ reads }, at) => reads > (before[at + 1] ?? 0))).toEqual([true, true]);
  });

  test('a frozen leader is replaced, and follows when it wakes', () => {
    const world = aWorld(2);
    const [leader] = world.tabs as [World['tabs'][number]];
    freeze(leader);
    passUntilKnown(world);
    expect(contacts(world)).toEqual(['live']);
    expect(livingLeaders(world)).toHaveLength(1);
    thaw(leader, true);
    settle(world);
    expect(contacts(world)).toEqual(['live', 'live']);
    expect(leader.state.role).toBe('follower');
  });

  test('a stream that is refused by a server that answers is no outage: tabs poll', () => {
    const world = aWorld(2);
    turnStreams(world, true);
    settle(world);
    expect(contacts(world)).toEqual(['polling', 'polling']);
  });

  test('after an hour of sleep all tabs read again and share one stream', () => {
    const world = aWorld(3);
    const before = world.tabs.map(({ reads }) => reads);
    sleepAnHour(world);
    settle(world);
    expect(contacts(world)).toEqual(['live', 'live', 'live']);
    expect(livingLeaders(world)).toHaveLength(1);
    expect(world.tabs.every(({ reads }, at) => reads > (before[at] ?? 0))).toBe(true);
  });

  test('without locks a tab polls, and reports an outage by its own requests alone', () => {
    expect(contactOf(beginContact(false))).toEqual({ kind: 'polling' });
  });
});
