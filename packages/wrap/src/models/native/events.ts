/** The events of a provider on their way to a client of its protocol: the text stays as it came. */
import { isList, isPlainObject } from '@capstan/core/json/values';
import { fieldOf, parseObject } from '../protocol.ts';

/** The empty line at the end of an event. A return at the end of the text may be half of a line's end. */
const eventEnd = /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n|$))/g;

function nameOf(event: string): string {
  return /^event: ?(.*)$/m.exec(event)?.[1]?.trim() ?? '';
}

function dataOf(event: string): string {
  const lines = event.split(/\r\n|\n|\r/).filter((line) => line.startsWith('data:'));
  return lines.map((line) => line.slice('data:'.length)).join('\n');
}

/** The router writes the error of a failed call itself, also that of a response that failed. */
function isError(event: string): boolean {
  if (!event.includes('error')) return false;
  const said = parseObject(dataOf(event), JSON.parse) ?? {};
  const { type, error, response } = said;
  if (nameOf(event) === 'error' || type === 'error' || (error ?? null) !== null) return true;
  return type === 'response.failed' && (fieldOf(response, 'error') ?? null) !== null;
}

/** The chunk at the end of OpenAI's streams that counts tokens and has no content. */
function isUsage(event: string): boolean {
  if (!event.includes('"usage"')) return false;
  const said = parseObject(dataOf(event), JSON.parse) ?? {};
  const { choices = null, usage } = said;
  const isEmpty = choices === null || (isList(choices) && choices.length === 0);
  return isEmpty && isPlainObject(usage) && fieldOf(said, 'error') === undefined;
}

export interface EventPasser {
  take(text: string): void;
  /** The rest of a stream whose last event lacks its end. */
  end(): void;
}

/** The most characters that the end of an event has. */
const longestEnd = 4;

/** Passes on whole events, all that have come at once, without errors and without what the client did not ask for. */
export function createEventPasser(hidesUsage: boolean, tell: (events: string) => void): EventPasser {
  /** Of the event that has begun: its pieces, which are joined once, and its last characters. */
  let held: string[] = [];
  let tail = '';
  const isHidden = (event: string): boolean => isError(event) || (hidesUsage && isUsage(event));
  const keep = (text: string): void => {
    held = text === '' ? [] : [text];
    tail = text.slice(-longestEnd);
  };
  /** @param seen the last characters of what is held, and what has come */
  const takeWhole = (seen: string, firstEnd: number): void => {
    const whole = held.join('');
    let from = firstEnd;
    const first = whole.slice(0, whole.length - tail.length) + seen.slice(0, firstEnd);
    let passed = isHidden(first) ? '' : first;
    while (eventEnd.exec(seen) !== null) {
      const event = seen.slice(from, eventEnd.lastIndex);
      from = eventEnd.lastIndex;
      if (!isHidden(event)) passed += event;
    }
    keep(seen.slice(from));
    if (passed !== '') tell(passed);
  };
  return {
    take: (text) => {
      const seen = tail + text;
      eventEnd.lastIndex = 0;
      if (eventEnd.exec(seen) !== null) return takeWhole(seen, eventEnd.lastIndex);
      held.push(text);
      tail = seen.slice(-longestEnd);
    },
    end: () => {
      const rest = held.join('');
      if (rest !== '' && !isHidden(rest)) tell(rest);
      keep('');
    },
  };
}
