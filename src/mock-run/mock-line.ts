/** The lines of calls that wait for a free slot of a mocked capability, by the rules of core/routing/call-line.ts. */
import {
  compareInLine,
  countCallable,
  lineOf,
  nextPlace,
  type PlaceInLine,
  rankOf,
} from '../core/routing/call-line.ts';
import type { InstanceSnapshot, RouteConstraints } from '../core/routing/types.ts';

type Route = Pick<RouteConstraints, 'capability' | 'versionRange' | 'tags' | 'priority'>;

/** A unit in a line. */
export interface QueuedUnit extends PlaceInLine {
  readonly line: string;
  readonly runId: string;
  readonly route: Route;
  readonly call: () => void;
  isCalled: boolean;
}

export interface MockLines {
  /** Calls in line before a call of this route and priority. */
  ahead(route: Route): number;
  /** Units before this one. */
  before(unit: QueuedUnit): number;
  /** Puts a unit in its line; `call` is called when a slot is free for it. */
  enter(unit: Pick<QueuedUnit, 'runId' | 'route' | 'call' | 'queuedAtMs'>): QueuedUnit;
  /** It has its slot, or needs none any more. */
  leave(unit: QueuedUnit): void;
  /** Calls units of the capability, as far as slots are free. */
  serve(capability: string): void;
}

export function createMockLines(
  instancesOf: (capability: string) => readonly InstanceSnapshot[],
  nowMs: () => number,
): MockLines {
  const lines = new Map<string, QueuedUnit[]>();
  const served = new Map<string, number>();

  const serveLine = (line: QueuedUnit[]): void => {
    for (;;) {
      const waiting = line.filter(({ isCalled }) => !isCalled);
      const next = waiting.reduce<QueuedUnit | null>(
        (best, unit) => (best === null || compareInLine(unit, best) < 0 ? unit : best),
        null,
      );
      if (next === null) return;
      const called = line.length - waiting.length;
      const instances = instancesOf(next.route.capability).map(withoutSpeed);
      if (countCallable(next.route, instances, { called, nowMs: nowMs() }) === 0) return;
      next.isCalled = true;
      served.set(next.line, Math.max(next.place, served.get(next.line) ?? 0));
      next.call();
    }
  };

  return {
    ahead: (route) => {
      const rank = rankOf(route.priority);
      return (lines.get(lineOf(route)) ?? []).filter((unit) => unit.rank <= rank).length;
    },
    before: (unit) =>
      (lines.get(unit.line) ?? []).filter((other) => other !== unit && compareInLine(other, unit) < 0).length,
    enter: ({ route, runId, ...unit }) => {
      const name = lineOf(route);
      const line = lines.get(name) ?? [];
      lines.set(name, line);
      const last = line.reduce((most, one) => (one.runId === runId ? Math.max(most, one.place) : most), 0);
      const place = nextPlace(last, served.get(name) ?? 0);
      const queued = {
        ...unit,
        route,
        runId,
        line: name,
        rank: rankOf(route.priority),
        place,
        isCalled: false,
      };
      line.push(queued);
      return queued;
    },
    leave: (unit) => {
      const line = lines.get(unit.line) ?? [];
      const at = line.indexOf(unit);
      if (at >= 0) line.splice(at, 1);
      if (line.length === 0) {
        lines.delete(unit.line);
        served.delete(unit.line);
      }
    },
    serve: (capability) => {
      for (const line of [...lines.values()]) {
        if (line[0]?.route.capability === capability) serveLine(line);
      }
    },
  };
}

/** Mocks hand a slot over at once, so nobody is called ahead of a release. */
function withoutSpeed(instance: InstanceSnapshot): InstanceSnapshot {
  return { ...instance, duration_ms: null };
}
