/**
 * An unordered set of what is open now, for members that each call adds and removes. A Map or Set keeps removed members
 * in memory: V8 replaces the table of a busy one every few additions, and each former table points to the next. Once a
 * former table is in the old generation, all later ones stay until a full collection, with their members. A `LiveList`
 * keeps no removed member.
 */

/** A member, and its place in the set. */
export interface OpenEntry<Member> {
  readonly member: Member;
  place: number;
}

export class LiveList<Member> {
  readonly #entries: OpenEntry<Member>[] = [];

  get size(): number {
    return this.#entries.length;
  }

  add(member: Member): OpenEntry<Member> {
    const entry = { member, place: this.#entries.length };
    this.#entries.push(entry);
    return entry;
  }

  /** @returns false when it had been removed before */
  remove(entry: OpenEntry<Member>): boolean {
    const { place } = entry;
    if (this.#entries[place] !== entry) return false;
    const last = this.#entries.pop() as OpenEntry<Member>;
    if (last !== entry) {
      this.#entries[place] = last;
      last.place = place;
    }
    return true;
  }

  /** A copy, so that members may leave while it is read. */
  entries(): readonly OpenEntry<Member>[] {
    return [...this.#entries];
  }

  members(): readonly Member[] {
    return this.#entries.map(({ member }) => member);
  }
}
