/**
 * What is open now, where members come and go with every call, in no order. A Map or Set would keep what has left it:
 * V8 replaces the table of a busy one every few additions, each former table points to the next, and from the first
 * one that has grown old all later ones stay, with their members, until the next full collection. This one holds
 * nothing of what has left.
 */

/** A member, and its place in the set. */
export interface OpenEntry<Member> {
  readonly member: Member;
  place: number;
}

export class OpenSet<Member> {
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
