/**
 * The router's knowledge of all instances: the last polls, corrected by its own claims and releases since. A note
 * counts until a poll that began after it has been accepted, because that poll has counted it. Snapshots are kept and
 * changed in place, so that a choice reads them and copies nothing.
 */

import type { Fleet, FleetNow } from '@capstan/core/call/claim-search';
import { evictedAfterMs, mostTimed, queueDepthMs, timedMs } from '@capstan/core/contracts/limits';
import { type SharedHost, SharedHosts } from '@capstan/core/hosts/shared-hosts';
import { anyKey, type LoadBook, type LoadTimes, serveKey } from '@capstan/core/residency/residency';
import { isDeclaring } from '@capstan/core/routing/call-bound';
import { countFree, routeOfLine } from '@capstan/core/routing/call-line';
import { priorDuration } from '@capstan/core/routing/estimate';
import { isLocal } from '@capstan/core/routing/ranking';
import type { InstanceSnapshot } from '@capstan/core/routing/types';
import { NamedFleet } from '@capstan/core/routing/visible-to';
import { LRUCache } from 'lru-cache';
import type { FeedPoll, FeedRow } from '../../db/instance/instance-list.ts';

/** The instances that serve one project: no other exists for its calls. */
export interface ProjectFleet extends FleetNow {
  /** Keeps the calls that wait apart from those of other projects; null: its instances are those that serve all. */
  scopeOf(capability: string): string | null;
}

/** Projects whose view of the fleet is kept. */
const mostViews = 1_000;

export interface FleetView {
  /** The fleet of a project; null: of one that has no instance of its own. */
  seenBy(projectId: string | null): ProjectFleet;
  /** The projects that have instances of a capability which do not serve all. */
  ownersOf(capability: string): readonly string[];
  /** All instances of a capability, of any project. */
  all(capability: string): readonly InstanceSnapshot[];
  find(instanceId: string): InstanceSnapshot | undefined;
  /** The names of the instances that share the slots of this one: its own, or those on its host. */
  sharers(instanceId: string): Iterable<string>;
  /** The database's clock, as far as it is known. */
  nowMs(): number;
  note(instanceId: string, by: 1 | -1): void;
  /** A call with the key begins on an instance. @returns whether its list has changed */
  noteServed(instanceId: string, key: string): boolean;
  /** A call with the key has failed where it was not loaded before. */
  noteUnloaded(instanceId: string, key: string): void;
  /** Counts a call more. @returns reverts it, unless a poll has counted it by then */
  noteClaim(instanceId: string): () => void;
  /** Counts calls on leased slots of this process, which polls leave out. */
  noteLeased(instanceId: string, by: 1 | -1): void;
  /** Whether another router waits for a slot that this process has leased, by the last poll; true once for each poll. */
  takeSlotRequest(instanceId: string): boolean;
  /** How long ago the last accepted poll began. */
  ageMs(): number;
  /** Whether any call of a step waits in a line. */
  hasLines(): boolean;
  /** The free slots of capabilities for which calls wait in lines. */
  roomInLines(): number;
  /** Calls of steps that wait in a line for a slot, with this rank or a better one (1 is the best). */
  inLine(line: string, rank: number): number;
  /** Counts a call more in a line, until the next poll. */
  noteInLine(line: string, rank: number): void;
  /** Calls that have ended and whose end is not written yet. */
  noteLeaving(instanceId: string, by: 1 | -1): void;
  /** Where the next poll starts. */
  beginPoll(): string;
  acceptPoll(poll: FeedPoll): void;
  /** The open poll failed: its notes stay. */
  dropPoll(): void;
}

type Known = { -readonly [Key in keyof InstanceSnapshot]: InstanceSnapshot[Key] };

interface Entry {
  readonly snapshot: Known;
  /** Null: none. */
  host: SharedHost | null;
  row: FeedRow;
  polledHeld: number;
  /** Claims minus releases since the open poll began, and between the last accepted poll and that. */
  notes: number;
  notesBeforePoll: number;
  /** Calls on leased slots of this process. */
  leased: number;
  /** Counted in the database, but not for the next claim of this process, whose statement writes their ends. */
  leaving: number;
}

const noFleet: Fleet = { instances: [], priorMs: priorDuration([]) };

/** The averages of calls with keys, of the capabilities of each project. Keys are forgotten as in the database. */
class LoadTimeView {
  readonly #ofAll = new Map<string, LoadTimes>();
  readonly #ofKeys = new Map<string, LRUCache<string, LoadTimes>>();

