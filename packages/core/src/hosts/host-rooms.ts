/**
 * The room of hosts, shared between the lines of calls that wait for it (call-line.ts), for one round over all lines.
 * Each line sees instances as if the room that other lines have taken were held, so all lines together call no more than
 * a host has. A slot of a host that k lines wait for becomes free for one of them k times less often. A line whose calls
 * take several slots keeps the free ones when it is its turn, so that smaller calls of others do not pass it for ever.
 */
import { countFree, type LineRoute } from '../routing/call-line.ts';
import { freeSlots, slotsOf } from '../routing/estimate.ts';
import { createRouteFilter, excludeByRoute } from '../routing/filter.ts';
import type { InstanceSnapshot } from '../routing/types.ts';
import { hostKey } from './shared-hosts.ts';

export interface LineOnHosts {
  readonly route: LineRoute;
  readonly known: { readonly instances: readonly InstanceSnapshot[] };
  /** Calls that were called, and are not at work yet. */
  readonly called: number;
}

interface SharingLine {
  readonly instances: readonly InstanceSnapshot[];
  /** Those that its calls may take. */
  readonly able: readonly InstanceSnapshot[];
  /** Its calls that were called, and the slots of hosts that they will take. */
  called: number;
  readonly taken: Map<string, number>;
}

/** @returns null: it has none, or its room is unknown */
function hostOf({ host, host_room, owner_project }: InstanceSnapshot): string | null {
  return host == null || host_room == null ? null : hostKey(owner_project, host);
}

function hostsOf(instances: readonly InstanceSnapshot[]): ReadonlySet<string> {
  return new Set(instances.flatMap((instance) => hostOf(instance) ?? []));
}

/** At most the slots that the host has. */
function takesOf({ takes }: InstanceSnapshot): number {
  return takes ?? 1;
}

export class HostRooms {
  readonly #lines: readonly SharingLine[];
  /** How many lines wait for a host. */
  readonly #sharers = new Map<string, number>();

  constructor(lines: readonly LineOnHosts[]) {
    this.#lines = lines.map(({ route, known: { instances } }) => {
      const filter = createRouteFilter(route);
      const able = instances.filter((instance) => excludeByRoute(instance, filter) === null);
      return { instances, able, called: 0, taken: new Map() };
    });
    for (const { able } of this.#lines)
      for (const host of hostsOf(able)) this.#sharers.set(host, (this.#sharers.get(host) ?? 0) + 1);
    for (const [at, { called }] of lines.entries()) this.take(at, called);
  }

  /** The instances of a line, with the slots that other lines leave them. @param at position of the line */
  instancesOf(at: number): readonly InstanceSnapshot[] {
    const { instances } = this.#lines[at] as SharingLine;
    return instances.map((instance) => {
      const host = hostOf(instance);
      if (host === null) return instance;
      const slots = slotsOf(instance);
      const room = Math.floor(this.#roomOn(host, at, instance));
      const free = Math.max(0, Math.min(freeSlots(instance, instance.held), room));
      const { duration_ms } = instance;
      const slower = duration_ms === null ? null : duration_ms * (this.#sharers.get(host) ?? 1);
      return { ...instance, max_concurrency: slots, held: slots - free, duration_ms: slower };
    });
  }

  /** So many calls of a line were called: they take what is free without a host first. */
  take(at: number, calls: number): void {
    const line = this.#lines[at] as SharingLine;
    const { able, taken } = line;
    line.called += calls;
    taken.clear();
    const alone = able.filter((instance) => hostOf(instance) === null);
    let left = Math.max(0, line.called - countFree(alone));
    for (const instance of able) {
      const host = hostOf(instance);
      if (host === null) continue;
      const count = Math.min(left, freeSlots(instance, instance.held));
      taken.set(host, (taken.get(host) ?? 0) + count * takesOf(instance));
      left -= count;
    }
  }

  /** Whether a call of the line waits only for more slots of a host than are free. */
  isShort(at: number): boolean {
    return this.#shortOf(at).length > 0;
  }

  /** It is the turn of the line: later ones get no slot of the hosts of which it needs more. */
  keep(at: number): void {
    const { taken } = this.#lines[at] as SharingLine;
    for (const host of this.#shortOf(at)) taken.set(host, Number.POSITIVE_INFINITY);
  }

  #shortOf(at: number): readonly string[] {
    const { able } = this.#lines[at] as SharingLine;
    return able.flatMap((instance) => {
      const host = hostOf(instance);
      if (host === null || takesOf(instance) === 1 || instance.breaker_until_ms !== null) return [];
      const isOwnFree = instance.held < instance.max_concurrency;
      return isOwnFree && this.#roomOn(host, at, instance) < 1 ? [host] : [];
    });
  }

  /** How many calls of an instance the host has room for, beside what other lines have taken. */
  #roomOn(host: string, at: number, instance: InstanceSnapshot): number {
    const taken = this.#lines.reduce(
      (sum, line, other) => (other === at ? sum : sum + (line.taken.get(host) ?? 0)),
      0,
    );
    return (instance.host_room as number) - taken / takesOf(instance);
  }
}
