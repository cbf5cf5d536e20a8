/**
 * JSON text for a `jsonb` column. It holds neither NUL nor half a surrogate pair, and messages of instances may
 * contain both; they become U+FFFD, so that no settlement is lost to the text of an error.
 */
export function toJsonb(value: object | string | number | boolean | null): string {
  const text = JSON.stringify(value);
  if (!text.includes('\\u')) return text;
  return text.replace(/\\(?:\\|u0000|ud[89a-f][0-9a-f]{2})/g, (code) => (code === '\\\\' ? code : '\ufffd'));
}
