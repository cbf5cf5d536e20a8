/**
 * Finds many texts in another one by one automaton (Aho and Corasick): the work is linear in what is read, however many
 * texts are looked for, and however they resemble one another. It is done in pieces, so that a caller can serve others
 * in between. Every character of every occurrence is found; occurrences that overlap are one.
 *
 * Most nodes have one successor, which is the next node; only those with more have a table.
 */
import type { Pieces } from '../pieces.ts';

/** Characters, or nodes, of one piece of work: about two milliseconds. */
export const pieceLength = 65_536;

/** What was found from `start` to `end`, and the longest text in it, by its index. */
export interface FoundForm {
  start: number;
  end: number;
  form: number;
}

/** The nodes from one branch to the end of a form. */
interface Chain {
  readonly first: number;
  readonly last: number;
  /** Of the first node; the root has none. */
  readonly depth: number;
  readonly parent: number;
}

export class SecretSearch {
  /** Steps along edges and failure links, which tests compare with the length of what was read. */
  steps = 0;
  readonly #lengths: Uint32Array;
  readonly #units: Uint16Array;
  /** 1: the node follows the one before it. */
  readonly #follows: Uint8Array;
  readonly #fails: Uint32Array;
  /** The longest form that ends at a node, its index plus 1. */
  readonly #ends: Uint16Array;
  readonly #branches = new Map<number, Map<number, number>>();
  readonly #begins = new Uint32Array(65_536);
  #nodes = 1;

  private constructor(forms: readonly string[]) {
    const size = forms.reduce((sum, { length }) => sum + length, 1) + 1;
    this.#lengths = Uint32Array.from(forms, ({ length }) => length);
    this.#units = new Uint16Array(size);
    this.#follows = new Uint8Array(size);
    this.#fails = new Uint32Array(size);
    this.#ends = new Uint16Array(size);
  }

  /** @param forms different from one another, none of them empty; at most 65,535 */
  static *build(forms: readonly string[]): Pieces<SecretSearch> {
    const search = new SecretSearch(forms);
    const chains: Chain[] = [];
    let done = 0;
    for (const [at, form] of forms.entries()) {
      search.#insert(form, at, chains);
      done += form.length;
      if (done < pieceLength) continue;
      done = 0;
      yield;
    }
    yield* search.#link(chains);
    return search;
  }

  #insert(form: string, at: number, chains: Chain[]): void {
    let node = 0;
    let depth = 0;
    for (; depth < form.length; depth += 1) {
      const next = this.#next(node, form.charCodeAt(depth));
      if (next === 0) break;
      node = next;
    }
    if (depth < form.length) {
      const first = this.#nodes;
      this.#branch(node, form.charCodeAt(depth), first);
      for (let at = depth; at < form.length; at += 1) {
        this.#units[this.#nodes] = form.charCodeAt(at);
        this.#follows[this.#nodes] = at === depth ? 0 : 1;
        this.#nodes += 1;
      }
      chains.push({ first, last: this.#nodes - 1, depth: depth + 1, parent: node });
      node = this.#nodes - 1;
    }
    this.#ends[node] = at + 1;
  }

  #branch(node: number, unit: number, to: number): void {
    if (node === 0) {
      this.#begins[unit] = to;
      return;
    }
    const table = this.#branches.get(node) ?? new Map<number, number>();
    this.#branches.set(node, table.set(unit, to));
  }

  /** @returns 0: none */
  #next(node: number, unit: number): number {
    if (node === 0) return this.#begins[unit] as number;
    const next = node + 1;
    if (this.#follows[next] === 1 && this.#units[next] === unit) return next;
    return this.#branches.get(node)?.get(unit) ?? 0;
  }

  /** Sets the failure links, level by level: those of shorter beginnings are known. */
  *#link(chains: readonly Chain[]): Pieces<void> {
    const waiting = [...chains].sort((a, b) => b.depth - a.depth);
    let active: Chain[] = [];
    let done = 0;
    for (let depth = 1; waiting.length > 0 || active.length > 0; depth += 1) {
      while (waiting.at(-1)?.depth === depth) active.push(waiting.pop() as Chain);
      for (const chain of active) {
        const node = chain.first + depth - chain.depth;
        this.#linkNode(node, depth === chain.depth ? chain.parent : node - 1);
        done += 1;
        if (done % pieceLength === 0) yield;
      }
      active = active.filter(({ first, last, depth: from }) => first + depth - from < last);
    }
  }

  #linkNode(node: number, parent: number): void {
    const fail = parent === 0 ? 0 : this.#step(this.#fails[parent] as number, this.#units[node] as number);
    this.#fails[node] = fail;
    if (this.#ends[node] === 0) this.#ends[node] = this.#ends[fail] as number;
  }

  #step(from: number, unit: number): number {
    let node = from;
    for (;;) {
      this.steps += 1;
      const next = this.#next(node, unit);
      if (next !== 0 || node === 0) return next;
      node = this.#fails[node] as number;
    }
  }

  /** @returns what was found, in order */
  *find(text: string): Pieces<readonly FoundForm[]> {
    const found: FoundForm[] = [];
    let node = 0;
    for (let from = 0; from < text.length; from += pieceLength) {
      if (from > 0) yield;
      node = this.#read(text, { from, node }, found);
    }
    return found;
  }

  /** Of a text of one piece. */
  findInPiece(text: string): readonly FoundForm[] {
    const found: FoundForm[] = [];
    this.#read(text, { from: 0, node: 0 }, found);
    return found;
  }

  /** Reads one piece. @returns the node that it leads to */
  #read(text: string, { from, node: start }: { from: number; node: number }, found: FoundForm[]): number {
    let node = start;
    const to = Math.min(text.length, from + pieceLength);
    for (let at = from; at < to; at += 1) {
      node = this.#step(node, text.charCodeAt(at));
      const end = this.#ends[node] as number;
      if (end > 0) this.#note(found, at + 1, end - 1);
    }
    return node;
  }

  #note(found: FoundForm[], end: number, form: number): void {
    const start = end - (this.#lengths[form] as number);
    const one: FoundForm = { start, end, form };
    for (let last = found.at(-1); last !== undefined && last.end > one.start; last = found.at(-1)) {
      if ((this.#lengths[last.form] as number) >= (this.#lengths[one.form] as number)) one.form = last.form;
      one.start = Math.min(one.start, last.start);
      found.pop();
    }
    found.push(one);
  }
}