  accept(rows: FeedPoll['load_times']): void {
    for (const [owner, name, key, warmMs, coldMs] of rows) {
      const place = `${owner} ${name}`;
      if (key === anyKey) this.#ofAll.set(place, { warmMs, coldMs });
      else this.#keysOf(place).set(key, { warmMs, coldMs });
    }
  }

  #keysOf(place: string): LRUCache<string, LoadTimes> {
    const keys = this.#ofKeys.get(place) ?? new LRUCache<string, LoadTimes>({ max: mostTimed, ttl: timedMs });
    this.#ofKeys.set(place, keys);
    return keys;
  }

  /** Of a capability. */
  bookOf(name: string): LoadBook {
    return (owner, key) => {
      const place = `${owner} ${name}`;
      return key === anyKey ? this.#ofAll.get(place) : this.#ofKeys.get(place)?.get(key);
    };
  }
}

function toFleet(instances: readonly InstanceSnapshot[], times: LoadTimeView): Fleet {
  const [first] = instances;
  if (first === undefined) return noFleet;
  const declaring = instances.filter(isDeclaring);
  return {
    instances,
    priorMs: priorDuration(instances),
    declaring: declaring.length === 0 ? undefined : declaring,
    hasAffinity: instances.some(({ affinity }) => affinity != null),
    loads: times.bookOf(first.name),
  };
}

function countHeld({ polledHeld, notes, notesBeforePoll, leased, leaving }: Entry): number {
  return Math.max(0, polledHeld + notes + notesBeforePoll + leased - leaving);
}

function count(entry: Entry): void {
  entry.snapshot.held = countHeld(entry);
  entry.host?.share();
}

function readRanks(ranks: Readonly<Record<string, number>>): Map<number, number> {
  return new Map(Object.entries(ranks).map(([rank, calls]) => [Number(rank), calls]));
}

type Fleets = Map<string, NamedFleet<InstanceSnapshot, Fleet>>;

function addTo(fleets: Fleets, { snapshot, row }: Entry, times: LoadTimeView): void {
  const named = fleets.get(row.name) ?? new NamedFleet((instances) => toFleet(instances, times));
  fleets.set(row.name, named);
  named.add(snapshot, row);
}

