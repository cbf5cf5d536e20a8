/**
 * A client's request as its provider gets it: the text stays as the client wrote it, with its order, its white space and
 * its numbers, and only the values of some members of the outermost object are exchanged.
 */
import { writeExactJson } from '@capstan/core/contracts/exact-json';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { providerFailure } from '../../exchange/provider-failure.ts';
import { toMessage } from '../conversation.ts';
import { parseObject } from '../protocol.ts';

interface TextSpan {
  readonly from: number;
  readonly to: number;
}

/** A member of the outermost object: where its name begins, and where its value begins and ends. */
interface Member extends TextSpan {
  readonly name: string;
  readonly start: number;
}

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

const space = /\s/;

function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; ) {
    const char = text[at] ?? '';
    if (depth === 0 && (char === ',' || char === '}' || char === ']' || space.test(char))) return at;
    if (char === '{' || char === '[') depth += 1;
    if (char === '}' || char === ']') depth -= 1;
    at = char === '"' ? endOfString(text, at) : at + 1;
    if (depth === 0 && (char === '"' || char === '}' || char === ']')) return at;
  }
  return text.length;
}

/** @param text a valid object of JSON */
function listMembers(text: string): readonly Member[] {
  const members: Member[] = [];
  let at = text.indexOf('{') + 1;
  for (;;) {
    while (text[at] === ',' || space.test(text[at] ?? '')) at += 1;
    if (text[at] !== '"') return members;
    const start = at;
    const end = endOfString(text, start);
    at = text.indexOf(':', end) + 1;
    while (space.test(text[at] ?? '')) at += 1;
    const to = endOfValue(text, at);
    members.push({ name: JSON.parse(text.slice(start, end)) as string, start, from: at, to });
    at = to;
  }
}

function replaceAll(text: string, spans: readonly TextSpan[], written: string): string {
  const ends = [0, ...spans.map(({ to }) => to)];
  const pieces = spans.map(({ from }, index) => text.slice(ends[index], from) + written);
  return pieces.join('') + text.slice(ends.at(-1));
}

/** A name may be there twice; readers differ in which one counts. */
function withoutMember(text: string, name: string): string {
  const members = listMembers(text);
  const last = members.findLastIndex((member) => member.name !== name);
  const kept = members.map(({ name: own, start, to }, index) =>
    own === name ? '' : text.slice(start, index < last ? members[index + 1]?.start : to),
  );
  const [first] = members;
  if (first === undefined) return text;
  return text.slice(0, first.start) + kept.join('') + text.slice(members.at(-1)?.to);
}

/** Sets one member of an object of JSON, or removes it (null); everything else keeps its bytes. */
export function editMember(text: string, name: string, value: Json): string {
  if (value === null) return withoutMember(text, name);
  const written = writeExactJson(value);
  const members = listMembers(text);
  const found = members.filter((member) => member.name === name);
  if (found.length > 0) return replaceAll(text, found, written);
  const at = members.at(-1)?.to ?? text.indexOf('{') + 1;
  const added = `${members.length === 0 ? '' : ','}${JSON.stringify(name)}:${written}`;
  return replaceAll(text, [{ from: at, to: at }], added);
}

/** What a protocol names the limit of an answer: all names that it knows, the one that is set first. */
export interface RequestRules {
  readonly limitFields: readonly string[];
  /** A stream counts its tokens only when the request asks for it. */
  readonly asksForUsage: boolean;
  /** The list of messages; `input` may also be the text of one. */
  readonly conversation: 'messages' | 'input';
}

export interface NativeRequest {
  readonly text: string;
  readonly isStream: boolean;
  /** The client did not ask for the chunk that counts tokens. */
  readonly hidesUsage: boolean;
  /** Of each answer. */
  readonly maxOutputTokens: number;
  /** A field that changes the price of a token, as the client set it; null: none does. */
  readonly surcharge: string | null;
}

