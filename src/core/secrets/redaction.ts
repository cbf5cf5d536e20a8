/**
 * Takes the values of secrets out of what an instance answers, before anything of it is stored or shown: each becomes
 * `[secret NAME]`. It finds the value as it is; as JSON, URLs and forms write it; in base64, also as a part of a longer
 * text, such as `user:value`; in hexadecimal digits; and each of the first longer lines of a value with several. It does not find
 * other forms, such as a hash, a compressed text, or a value that is split over several strings.
 */
import { ExactNumber } from '../../contracts/exact-json.ts';
import type { Json } from '../../contracts/primitives.ts';
import { secretReference } from '../expression/language.ts';
import { isList, isPlainObject } from '../json/values.ts';

export interface Redactor {
  readonly text: (text: string) => string;
  /** The same value where it holds no secret. */
  readonly json: <Value extends Json>(value: Value) => Value;
}

interface HiddenForm {
  readonly form: string;
  readonly name: string;
}

/** A shorter form would be found in ordinary texts. */
const shortestForm = 8;
/** A shorter line of a value is not looked for by itself. */
const shortestLine = 16;
/** A key of 4,096 bits has 51 lines. Each form is one search of the whole answer. */
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

function linesOf(value: string): readonly string[] {
  const lines = value.split(/\r?\n/).map((line) => line.trim());
  return lines.filter(({ length }) => length >= shortestLine).slice(0, mostLines);
}

function formsOf(value: string): readonly string[] {
  const texts = [value, value.trim()];
  const bytes = new TextEncoder().encode(value);
  const base64 = base64Forms(bytes);
  const forms = [
    ...texts.flatMap((text) => [text, ...inJson(text), ...inUrl(text)]),
    ...linesOf(value),
    ...base64,
    ...base64.map((form) => form.replaceAll('+', '-').replaceAll('/', '_')),
    toHex(bytes),
    toHex(bytes).toUpperCase(),
  ];
  return forms.filter(({ length }) => length >= shortestForm);
}

/** @param values by the names of the secrets */
export function createRedactor(values: ReadonlyMap<string, string>): Redactor {
  const known = new Map<string, HiddenForm>();
  for (const [name, value] of values) for (const form of formsOf(value)) known.set(form, { form, name });
  const hidden = [...known.values()].sort((a, b) => b.form.length - a.form.length);
  const hiddenInJson = hidden.map(({ form }) => JSON.stringify(form).slice(1, -1));
  const text = (shown: string): string =>
    shown.length < shortestForm
      ? shown
      : hidden.reduce(
          (rest, { form, name }) =>
            rest.includes(form) ? rest.replaceAll(form, () => secretReference(name)) : rest,
          shown,
        );
  return {
    text,
    // Most answers hold no secret: one search of their text is cheaper than one of each string.
    json: (value) => {
      const written = JSON.stringify(value);
      const isClean = !hiddenInJson.some((form) => written.includes(form));
      return (isClean ? value : redactJson(value, text)) as typeof value;
    },
  };
}

function redactJson(value: Json, text: Redactor['text']): Json {
  if (typeof value === 'string') return text(value);
  if (typeof value === 'number' || (value as unknown) instanceof ExactNumber) {
    const shown = String(value);
    const rest = text(shown);
    return rest === shown ? value : rest;
  }
  if (isList(value)) {
    const items = value.map((item) => redactJson(item, text));
    return items.every((item, at) => item === value[at]) ? value : items;
  }
  if (!isPlainObject(value)) return value;
  const entries = Object.entries(value);
  const rest = entries.map(([key, inner]) => [text(key), redactJson(inner, text)] as const);
  const isSame = rest.every(([key, inner], at) => key === entries[at]?.[0] && inner === entries[at]?.[1]);
  return isSame ? value : Object.fromEntries(rest);
}