export function createFleetView(): FleetView {
  const entries = new Map<string, Entry>();
  const times = new LoadTimeView();
  const hosts = new SharedHosts();
  let fleets: Fleets = new Map();
  let horizon = '0';
  /** Numbers of polls. */
  let begun = 0;
  let accepted = 0;
  let clock = { databaseMs: Date.now(), ownMs: performance.now() };
  let slotRequests = new Set<string>();
  let lines = new Map<string, Map<number, number>>();
  /** A call asks several times. */
  const views = new LRUCache<string, ProjectFleet>({ max: mostViews });
  const readAt = { begun: Number.NEGATIVE_INFINITY, accepted: Number.NEGATIVE_INFINITY };

  const accept = (row: FeedRow): void => {
    const { reported_at_ms, down_since_ms, shared_with, slots_of_host, ...fields } = row;
    const known = entries.get(row.instance_id);
    const facts = { is_local: isLocal(row), ...fields };
    if (known === undefined) {
      const snapshot: Known = { held: 0, host_calls: null, host_room: null, ...facts };
      entries.set(row.instance_id, {
        snapshot,
        host: hosts.place(snapshot, row, null),
        row,
        polledHeld: 0,
        notes: 0,
        notesBeforePoll: 0,
        leased: 0,
        leaving: 0,
      });
    } else {
      known.row = row;
      Object.assign(known.snapshot, facts);
      known.host = hosts.place(known.snapshot, row, known.host);
    }
  };

  const isEvicted = ({ row }: Entry, nowMs: number): boolean =>
    row.down_since_ms !== null && nowMs - row.down_since_ms > evictedAfterMs;

  /** Every poll ends with recomputed counts, ages and fleets: some microseconds per instance, four times a second. */
  const recount = ({ held, busy_since }: Pick<FeedPoll, 'held' | 'busy_since'>, nowMs: number): void => {
    const named: Fleets = new Map();
    for (const [id, entry] of entries) {
      entry.polledHeld = held[id] ?? 0;
      entry.notesBeforePoll = 0;
      entry.snapshot.held = countHeld(entry);
      entry.snapshot.busy_since_ms = busy_since[id] ?? null;
      const { reported_at_ms, reported_extra } = entry.row;
      const isFresh = reported_at_ms !== null && nowMs - reported_at_ms <= queueDepthMs;
      entry.snapshot.reported_extra = isFresh ? reported_extra : 0;
      const isGone = isEvicted(entry, nowMs) || entry.row.state === 'deregistered';
      if (isGone && entry.snapshot.held === 0) {
        entries.delete(id);
        hosts.remove(entry.snapshot, entry.host);
      } else if (!isEvicted(entry, nowMs)) addTo(named, entry, times); // its calls hold slots of its host until they end
    }
    hosts.shareAll();
    fleets = named;
  };
  const nowMs = (): number => clock.databaseMs + performance.now() - clock.ownMs;
  const seeAs = (projectId: string | null): ProjectFleet => ({
    of: (capability) => fleets.get(capability)?.of(projectId) ?? noFleet,
    scopeOf: (capability) => (fleets.get(capability)?.isOwn(projectId) ? projectId : null),
    nowMs,
  });

  const all: FleetView['all'] = (capability) => fleets.get(capability)?.instances ?? [];

  return {
    seenBy: (projectId) => {
      const name = projectId ?? '';
      const known = views.get(name);
      if (known !== undefined) return known;
      const view = seeAs(projectId);
      views.set(name, view);
      return view;
    },
    ownersOf: (capability) => fleets.get(capability)?.owners() ?? [],
    all,
    find: (instanceId) => entries.get(instanceId)?.snapshot,
    sharers: (instanceId) => {
      const entry = entries.get(instanceId);
      if (entry === undefined) return [];
      return entry.host === null ? [entry.snapshot.name] : entry.host.names();
    },
    nowMs,
    note: (instanceId, by) => {
      const entry = entries.get(instanceId);
      if (entry === undefined) return;
      entry.notes += by;
      count(entry);
    },
    noteClaim: (instanceId) => {
      const entry = entries.get(instanceId);
      if (entry === undefined) return () => undefined;
      const notedAfter = begun;
      entry.notes += 1;
      count(entry);
      if (entry.snapshot.held === 1) entry.snapshot.busy_since_ms = nowMs();
      return () => {
        if (accepted > notedAfter) return;
        if (begun > notedAfter) entry.notesBeforePoll -= 1;
        else entry.notes -= 1;
        count(entry);
      };
    },
    noteLeased: (instanceId, by) => {
      const entry = entries.get(instanceId);
      if (entry === undefined) return;
      entry.leased = Math.max(0, entry.leased + by);
      count(entry);
    },
    takeSlotRequest: (instanceId) => slotRequests.delete(instanceId),
    hasLines: () => lines.size > 0,
    roomInLines: () => {
      const names = new Set([...lines.keys()].map((line) => routeOfLine(line).capability));
      return [...names].reduce((sum, name) => sum + countFree(all(name)), 0);
    },
    inLine: (line, rank) => {
      let calls = 0;
      for (const [own, count] of lines.get(line) ?? []) if (own <= rank) calls += count;
      return calls;
    },
    noteInLine: (line, rank) => {
      const ranks = lines.get(line) ?? new Map<number, number>();
      lines.set(line, ranks.set(rank, (ranks.get(rank) ?? 0) + 1));
    },
    ageMs: () => performance.now() - readAt.accepted,
    noteLeaving: (instanceId, by) => {
      const entry = entries.get(instanceId);
      if (entry === undefined) return;
      entry.leaving = Math.max(0, entry.leaving + by);
      count(entry);
    },
    beginPoll: () => {
      begun += 1;
      readAt.begun = performance.now();
      for (const entry of entries.values()) {
        entry.notesBeforePoll += entry.notes;
        entry.notes = 0;
      }
      return horizon;
    },
    noteServed: (instanceId, key) => {
      const snapshot = entries.get(instanceId)?.snapshot;
      if (snapshot === undefined) return false;
      snapshot.last_call_ms = nowMs();
      if (snapshot.resident?.[0] === key) return false;
      snapshot.resident = serveKey(snapshot.resident ?? [], key, snapshot.max_resident ?? 1);
      return true;
    },
    noteUnloaded: (instanceId, key) => {
      const snapshot = entries.get(instanceId)?.snapshot;
      if (snapshot?.resident?.includes(key))
        snapshot.resident = snapshot.resident.filter((one) => one !== key);
    },
    acceptPoll: ({ instances, now_ms, ...poll }) => {
      accepted = begun;
      readAt.accepted = readAt.begun;
      slotRequests = new Set(poll.slot_requests);
      lines = new Map(Object.entries(poll.lines).map(([line, ranks]) => [line, readRanks(ranks)]));
      horizon = poll.horizon;
      clock = { databaseMs: now_ms, ownMs: performance.now() };
      for (const row of instances) accept(row);
      times.accept(poll.load_times);
      recount(poll, now_ms);
    },
    dropPoll: () => {
      begun -= 1;
      for (const entry of entries.values()) {
        entry.notes += entry.notesBeforePoll;
        entry.notesBeforePoll = 0;
      }
    },
  };
}