/** Fields that change the price of a token, with the values at which it is not higher. */
const usualValues: Readonly<Record<string, readonly string[]>> = {
  service_tier: ['auto', 'default', 'standard', 'standard_only', 'flex'],
  speed: ['standard'],
  inference_geo: ['global'],
};

/** The file may set such a field itself, and then states the prices for it. */
function findSurcharge(said: JsonObject, settings: JsonObject): string | null {
  const found = Object.entries(usualValues).find(([name, usual]) => {
    const value = said[name] ?? null;
    return value !== null && settings[name] === undefined && !usual.includes(String(value));
  });
  return found === undefined ? null : `/${found[0]}: ${JSON.stringify(said[found[0]]).slice(0, 100)}`;
}

interface NativeRules extends RequestRules {
  readonly model: string;
  readonly maxOutputTokens: number;
  readonly settings: JsonObject;
  /** A last message of the user. */
  readonly note: string | null;
}

function askForUsage(text: string): string {
  const options = listMembers(text).findLast(({ name }) => name === 'stream_options');
  const written = options === undefined ? 'null' : text.slice(options.from, options.to);
  if (options === undefined || !written.startsWith('{')) {
    return editMember(text, 'stream_options', { include_usage: true });
  }
  return replaceAll(text, [options], editMember(written, 'include_usage', true));
}

function limitAnswer(
  text: string,
  said: JsonObject,
  { limitFields, maxOutputTokens: most }: NativeRules,
): { readonly text: string; readonly maxOutputTokens: number } {
  const stated = limitFields.filter((name) => (said[name] ?? null) !== null);
  const [first = ''] = limitFields;
  if (stated.length === 0) return { text: editMember(text, first, most), maxOutputTokens: most };
  const edited = stated.reduce(
    (all, name) => (Number(said[name]) > most ? editMember(all, name, most) : all),
    text,
  );
  const limits = stated.map((name) => Number(said[name])).filter((limit) => limit >= 0);
  return { text: edited, maxOutputTokens: Math.min(most, limits.length === 0 ? most : Math.max(...limits)) };
}

const closedList = /^\[\s*\]$/;

/** A conversation of another form stays as it is, and the provider refuses it. */
function addNote(text: string, { conversation, note }: NativeRules): string {
  if (note === null) return text;
  const told = JSON.stringify(toMessage(note));
  const found = listMembers(text).findLast(({ name }) => name === conversation);
  const written = found === undefined ? 'null' : text.slice(found.from, found.to);
  if (found !== undefined && written.startsWith('[')) {
    const at = found.to - 1;
    const added = closedList.test(written) ? told : `,${told}`;
    return replaceAll(text, [{ from: at, to: at }], added);
  }
  if (conversation === 'messages') return text;
  if (written === 'null') return editMember(text, conversation, [toMessage(note)]);
  if (found === undefined || !written.startsWith('"')) return text;
  return replaceAll(text, [found], `[{"role":"user","content":${written}},${told}]`);
}

/** @throws CallFailure `provider_refused` when the request is no object of JSON */
export function toNativeRequest(request: string, rules: NativeRules): NativeRequest {
  const said = parseObject(request, JSON.parse);
  if (said === null) {
    throw providerFailure('provider_refused', '/request: expected an object of JSON', { cost_usd: 0 });
  }
  const isStream = said.stream === true;
  const limited = limitAnswer(addNote(editMember(request, 'model', rules.model), rules), said, rules);
  const asksAlready = Reflect.get(Object(said.stream_options), 'include_usage') === true;
  const counts = isStream && rules.asksForUsage && !asksAlready;
  const asked = counts ? askForUsage(limited.text) : limited.text;
  const settings = Object.entries(rules.settings).filter(([name]) => isStream || name !== 'stream_options');
  const text = settings.reduce((all, [name, value]) => editMember(all, name, value), asked);
  const surcharge = findSurcharge(said, rules.settings);
  return { text, isStream, hidesUsage: counts, maxOutputTokens: limited.maxOutputTokens, surcharge };
}
