/**
 * Takes the values of secrets out of what an instance answers, before anything of it is stored or shown: each becomes
 * `[secret NAME]`. It finds the value as it is; as JSON, URLs, forms and XML write it; in base64, also as a part of a longer
 * text, such as `user:value`; in hexadecimal digits; and each of the first longer lines of a value with several. It does not find
 * other forms, such as a hash, a compressed text, or a value that is split over several strings.
 *
 * All forms of all values are one automaton (secret-search.ts), so the work grows with the answer and with the values,
 * not with their product. The values that one step names have a common limit (`secretLimits.bytesOfStep`).
 */
import { ExactNumber } from '../contracts/exact-json.ts';
import type { Json } from '../contracts/primitives.ts';
import { secretReference } from '../expression/language.ts';
import { isList, isPlainObject } from '../json/values.ts';
import { finish, finishInTurns, type Pieces } from '../pieces.ts';
import { type FoundForm, pieceLength, SecretSearch } from './secret-search.ts';

export interface Redactor {
  /** In one piece, for short texts. */
  readonly text: (text: string) => string;
  /** The same value where it holds no secret. In one piece, for small values. */
  readonly json: <Value extends Json>(value: Value) => Value;
  /** As `text` and `json`, with turns for others in between. */
  readonly longText: (text: string) => Promise<string>;
  readonly longJson: <Value extends Json>(value: Value) => Promise<Value>;
}

/** A shorter form would be found in ordinary texts. */
const shortestForm = 8;
/** A shorter line of a value is not looked for by itself. */
const shortestLine = 16;
/** A key of 4,096 bits has 51 lines. */
const mostLines = 64;

const base64Digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

function toBase64(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at + 3 <= bytes.length; at += 3) {
    const word = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    for (const shift of [18, 12, 6, 0]) text += base64Digits[(word >> shift) & 63];
  }
  return text;
}

/**
 * The base64 digits that depend on the bytes alone, for each of the three positions that they may have in a longer
 * text: digits that they share with what comes before or after are left out.
 */
function base64Forms(bytes: Uint8Array): readonly string[] {
  return [0, 1, 2].map((before) => {
    const padded = new Uint8Array(before + bytes.length + 2);
    padded.set(bytes, before);
    const first = Math.ceil((before * 8) / 6);
    const last = Math.floor(((before + bytes.length) * 8) / 6);
    return toBase64(padded).slice(first, last);
  });
}

function toHex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

function inJson(text: string): readonly string[] {
  const plain = JSON.stringify(text).slice(1, -1);
  const ascii = plain.replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return [plain, ascii, plain.replaceAll('/', '\\/'), JSON.stringify(plain).slice(1, -1)];
}

function inUrl(text: string): readonly string[] {
  const encoded = encodeURIComponent(text);
  const strict = encoded.replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  const forms = [encoded, strict, strict.replaceAll('%20', '+'), encodeURI(text)];
  return [...forms, ...forms.map((form) => form.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()))];
}

function inXml(text: string): readonly string[] {
  const signs = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const quoted = signs.replaceAll('"', '&quot;');
  return [signs, quoted, quoted.replaceAll("'", '&#39;'), quoted.replaceAll("'", '&apos;')];
}

function linesOf(value: string): readonly string[] {
  const lines = value.split(/\r?\n/).map((line) => line.trim());
  return lines.filter(({ length }) => length >= shortestLine).slice(0, mostLines);
}

/** The space around a value is no part of it, unless it makes most of it. */
function coreOf(value: string): string {
  const core = value.trim();
  return core.length < shortestForm ? value : core;
}

function formsOf(secret: string): readonly string[] {
  const value = coreOf(secret);
  const bytes = new TextEncoder().encode(value);
  const base64 = base64Forms(bytes);
  const forms = [
    value,
    ...inJson(value),
    ...inUrl(value),
    ...inXml(value),
    ...linesOf(value),
    ...base64,
    ...base64.map((form) => form.replaceAll('+', '-').replaceAll('/', '_')),
    toHex(bytes),
    toHex(bytes).toUpperCase(),
  ];
  return forms.filter(({ length }) => length >= shortestForm);
}

