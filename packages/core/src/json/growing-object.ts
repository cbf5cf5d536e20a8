/** An object of JSON while its text grows, such as the arguments of a call of a tool. */
export interface GrowingObject {
  add(piece: string): void;
  text(): string;
  /** Whether the text is an object now. */
  isWhole(): boolean;
}

/** The pieces are joined only when a caller needs the text: joining at each piece takes quadratic time. */
export function createGrowingObject(): GrowingObject {
  let text = '';
  let endsInBrace = false;
  return {
    add: (piece) => {
      text += piece;
      const seen = piece.trimEnd();
      if (seen !== '') endsInBrace = seen.endsWith('}');
    },
    text: () => text,
    isWhole: () => {
      if (!endsInBrace) return false;
      try {
        JSON.parse(text);
        return true;
      } catch {
        return false;
      }
    },
  };
}
