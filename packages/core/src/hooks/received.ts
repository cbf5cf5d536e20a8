/** What a delivery holds: its body as JSON, the headers that templates and the log may see, and its id. */
import type { HookSignature } from '../contracts/hook.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { isForbiddenName, isPlainObject } from '../json/values.ts';

/** With names in lower case, as Node gives them. */
export type ReceivedHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The value of a header that was sent once. */
export function headerOf(headers: ReceivedHeaders, ...names: readonly string[]): string | null {
  const value = names.map((name) => headers[name]).find((found) => found !== undefined);
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Of a body whose form is not JSON. */
export class UnreadableForm extends Error {}

const mostFields = 1_000;

function addField(fields: Record<string, Json>, name: string, value: string): void {
  const known = fields[name];
  if (known === undefined) fields[name] = value;
  else fields[name] = [...(Array.isArray(known) ? known : [known]), value];
}

/**
 * Reads `application/x-www-form-urlencoded`: a field that is given twice becomes a list. A form whose only field is
 * `payload`, as GitHub and the buttons of Slack send, is the JSON in it.
 *
 * @param readJson of the text of a `payload`
 * @throws UnreadableForm for too many fields, or a forbidden name
 */
export function readForm(text: string, readJson: (text: string) => Json): Json {
  const fields: Record<string, Json> = {};
  let count = 0;
  for (const [name, value] of new URLSearchParams(text)) {
    count += 1;
    if (count > mostFields) throw new UnreadableForm(`the form has more than ${mostFields} fields`);
    if (isForbiddenName(name)) throw new UnreadableForm(`the form has a field named ${name}`);
    addField(fields, name, value);
  }
  const { payload } = fields;
  return count === 1 && typeof payload === 'string' ? readJson(payload) : fields;
}

/** A part of a name, in lower case, of headers that hold secrets or prove something. */
const secretNames = /authorization|cookie|signature|secret|token|password|api-?key|credential/;
/** Added on the way by proxies: the addresses and paths inside of an installation. */
const proxyNames = /^(?:x-forwarded-|x-real-ip$|forwarded$|via$)/;
const longestValue = 2_048;

/** The headers that templates and the log see. */
export function visibleHeaders(headers: ReceivedHeaders): Readonly<Record<string, string>> {
  const shown = Object.entries(headers).flatMap(([name, value]) => {
    if (typeof value !== 'string' || isForbiddenName(name)) return [];
    if (secretNames.test(name) || proxyNames.test(name)) return [];
    return [[name, value.slice(0, longestValue)] as const];
  });
  return Object.fromEntries(shown);
}

function textOf(value: Json | undefined): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** The id that the sender gave a delivery, which stays when it is sent again; null: it gave none. */
export function deliveryIdOf(
  signature: HookSignature,
  { headers, body }: { readonly headers: ReceivedHeaders; readonly body: Json },
): string | null {
  const fields: JsonObject = isPlainObject(body) ? (body as JsonObject) : {};
  switch (signature) {
    case 'github':
      return headerOf(headers, 'x-github-delivery');
    case 'standard':
      return headerOf(headers, 'webhook-id', 'svix-id');
    case 'slack':
      return textOf(fields.event_id) ?? textOf(fields.trigger_id) ?? headerOf(headers, 'x-slack-signature');
    case 'bearer':
      return headerOf(headers, 'idempotency-key');
  }
}

/** A check of the address by the sender, which starts no run. */
export type Handshake =
  | { readonly kind: 'challenge'; readonly challenge: string }
  | { readonly kind: 'ping' };

export function findHandshake(
  signature: HookSignature,
  { headers, body }: { readonly headers: ReceivedHeaders; readonly body: Json },
): Handshake | null {
  if (signature === 'github' && headerOf(headers, 'x-github-event') === 'ping') return { kind: 'ping' };
  if (signature !== 'slack' || !isPlainObject(body)) return null;
  const { type, challenge } = body as JsonObject;
  return type === 'url_verification' && typeof challenge === 'string'
    ? { kind: 'challenge', challenge }
    : null;
}
