/**
 * The room of hosts, and of instances without one, shared between the lines of calls that wait for it (call-line.ts), for
 * one round over all lines. Each line sees instances as if the room that other lines have taken were held, so all lines
 * together call no more than there are slots. A slot that k lines wait for becomes free for one of them k times less
 * often. A line whose calls take several slots of a host keeps the free ones when it is its turn, so that smaller calls of
 * others do not pass it for ever.
 */
import type { LineRoute } from '../routing/call-line.ts';
import { freeSlots, slotsOf } from '../routing/estimate.ts';
import { createRouteFilter, excludeByRoute } from '../routing/filter.ts';
import type { InstanceSnapshot } from '../routing/types.ts';
import { hostOf } from './shared-hosts.ts';

export interface LineOnHosts {
  readonly route: LineRoute;
  readonly known: { readonly instances: readonly InstanceSnapshot[] };
  /** Calls that were called, and are not at work yet. */
  readonly called: number;
}

interface SharingLine {
  readonly instances: readonly InstanceSnapshot[];
  /** Those that its calls may take: first those without a host. */
  readonly able: readonly InstanceSnapshot[];
  /** The slots of each place that its called calls will take. */
  readonly taken: Map<string, number>;
}

/** More than any place has. */
const allSlots = 1e9;

/** Where its slots are: its host, or itself. */
function placeOf(instance: InstanceSnapshot): string {
  return hostOf(instance) ?? instance.instance_id;
}

/** At most the slots that the host has. */
function takesOf(instance: InstanceSnapshot): number {
  return hostOf(instance) === null ? 1 : (instance.takes ?? 1);
}

export class HostRooms {
  readonly #lines: readonly SharingLine[];
  /** How many lines wait for a place. */
  readonly #sharers = new Map<string, number>();
  /** What all lines have taken of it, slots. */
  readonly #taken = new Map<string, number>();

  constructor(lines: readonly LineOnHosts[]) {
    this.#lines = lines.map(({ route, known: { instances } }) => {
      const filter = createRouteFilter(route);
      const able = instances.filter((instance) => excludeByRoute(instance, filter) === null);
      const isOnHost = (instance: InstanceSnapshot): number => (hostOf(instance) === null ? 0 : 1);
      return { instances, able: able.sort((a, b) => isOnHost(a) - isOnHost(b)), taken: new Map() };
    });
    for (const { able } of this.#lines)
      for (const place of new Set(able.map(placeOf)))
        this.#sharers.set(place, (this.#sharers.get(place) ?? 0) + 1);
    for (const [at, { called }] of lines.entries()) this.take(at, called);
  }

  /** The instances of a line, with the slots that other lines leave them. @param at position of the line */
  instancesOf(at: number): readonly InstanceSnapshot[] {
    const { instances, taken } = this.#lines[at] as SharingLine;
    return instances.map((instance) => {
      const sharers = this.#sharers.get(placeOf(instance)) ?? 1;
      if (sharers === 1 && hostOf(instance) === null) return instance;
      const room = Math.floor(this.#roomOn(instance, taken.get(placeOf(instance)) ?? 0));
      const { duration_ms } = instance;
      const isKept = room < 0; // by another line, which gets what becomes free there
      return {
        ...instance,
        max_concurrency: slotsOf(instance),
        host_room: Math.max(0, room),
        duration_ms: duration_ms === null || isKept ? null : duration_ms * sharers,
      };
    });
  }

  /** So many calls more of a line were called: they take what is free without a host first. */
  take(at: number, calls: number): void {
    const line = this.#lines[at] as SharingLine;
    let left = calls;
    for (const instance of line.able) {
      const room = Math.ceil(this.#roomOn(instance, 0)); // a part of a call may be what rounding has left out
      const count = Math.max(0, Math.min(left, freeSlots(instance, instance.held), room));
      this.#add(line, placeOf(instance), count * takesOf(instance));
      left -= count;
    }
  }

  /** Whether a call of the line waits only for more slots of a host than are free. */
  isShort(at: number): boolean {
    return this.#shortOf(at).length > 0;
  }

  /** It is the turn of the line: later ones get no slot of the hosts of which it needs more. */
  keep(at: number): void {
    for (const host of this.#shortOf(at)) this.#add(this.#lines[at] as SharingLine, host, allSlots);
  }

  #shortOf(at: number): readonly string[] {
    const { able, taken } = this.#lines[at] as SharingLine;
    return able.flatMap((instance) => {
      if (takesOf(instance) === 1 || instance.breaker_until_ms !== null) return [];
      const host = placeOf(instance);
      const isOwnFree = instance.held < instance.max_concurrency;
      return isOwnFree && this.#roomOn(instance, taken.get(host) ?? 0) < 1 ? [host] : [];
    });
  }

  /** How many of its calls there is room for. @param own slots that lines have taken, and that count as free */
  #roomOn(instance: InstanceSnapshot, own: number): number {
    const taken = (this.#taken.get(placeOf(instance)) ?? 0) - own;
    return (instance.host_room ?? freeSlots(instance, instance.held)) - taken / takesOf(instance);
  }

  #add({ taken }: SharingLine, place: string, slots: number): void {
    taken.set(place, (taken.get(place) ?? 0) + slots);
    this.#taken.set(place, (this.#taken.get(place) ?? 0) + slots);
  }
}
