/** Calls of tools, put together from the pieces in which they come; each piece is passed on at once. */
import { createHash, randomUUID } from 'node:crypto';
import { writeExactJson } from '@capstan/core/contracts/exact-json';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { createGrowingObject, type GrowingObject } from '@capstan/core/json/growing-object';
import { providerFailure } from '../exchange/provider-failure.ts';
import type { ToolCall } from './conversation.ts';

export interface ToolPiece {
  /** Of the call in the answer; undefined where the provider gives none. */
  readonly index: number | undefined;
  /** Empty where the piece has none. */
  readonly id: string;
  readonly name: string;
  readonly written: string;
}

interface OpenCall {
  /** As the provider names it; empty: unknown as yet. */
  wireId: string;
  name: string;
  /** As callers see it; null until its name is known and its first piece was passed on. */
  id: string | null;
  readonly written: GrowingObject;
  /** What is not passed on yet. */
  unsent: string;
}

/** Providers refuse ids with more than 40 characters. */
function newId(): string {
  return `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`;
}

/**
 * The id of a call as a provider takes it: conversations come with the ids of other providers. Equal ids stay equal.
 * @param allowed what the provider takes
 */
export function toWireId(id: string, allowed: RegExp): string {
  return allowed.test(id) ? id : `call_${createHash('sha256').update(id).digest('hex').slice(0, 24)}`;
}

/** Arguments are JSON text; some providers write an object. */
export function argumentsOf(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : writeExactJson(value);
}

/** A part has at most 16 kB, however its characters are escaped. */
const pieces = /[\s\S]{1,1000}/gu;

export function cutText(text: string): readonly string[] {
  return text.length <= 1_000 ? [text] : (text.match(pieces) ?? []);
}

/** Some providers give all calls one index and no ids, so a new name or new arguments begin a new call. */
function isOther(known: OpenCall, { id, name, written }: ToolPiece): boolean {
  if (id !== '' && known.wireId !== '') return name !== '' && id !== known.wireId;
  if (name !== '' && known.name !== '' && name !== known.name) return true;
  return written.trimStart().startsWith('{') && known.written.isWhole();
}

export interface ToolCalls {
  take(piece: ToolPiece): void;
  /** @throws CallFailure for a call without a name */
  end(): readonly ToolCall[];
}

function growBy(call: OpenCall, piece: string): void {
  call.written.add(piece);
  call.unsent += piece;
}

type TellDelta = (delta: JsonObject) => void;

/** Passes on what is new of a call. */
function passOn(call: OpenCall, all: readonly OpenCall[], tell: TellDelta): void {
  const index = all.indexOf(call);
  if (call.id === null) {
    const isTaken = call.wireId === '' || all.some(({ id }) => id === call.wireId);
    call.id = isTaken ? newId() : call.wireId;
    const { id, name } = call;
    tell({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] });
  }
  const { unsent } = call;
  if (unsent === '') return;
  for (const part of cutText(unsent)) tell({ tool_calls: [{ index, function: { arguments: part } }] });
  call.unsent = '';
}

export function createToolCalls(tell: TellDelta): ToolCalls {
  const all: OpenCall[] = [];
  const byIndex = new Map<number, OpenCall>();
  const find = ({ index, id }: ToolPiece): OpenCall | undefined => {
    if (index !== undefined) return byIndex.get(index);
    return id === '' ? all.at(-1) : all.findLast(({ wireId }) => wireId === id);
  };
  const open = ({ index }: ToolPiece): OpenCall => {
    const call: OpenCall = { wireId: '', name: '', id: null, written: createGrowingObject(), unsent: '' };
    all.push(call);
    if (index !== undefined) byIndex.set(index, call);
    return call;
  };
  return {
    take: (piece) => {
      const known = find(piece);
      const call = known === undefined || isOther(known, piece) ? open(piece) : known;
      call.wireId ||= piece.id;
      call.name ||= piece.name;
      growBy(call, piece.written);
      if (call.name !== '') passOn(call, all, tell);
    },
    end: () =>
      all.map((call) => {
        const { name, written } = call;
        if (call.id === null)
          throw providerFailure('provider_unavailable', 'the provider calls a tool without its name');
        if (written.text().trim() === '') growBy(call, '{}');
        passOn(call, all, tell);
        return { id: call.id, type: 'function', function: { name, arguments: written.text() } };
      }),
  };
}
