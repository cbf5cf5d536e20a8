/**
 * The hosts of instances in memory, for the router's view and for mocks. A call on any instance of a host takes slots of
 * it, so each change of the held slots of one corrects the room of all. The database decides every claim (sql/hosts.sql).
 */
import type { InstanceSnapshot } from '../routing/types.ts';

type HostMember = { -readonly [Key in keyof InstanceSnapshot]: InstanceSnapshot[Key] };

/** Hosts of two projects may have one name. */
function hostKey(ownerProject: string | undefined, host: string): string {
  return `${ownerProject} ${host}`;
}

/** The key of its host; null: it has none, or the room there is unknown. */
export function hostOf({
  host,
  host_room,
  owner_project,
}: Pick<InstanceSnapshot, 'host' | 'host_room' | 'owner_project'>): string | null {
  return host == null || host_room == null ? null : hostKey(owner_project, host);
}

export class SharedHost {
  slots = 0;
  readonly members = new Set<HostMember>();

  /** Of a member that takes more than the host has, a call takes all of it. */
  #slotsOfCall({ takes }: HostMember): number {
    return Math.min(takes ?? 1, this.slots);
  }

  /** The names of its instances. */
  names(): ReadonlySet<string> {
    return new Set([...this.members].map(({ name }) => name));
  }

  share(): void {
    let room = this.slots;
    for (const member of this.members) room -= member.held * this.#slotsOfCall(member);
    for (const member of this.members) {
      const takes = this.#slotsOfCall(member);
      member.host_calls = Math.floor(this.slots / takes);
      member.host_room = Math.max(0, Math.floor(room / takes));
    }
  }
}

interface HostPlace {
  readonly owner_project: string;
  readonly host: string | null;
  readonly slots_of_host: number | null;
}

export class SharedHosts {
  readonly #hosts = new Map<string, SharedHost>();

  /** Moves an instance to its present host. @returns that; null: it has none */
  place(member: HostMember, { owner_project, host, slots_of_host }: HostPlace, before: SharedHost | null) {
    if (host === null || slots_of_host === null) {
      this.remove(member, before);
      return null;
    }
    const now = this.#hostOf(hostKey(owner_project, host));
    if (before !== now) this.remove(member, before);
    now.members.add(member);
    now.slots = slots_of_host;
    return now;
  }

  remove(member: HostMember, from: SharedHost | null): void {
    from?.members.delete(member);
    member.host_calls = null;
    member.host_room = null;
  }

  /** Counts what is free on all of them. */
  shareAll(): void {
    for (const [key, host] of this.#hosts) {
      if (host.members.size === 0) this.#hosts.delete(key);
      else host.share();
    }
  }

  #hostOf(key: string): SharedHost {
    const host = this.#hosts.get(key) ?? new SharedHost();
    this.#hosts.set(key, host);
    return host;
  }
}
