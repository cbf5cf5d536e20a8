/** The lines of calls that wait for a free slot, in memory: for mocks, in the place of rows of the database. */
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
  /** The highest place that was called, by line. */
  readonly #served = new Map<string, number>();

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
    const place = nextPlace(last, this.#served.get(line) ?? 0);
    const member = { ...call, route, runId, line, rank: rankOf(route.priority), place, isCalled: false };
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
    }
  }

  /** N3: calls members of the lines of a capability, as far as slots are free. */
  serve(capability: string): void {
    for (const [line, [first]] of [...this.#lines]) {
      if (first?.route.capability !== capability) continue;
      while (this.#callNext(line));
    }
  }

  #membersOf(line: string): readonly MemberOfLine[] {
    return this.#lines.get(line) ?? [];
  }

  /** @returns whether it called one */
  #callNext(line: string): boolean {
    const members = this.#membersOf(line);
    const waiting = members.filter(({ isCalled }) => !isCalled);
    const [first, ...others] = waiting;
    if (first === undefined) return false;
    const next = others.reduce((best, one) => (compareInLine(one, best) < 0 ? one : best), first);
    const called = members.length - waiting.length;
    const instances = this.#instancesOf(next.route.capability).map(withoutSpeed);
    if (countCallable(next.route, instances, { called, nowMs: this.#nowMs() }) === 0) return false;
    next.isCalled = true;
    this.#served.set(line, Math.max(next.place, this.#served.get(line) ?? 0));
    next.call();
    return true;
  }
}

/** In memory, a slot is handed over at once, so no call is called ahead of a release. */
function withoutSpeed(instance: InstanceSnapshot): InstanceSnapshot {
  return { ...instance, duration_ms: null };
}
