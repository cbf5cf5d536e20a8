/** A browser with tabs of the console, as their contact sees it: one lock, a channel, a server that comes and goes. */
import {
  beginContact,
  type ContactAction,
  type ContactEvent,
  contactOf,
  factsOf,
  nextContact,
  type TabContact,
} from '../../src/live/contact-states.ts';

interface Tab {
  state: TabContact;
  isFrozen: boolean;
  /** Of the stream, while it holds one. */
  source: 'none' | 'pending' | 'open' | 'broken';
  inbox: ContactEvent[];
  reads: number;
}

export interface World {
  readonly tabs: Tab[];
  /** Those that wait for the lock, behind the one that has it. */
  readonly lock: Tab[];
  isUp: boolean;
  isOnline: boolean;
  /** The server answers requests, and refuses streams. */
  isRefusing: boolean;
  now: number;
  /** The moments at which a request was not answered. */
  readonly silences: Set<number>;
}

export function createWorld(): World {
  return { tabs: [], lock: [], isUp: true, isOnline: true, isRefusing: false, now: 1, silences: new Set() };
}

function isReachable({ isUp, isOnline }: World): boolean {
  return isUp && isOnline;
}

export function awakeTabs({ tabs }: World): Tab[] {
  return tabs.filter(({ isFrozen }) => !isFrozen);
}

export function contacts(world: World): string[] {
  return awakeTabs(world).map(({ state }) => contactOf(state).kind);
}

/** A tab that is not frozen and receives frames. */
export function livingLeaders(world: World): Tab[] {
  return awakeTabs(world).filter(
    ({ state, source }) => state.role === 'leader' && source === 'open' && isReachable(world),
  );
}

function broadcast({ tabs }: World, from: Tab, event: ContactEvent): void {
  for (const tab of tabs) if (tab !== from) tab.inbox.push(event);
}

function giveLock({ lock }: World): void {
  const [holder] = lock;
  if (holder === undefined || holder.source !== 'none') return;
  holder.source = 'pending';
  holder.inbox.push({ kind: 'led' });
}

function takeOver(world: World, thief: Tab): void {
  const [holder] = world.lock;
  if (holder === undefined || holder === thief) return;
  world.lock.splice(world.lock.indexOf(thief), 1);
  holder.source = 'none';
  holder.inbox.push({ kind: 'deposed' });
  // It waits for the lock again, as the last.
  world.lock.push(world.lock.shift() as Tab);
  world.lock.unshift(thief);
  giveLock(world);
}

/** The end of a request that the tab makes now. */
export function request(world: World, tab: Tab): void {
  if (!isReachable(world)) world.silences.add(world.now);
  tab.inbox.push(isReachable(world) ? { kind: 'answered' } : { kind: 'unanswered', at: world.now });
}

function act(world: World, tab: Tab, action: ContactAction): void {
  const facts = factsOf(tab.state);
  const doings: Readonly<Record<ContactAction, () => void>> = {
    ask: () => broadcast(world, tab, { kind: 'asked' }),
    tell: () => broadcast(world, tab, { kind: 'told', facts, isFresh: false }),
    tell_fresh: () => broadcast(world, tab, { kind: 'told', facts, isFresh: true }),
    vouch: () => broadcast(world, tab, { kind: 'vouched' }),
    doubt: () => broadcast(world, tab, { kind: 'doubted' }),
    take_over: () => takeOver(world, tab),
    probe: () => request(world, tab),
    reopen: () => {
      if (tab.source !== 'none') tab.source = 'pending';
    },
    read_again: () => {
      tab.reads += 1;
    },
  };
  doings[action]();
}

function connect(world: World, tab: Tab): void {
  if (tab.source !== 'pending') return;
  tab.source = isReachable(world) && !world.isRefusing ? 'open' : 'broken';
  tab.inbox.push({ kind: tab.source === 'open' ? 'opened' : 'failed' });
}

/** Until every tab is at rest. @throws Error when tabs never come to rest */
export function settle(world: World): void {
  for (let round = 0; round < 200; round += 1) {
    const busy = awakeTabs(world).filter(({ inbox, source }) => inbox.length > 0 || source === 'pending');
    if (busy.length === 0) return;
    for (const tab of busy) {
      for (const event of tab.inbox.splice(0)) {
        const { state, actions } = nextContact(tab.state, event);
        tab.state = state;
        for (const action of actions) act(world, tab, action);
      }
      connect(world, tab);
    }
  }
  throw new Error('the tabs never come to rest');
}

export function openTab(world: World): Tab {
  const tab: Tab = { state: beginContact(true), isFrozen: false, source: 'none', inbox: [], reads: 0 };
  world.tabs.push(tab);
  world.lock.push(tab);
  act(world, tab, 'ask');
  giveLock(world);
  return tab;
}

/** Closed by a person or killed: the browser frees its lock. */
export function endTab(world: World, tab: Tab): void {
  world.tabs.splice(world.tabs.indexOf(tab), 1);
  world.lock.splice(world.lock.indexOf(tab), 1);
  giveLock(world);
}

export function freeze(tab: Tab): void {
  tab.isFrozen = true;
}

/** What was sent to it meanwhile comes first, or is lost, as browsers do either. */
export function thaw(tab: Tab, isDeaf: boolean): void {
  if (!tab.isFrozen) return;
  tab.isFrozen = false;
  const own = tab.inbox.filter(({ kind }) => ['led', 'deposed', 'opened', 'failed'].includes(kind));
  tab.inbox = [...(isDeaf ? own : tab.inbox), { kind: 'woke' }];
}

function cutStreams(world: World): void {
  for (const tab of world.tabs) {
    if (tab.source !== 'open' || !world.isOnline) continue;
    tab.source = 'broken';
    tab.inbox.push({ kind: 'failed' });
  }
}

export function turnServer(world: World, isUp: boolean): void {
  world.isUp = isUp;
  if (!isUp) cutStreams(world);
}

/** As when too many streams are open. */
export function turnStreams(world: World, isRefusing: boolean): void {
  world.isRefusing = isRefusing;
  if (isRefusing) cutStreams(world);
}

/** An open stream does not notice it. */
export function turnNetwork(world: World, isOnline: boolean): void {
  world.isOnline = isOnline;
  for (const tab of awakeTabs(world)) tab.inbox.push({ kind: isOnline ? 'woke' : 'doubted' });
}

/** Some seconds pass: timers of tabs that are awake, and the next try of their streams. */
export function pass(world: World): void {
  for (const tab of awakeTabs(world)) {
    tab.inbox.push({ kind: 'ticked' });
    if (tab.source === 'broken') tab.source = 'pending';
  }
}