/** @param values by the names of the secrets @returns the name of the secret of each form */
export function* listForms(values: ReadonlyMap<string, string>): Pieces<ReadonlyMap<string, string>> {
  const nameOf = new Map<string, string>();
  for (const [name, value] of values) {
    for (const form of formsOf(value)) nameOf.set(form, name);
    if (value.length > shortestForm * mostLines) yield;
  }
  return nameOf;
}

type TakeTurn = () => Promise<unknown>;

function* buildRedaction(values: ReadonlyMap<string, string>): Pieces<Redaction> {
  const nameOf = yield* listForms(values);
  return new Redaction(
    yield* SecretSearch.build([...nameOf.keys()]),
    [...nameOf.values()].map(secretReference),
  );
}

/** @param values by the names of the secrets @param takeTurn serves others, between two pieces of long work */
export async function createRedactor(
  values: ReadonlyMap<string, string>,
  takeTurn: TakeTurn,
): Promise<Redactor> {
  const redaction = await finishInTurns(buildRedaction(values), takeTurn);
  return {
    text: (text) => finish(redaction.text(text)),
    json: (value) => finish(redaction.json(value)) as typeof value,
    longText: (text) => finishInTurns(redaction.text(text), takeTurn),
    longJson: (value) => finishInTurns(redaction.json(value), takeTurn) as Promise<typeof value>,
  };
}

/** What a value costs beside its characters, in characters. */
const valueLength = 16;
/** A smaller whole number has fewer digits than any form. */
const leastNumber = 10 ** (shortestForm - 2);

function isShortNumber(value: unknown): boolean {
  return typeof value === 'number' && Number.isInteger(value) && Math.abs(value) < leastNumber;
}

class Redaction {
  readonly #search: SecretSearch;
  readonly #shown: readonly string[];
  /** Characters read since the last turn. */
  #read = 0;

  /** @param shown in place of each form */
  constructor(search: SecretSearch, shown: readonly string[]) {
    this.#search = search;
    this.#shown = shown;
  }

  *text(text: string): Pieces<string> {
    return text.length <= pieceLength
      ? this.#short(text)
      : this.#replace(text, yield* this.#search.find(text));
  }

  *json(value: Json): Pieces<Json> {
    if (typeof value === 'string') return yield* this.text(value);
    if (isList(value)) {
      const items: Json[] = [];
      for (const item of value) {
        items.push(this.#leaf(item) ?? (yield* this.json(item)));
        if (this.#isTurnDue()) yield;
      }
      return items.every((item, at) => item === value[at]) ? value : items;
    }
    if (!isPlainObject(value)) return this.#leaf(value) ?? value;
    const rest: [string, Json][] = [];
    for (const [key, inner] of Object.entries(value)) {
      rest.push([yield* this.text(key), this.#leaf(inner) ?? (yield* this.json(inner))]);
      if (this.#isTurnDue()) yield;
    }
    const isSame = rest.every(([key, inner]) => Object.hasOwn(value, key) && value[key] === inner);
    return isSame ? value : Object.fromEntries(rest);
  }

  #isTurnDue(): boolean {
    if (this.#read < pieceLength) return false;
    this.#read = 0;
    return true;
  }

  /** @returns undefined for values of other kinds, and for a long text */
  #leaf(value: Json): Json | undefined {
    this.#read += valueLength;
    if (typeof value === 'string') return value.length > pieceLength ? undefined : this.#short(value);
    if (isShortNumber(value)) return value;
    if (typeof value !== 'number' && !((value as unknown) instanceof ExactNumber)) return undefined;
    const shown = String(value);
    const rest = this.#short(shown);
    return rest === shown ? value : rest;
  }

  #short(text: string): string {
    if (text.length < shortestForm) return text;
    this.#read += text.length;
    return this.#replace(text, this.#search.findInPiece(text));
  }

  #replace(text: string, found: readonly FoundForm[]): string {
    let rest = '';
    let from = 0;
    for (const { start, end, form } of found) {
      rest += text.slice(from, start) + this.#shown[form];
      from = end;
    }
    return from === 0 ? text : rest + text.slice(from);
  }
}
