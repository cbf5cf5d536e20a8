/** Reads the EBNF of a grammar table: what a phrase is made of, and whether a list of tokens is one. */
import type { GrammarRule } from '../../src/expression/grammar.ts';

export type Part =
  | { readonly kind: 'word'; readonly text: string }
  | { readonly kind: 'rule'; readonly name: string }
  | { readonly kind: 'sequence' | 'either'; readonly parts: readonly Part[] }
  | { readonly kind: 'repeated'; readonly part: Part };

function readPhrase(text: string): Part {
  const tokens = text.match(/"[^"]+"|[a-z]+|[{}|]/g) ?? [];
  if (tokens.join('') !== text.replaceAll(' ', '')) throw new Error(`not EBNF: ${text}`);
  const readEither = (): Part => {
    const parts = [readSequence()];
    while (tokens[0] === '|') {
      tokens.shift();
      parts.push(readSequence());
    }
    return { kind: 'either', parts };
  };
  const readSequence = (): Part => {
    const parts: Part[] = [];
    while (tokens[0] !== undefined && tokens[0] !== '|' && tokens[0] !== '}') parts.push(readPart());
    return { kind: 'sequence', parts };
  };
  const readPart = (): Part => {
    const token = tokens.shift() ?? '';
    if (token === '{') {
      const part = readEither();
      if (tokens.shift() !== '}') throw new Error(`a { is never closed: ${text}`);
      return { kind: 'repeated', part };
    }
    return token.startsWith('"') ? { kind: 'word', text: token.slice(1, -1) } : { kind: 'rule', name: token };
  };
  const part = readEither();
  if (tokens.length > 0) throw new Error(`a } too many: ${text}`);
  return part;
}

export type Phrases = ReadonlyMap<string, Part>;

export function readPhrases(grammar: readonly GrammarRule[]): Phrases {
  return new Map(
    grammar.flatMap(({ name, kind, text }) => (kind === 'phrase' ? [[name, readPhrase(text)]] : [])),
  );
}

/** How many tokens the shortest text of a part has. */
export function createRuler(phrases: Phrases): (part: Part) => number {
  const lengths = new Map([...phrases.keys()].map((name) => [name, Number.POSITIVE_INFINITY]));
  const lengthOf = (part: Part): number => {
    switch (part.kind) {
      case 'word':
        return 1;
      case 'rule':
        return lengths.get(part.name) ?? 1;
      case 'sequence':
        return part.parts.reduce((sum, each) => sum + lengthOf(each), 0);
      case 'either':
        return Math.min(...part.parts.map(lengthOf));
      case 'repeated':
        return 0;
    }
  };
  for (const _ of phrases) for (const [name, phrase] of phrases) lengths.set(name, lengthOf(phrase));
  return lengthOf;
}

/** @param isOfToken whether a token is one of a rule that is no phrase */
export function createRecogniser(phrases: Phrases, isOfToken: (rule: string, token: string) => boolean) {
  return (start: string, tokens: readonly string[]): boolean => {
    const known = new Map<string, ReadonlySet<number>>();
    const endsOfRule = (name: string, from: number): ReadonlySet<number> => {
      const phrase = phrases.get(name);
      const token = tokens[from];
      if (phrase === undefined)
        return new Set(token !== undefined && isOfToken(name, token) ? [from + 1] : []);
      const key = `${name} ${from}`;
      const ends = known.get(key) ?? endsOf(phrase, from);
      known.set(key, ends);
      return ends;
    };
    const endsOfSequence = (parts: readonly Part[], from: number): ReadonlySet<number> => {
      let starts: ReadonlySet<number> = new Set([from]);
      for (const part of parts) starts = new Set([...starts].flatMap((at) => [...endsOf(part, at)]));
      return starts;
    };
    const endsOfRepeated = (part: Part, from: number): ReadonlySet<number> => {
      const ends = new Set([from]);
      for (const at of ends) for (const end of endsOf(part, at)) ends.add(end);
      return ends;
    };
    /** Where a part that begins at `from` may end. */
    const endsOf = (part: Part, from: number): ReadonlySet<number> => {
      switch (part.kind) {
        case 'word':
          return new Set(tokens[from] === part.text ? [from + 1] : []);
        case 'rule':
          return endsOfRule(part.name, from);
        case 'sequence':
          return endsOfSequence(part.parts, from);
        case 'either':
          return new Set(part.parts.flatMap((choice) => [...endsOf(choice, from)]));
        case 'repeated':
          return endsOfRepeated(part.part, from);
      }
    };
    return endsOfRule(start, 0).has(tokens.length);
  };
}
