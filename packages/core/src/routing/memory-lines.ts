/**
 * The lines of calls that wait for a free slot, in memory: for mocks, in the place of rows of the database. Without N5: in
 * virtual time, being called without a result costs nothing.
 */

import { HostRooms } from '../hosts/host-rooms.ts';
import {
  compareInLine,
  countCallable,
  type LineRoute,
  lineOf,
  nextPlace,
  type PlaceInLine,
  rankOf,
} from './call-line.ts';
import type { InstanceSnapshot, RouteConstraints } from './types.ts';

type OwnRoute = LineRoute & Pick<RouteConstraints, 'priority'>;

/** A call in a line. */
export interface MemberOfLine extends PlaceInLine {
  readonly line: string;
  readonly runId: string;
  readonly route: OwnRoute;
  /** A slot is free for it. */
  readonly call: () => void;
  isCalled: boolean;
}

export class MemoryLines {
  readonly #instancesOf: (capability: string) => readonly InstanceSnapshot[];
  readonly #nowMs: () => number;
  readonly #lines = new Map<string, MemberOfLine[]>();
  /** The highest place that was called, by line and rank. */
  readonly #served = new Map<string, Map<number, number>>();
  /** The number of the last call of each line, of all calls. */
  readonly #turns = new Map<string, number>();
  #turn = 0;

  constructor(instancesOf: (capability: string) => readonly InstanceSnapshot[], nowMs: () => number) {
    this.#instancesOf = instancesOf;
    this.#nowMs = nowMs;
  }

  /** N4: calls in line before a call of this route and priority. */
  ahead(route: OwnRoute): number {
    const rank = rankOf(route.priority);
    return this.#membersOf(lineOf(route)).filter((member) => member.rank <= rank).length;
  }

  /** Calls before this one. */
  before(member: MemberOfLine): number {
    return this.#membersOf(member.line).filter((other) => compareInLine(other, member) < 0).length;
  }

  enter({
    route,
    runId,
    ...call
  }: Pick<MemberOfLine, 'runId' | 'route' | 'call' | 'queuedAtMs'>): MemberOfLine {
    const line = lineOf(route);
    const members = this.#membersOf(line);
    const last = members.reduce((most, one) => (one.runId === runId ? Math.max(most, one.place) : most), 0);
    const rank = rankOf(route.priority);
    const place = nextPlace(last, this.#servedIn(line, rank));
    const member = { ...call, route, runId, line, rank, place, isCalled: false };
    this.#lines.set(line, [...members, member]);
    return member;
  }

  /** It has its slot, or needs none any more. */
  leave(member: MemberOfLine): void {
    const { line } = member;
    const others = this.#membersOf(line).filter((other) => other !== member);
    if (others.length > 0) this.#lines.set(line, others);
    else {
      this.#lines.delete(line);
      this.#served.delete(line);
      this.#turns.delete(line);
    }
  }

  /** N3: calls members of the lines of capabilities, as far as slots are free. Lines that share a host take turns. */
  serve(capabilities: ReadonlySet<string>): void {
    const lines = this.#inTurn();
    const rooms = new HostRooms(lines);
    for (const [at, { line, route, members, called }] of lines.entries()) {
      const asked = { called, nowMs: this.#nowMs() };
      const waiting = members.length - called;
      const count = Math.min(waiting, countCallable(route, rooms.instancesOf(at), asked));
      if (waiting > 0 && count === 0) rooms.keep(at);
      if (count === 0 || !capabilities.has(route.capability)) continue;
      rooms.take(at, count);
      for (let calls = 0; calls < count; calls++) this.#callNext(line);
    }
  }

  /** Lines of a better rank first, then those that were not called for longest. */
  #inTurn() {
    const lines = [...this.#lines].map(([line, members]) => {
      const { route, rank } = nextOf(members) ?? (members[0] as MemberOfLine);
      const known = { instances: this.#instancesOf(route.capability).map(withoutSpeed) };
      const called = members.filter(({ isCalled }) => isCalled).length;
      return { line, members, route, known, called, rank, turn: this.#turns.get(line) ?? 0 };
    });
    return lines.sort((a, b) => a.rank - b.rank || a.turn - b.turn);
  }

  #membersOf(line: string): readonly MemberOfLine[] {
    return this.#lines.get(line) ?? [];
  }

  #callNext(line: string): void {
    const next = nextOf(this.#membersOf(line));
    if (next === undefined) return;
    next.isCalled = true;
    this.#turn += 1;
    this.#turns.set(line, this.#turn);
    const served = this.#served.get(line) ?? new Map<number, number>();
    this.#served.set(line, served.set(next.rank, Math.max(next.place, this.#servedIn(line, next.rank))));
    next.call();
  }

  #servedIn(line: string, rank: number): number {
    return this.#served.get(line)?.get(rank) ?? 0;
  }
}

/** The first of those that were not called. */
function nextOf(members: readonly MemberOfLine[]): MemberOfLine | undefined {
  const [first, ...others] = members.filter(({ isCalled }) => !isCalled);
  return others.reduce((best, one) => (compareInLine(one, best as MemberOfLine) < 0 ? one : best), first);
}

/** In memory, a slot is handed over at once, so no call is called ahead of a release. */
function withoutSpeed(instance: InstanceSnapshot): InstanceSnapshot {
  return { ...instance, duration_ms: null };
}
