/**
 * Exchanges between clients and providers of models, as their bytes are. They are written by hand in the forms of the
 * protocols: each request goes with two of the answers, whole and as a stream.
 */
export interface WrittenRequest {
  readonly name: string;
  /** JSON, with odd white space, order and numbers on purpose. It names the model `small` or `claude`, and asks for no stream. */
  readonly text: string;
}

export interface WrittenAnswer {
  readonly name: string;
  /** The body of an answer that is not streamed. */
  readonly whole: string;
  /** The same answer as server-sent events. */
  readonly events: string;
}

export interface Exchange {
  readonly name: string;
  readonly request: string;
  readonly answer: WrittenAnswer;
}

/** Texts in which transcoding shows: raw characters. */
export const scripts =
  'Ünïcødé · Ελληνικά · Кириллица · العربية עברית · हिन्दी ไทย ខ្មែរ · 漢字かなカナ한글 · 𝔘𝔫𝔦 𐍈 · e\u0301 · \u200f\u202e\u200d\ufeff · 👩‍👩‍👧‍👦 🇳🇴 👍🏽 ☃\ufe0f · \u2028\u2029\u0085 · \u007f ￿';
/** The same kinds as escapes of JSON, also such that a writer of JSON would write otherwise. */
export const escapes = String.raw`caf\u00e9 \u00E9 \/ \" \\ \b\f\n\r\t \u0001 \u2028 \ud83d\ude00 \uD83D\uDE00 \u0041 \ufeff \ud83d \ude00`;
/** Numbers that JavaScript writes otherwise, or cannot keep. */
export const numbers =
  '[1.0,1e2,1E+2,-0,-0.0,0.10,1.50,9007199254740993,12345678901234567890,0.12345678901234567890123,1e-400,1e400]';

/** Members of requests of next year; some have names that Capstan changes in the outermost object. */
export const future = `"x_future":{"model":"small","stream":false,"max_tokens":1e9,"list":[ ],"deep":[[[[{"a":${numbers}}]]]]}`;

/** Each request with two answers. */
export function pairUp(
  requests: readonly WrittenRequest[],
  answers: readonly WrittenAnswer[],
): readonly Exchange[] {
  return [0, 7].flatMap((shift) =>
    requests.map(({ name, text }, at) => {
      const answer = answers[(at + shift) % answers.length] as WrittenAnswer;
      return { name: `${name}; ${answer.name}`, request: text, answer };
    }),
  );
}

/** Writes requests for a model by the members of their outermost object. */
export function asksOf(model: string) {
  return (name: string, members: string): WrittenRequest => ({
    name,
    text: `{"model":"${model}",${members}}`,
  });
}
